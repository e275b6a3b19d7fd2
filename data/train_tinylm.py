#!/usr/bin/env python3
"""Trains data/tinylm, a DeepSeek-V3 of 1.6 M parameters, and writes it in FP8 and in BF16.

    pip install -r data/requirements.txt
    python data/train_tinylm.py                              # about ten minutes on two cores
    python data/train_tinylm.py --steps 40 --out /tmp/try    # a quick look

The text, the tokenizer, the weights and every figure in LOSSES.md come from the seed.
"""

import argparse
import json
import math
import os
import platform
import random
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # a waiting thread sleeps: the machine may be shared
import torch  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tinylm_training import checkpoint, evaluate, text, tokenizer as tokenizers  # noqa: E402
from tinylm_training.model import CONFIG, TinyLM  # noqa: E402
from tinylm_training.report import write_losses  # noqa: E402

SEED = 20241226  # the day DeepSeek-V3 appeared
TRAINING_STORIES, HELDOUT_STORIES = 20000, 24
BATCH, LENGTH = 8, 192
PEAK_RATE, WARMUP = 3e-3, 60
MTP_WEIGHT = 0.3  # lambda of the paper's section 2.2
BIAS_SPEED = 0.001  # gamma of section 2.1.2
PROMPT = "Mira had a green goat. One day she took the goat to the river. At the river Mira found 5 shells."
GREEDY_TOKENS = 32


def training_batch(stream, rng):
    starts = [rng.randrange(len(stream) - LENGTH) for _ in range(BATCH)]
    return torch.stack([stream[start : start + LENGTH] for start in starts])


class RoutingBias:
    """Auxiliary-loss-free balancing: after each step, every expert that had more than its share of tokens has its
    bias lowered by BIAS_SPEED, every other has it raised. The bias decides who is chosen, never the weight."""

    def __init__(self, model):
        self.routers = model.routers()
        self.loads = [torch.zeros(router.num_experts) for router in self.routers]
        for router, load in zip(self.routers, self.loads):
            router.register_forward_hook(lambda _, __, output, load=load: self._count(load, output[2]))

    @staticmethod
    def _count(load, chosen):
        load += torch.bincount(chosen.flatten(), minlength=len(load))

    def update(self):
        for router, load in zip(self.routers, self.loads):
            router.e_score_correction_bias += BIAS_SPEED * torch.sign(load.mean() - load)
            load.zero_()


def rate(step, steps):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / max(steps - WARMUP, 1)))


def train(model, stream, steps):
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, steps))
    bias, rng, started = RoutingBias(model), random.Random(SEED + 1), time.monotonic()
    history = []
    for step in range(steps):
        tokens = training_batch(stream, rng)
        main, mtp = model(tokens)
        main_loss = cross_entropy(main[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        mtp_loss = cross_entropy(mtp[:, :-1].flatten(0, 1), tokens[:, 2:].flatten())
        optimizer.zero_grad()
        (main_loss + MTP_WEIGHT * mtp_loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        bias.update()
        history.append((main_loss.item(), mtp_loss.item()))
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step:4d}  main {history[-1][0]:.4f}  mtp {history[-1][1]:.4f}  "
                  f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    return history


def measure(model, variants, heldout):
    """Held-out losses with each set of weights."""
    results = {}
    for name, values in variants.items():
        model.load_checkpoint_tensors(values)
        results[name] = evaluate.losses(model, heldout)
    return results


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent, help="where tinylm/ goes")
    parser.add_argument("--weights", type=Path, help="keep the trained weights here; if there, do not train again")
    return parser.parse_args()


def trained(model, stream, options):
    if options.weights and options.weights.exists():
        saved = torch.load(options.weights, weights_only=True)
        model.load_state_dict(saved["model"])
        return saved["history"]
    history = train(model, stream, options.steps)
    if options.weights:
        torch.save({"model": model.state_dict(), "history": history}, options.weights)
    return history


def main():
    options = arguments()
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # a debugging aid, a tenth of the time

    stories = text.stories(SEED, TRAINING_STORIES)
    unseen = [story for story in text.stories(SEED + 2, 2 * HELDOUT_STORIES) if story not in set(stories)]
    unseen = unseen[:HELDOUT_STORIES]
    tokenizer = tokenizers.train(stories, CONFIG["vocab_size"])
    training = [evaluate.encode_story(tokenizer, story) for story in stories]
    heldout = [evaluate.encode_story(tokenizer, story) for story in unseen]
    stream = torch.tensor([token for sequence in training for token in sequence])

    model = TinyLM().train()
    history = trained(model, stream, options)
    model.eval()

    bf16 = checkpoint.bf16_tensors(model)
    fp8 = checkpoint.fp8_tensors(bf16)
    folders = {"tinylm": (fp8, {**CONFIG, "quantization_config": checkpoint.QUANTIZATION}), "tinylm-bf16": (bf16, CONFIG)}
    for name, (tensors, config) in folders.items():
        checkpoint.write(options.out / name, tensors, config)
        tokenizers.save(tokenizer, options.out / name, CONFIG["max_position_embeddings"])
    folder = options.out / "tinylm"
    (folder / "heldout.txt").write_text("\n\n".join(unseen) + "\n")

    trained_weights = {name: tensor.detach().clone() for name, tensor in model.checkpoint_tensors()}
    variants = {"trained, f32": trained_weights, "rounded to BF16": bf16, "FP8, dequantized to f32": checkpoint.dequantized(fp8)}
    results = measure(model, variants, heldout)
    prompt = tokenizer.encode(PROMPT).ids
    golden = {"prompt": PROMPT, "prompt_ids": prompt}
    for name, values in {"tinylm": checkpoint.dequantized(fp8), "tinylm-bf16": bf16}.items():
        model.load_checkpoint_tensors(values)
        golden[name] = evaluate.golden(model, prompt, GREEDY_TOKENS)
        golden[name]["greedy_text"] = tokenizer.decode(golden[name]["greedy"], skip_special_tokens=False)
    (folder / "golden.json").write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")) + "\n")

    write_losses(folder / "LOSSES.md", {
        "seed": SEED, "steps": len(history), "batch": BATCH, "length": LENGTH, "processor": platform.machine(),
        "parameters": parameters(bf16), "history": history, "results": results,
        "training": (len(training), sum(len(sequence) for sequence in training)),
        "heldout": (len(heldout), sum(len(sequence) - 1 for sequence in heldout)),
        "unigram": evaluate.unigram_loss(training, heldout, CONFIG["vocab_size"]),
        "bias": {name: tensor.tolist() for name, tensor in bf16.items() if name.endswith("correction_bias")},
        "prompt": PROMPT, "continuation": golden["tinylm"]["greedy_text"],
    })


def parameters(bf16):
    """Of the main model, of the MTP layer, and the stored copies of embedding and head."""
    prefix = f"model.layers.{CONFIG['num_hidden_layers']}."
    copies = [prefix + "embed_tokens.weight", prefix + "shared_head.head.weight"]
    count = {"main": 0, "mtp": 0, "copies": 0}
    for name, tensor in bf16.items():
        part = "copies" if name in copies else "mtp" if name.startswith(prefix) else "main"
        count[part] += tensor.numel()
    return count


if __name__ == "__main__":
    main()
