"""Writes data/fixtures/dumps/ERRORS.tsv: how far transformers' own float32, float16 and bfloat16 stray from its doubles.

    python data/make_dump_errors.py

What `assay compare dumps` allows without a yardstick (kernels/dumps/limits.h) is

    λ · (u + 2^-24 √K) · √(10 (l + 1)),     of the largest of |ref|, its token's and the median token's root mean square

and no theory gives λ: how far a network amplifies roundings depends on its weights. So it is measured. A row is one model
under one precision; `element` is the λ that its worst element needs, `norm` what the worst tap's Frobenius norm needs, each
with the tap it was found at. Models: every family of data/models, of which some also 24 layers deep, and the trained
data/tinylm-bf16. Doubles are computed from the same, bfloat16, weights. A prompt on which a router chooses other experts
under rounding is left out, and counted in `flips`: that is no rounding error, and no limit should allow it.
"""

import json
import tempfile
import zlib
from pathlib import Path

import torch
from safetensors import safe_open
from transformers.utils import logging

import make_models
from tiny_models import golden, taps
from tiny_models.configs import CONFIGS
from tiny_models.precision import everything_double

ROOT = Path(__file__).parent
OUT = ROOT / "fixtures" / "dumps" / "ERRORS.tsv"
PRECISIONS = {"f32": (torch.float32, 2.0**-24), "f16": (torch.float16, 2.0**-11), "bf16": (torch.bfloat16, 2.0**-8)}
PROMPTS = 4
LENGTH = 24
DEEP = {"llama": 24, "qwen2": 24, "gpt2": 24}  # without routers, and without lists of layers in their configs


def prompts(name, vocab):
    generator = torch.Generator().manual_seed(zlib.crc32(f"dump errors {name}".encode()))
    return [torch.randint(2, vocab, (LENGTH,), generator=generator).tolist() for _ in range(PROMPTS)]


def layer_of(tap, layers):
    parts = tap.split(".")
    if parts[0] == "layers":
        return int(parts[1])
    return 0 if tap == "embed" else layers - 1


def compared(value):
    """[tokens, the rest], in double; None of what dumps are not compared by."""
    if value.dtype == torch.int64:
        return None
    return value.double().flatten(1)


def needs(exact, rough, u, layers):
    """The λ that the worst element, and the worst norm, of all taps needs: {kind: (λ, tap)}."""
    worst = {"element": (0.0, "-"), "norm": (0.0, "-")}
    for tap, value in exact.items():
        ref = compared(value)
        if ref is None or "router" in tap:
            continue
        error = (compared(rough[tap]) - ref).abs()
        rms = ref.pow(2).mean(dim=1).sqrt()
        middle = rms.sort().values[len(rms) // 2]
        scale = torch.maximum(ref.abs(), rms.clamp(min=middle).unsqueeze(1))
        unit = (u + 2.0**-24 * ref.shape[1] ** 0.5) * (10 * (layer_of(tap, layers) + 1)) ** 0.5
        found = {"element": (error / scale).max() / unit, "norm": error.norm() / ref.norm() / unit}
        for kind, factor in found.items():
            worst[kind] = max(worst[kind], (factor.item(), tap))
    return worst


def run(model, tokens):
    with torch.no_grad(), taps.recorded(model) as taken:
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0]
    return {name: value.clone() for name, value in taken.items()} | {"logits": logits}


def measure(name, folder, rows):
    with everything_double():
        double = golden.load(folder, torch.float64)
    layers, vocab = double.config.num_hidden_layers, double.config.vocab_size
    rough = {p: golden.load(folder, dtype) for p, (dtype, _) in PRECISIONS.items()}
    worst = {p: {"element": (0.0, "-"), "norm": (0.0, "-")} for p in PRECISIONS}
    flips = dict.fromkeys(PRECISIONS, 0)
    for tokens in prompts(name, vocab):
        with everything_double():
            exact = run(double, tokens)
        for p, (_, u) in PRECISIONS.items():
            found = run(rough[p], tokens)
            if not golden._same_choices(found, exact):
                flips[p] += 1
                continue
            for kind, value in needs(exact, found, u, layers).items():
                worst[p][kind] = max(worst[p][kind], value)
    for p in PRECISIONS:
        (element, at), (norm, norm_at) = worst[p]["element"], worst[p]["norm"]
        rows.append([name, str(layers), p, f"{element:.2f}", at, f"{norm:.2f}", norm_at, f"{flips[p]}/{PROMPTS}"])
        print("\t".join(rows[-1]))


def deep(config, layers):
    config = dict(config)
    config["n_layer" if "n_layer" in config else "num_hidden_layers"] = layers
    return config


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    rows = []
    models = list(CONFIGS.items()) + [(f"{n}-{d}-layers", deep(CONFIGS[n], d)) for n, d in DEEP.items()]
    for name, config in models:
        with tempfile.TemporaryDirectory() as folder:
            golden.write_plain(config, make_models.checkpoint(name, config)[1], folder)
            measure(name, folder, rows)
    with tempfile.TemporaryDirectory() as folder:
        source = ROOT / "tinylm-bf16"
        tensors = {}
        for shard in sorted(source.glob("*.safetensors")):
            with safe_open(shard, framework="pt") as file:
                tensors |= {n: file.get_tensor(n) for n in file.keys()}
        golden.write_plain(json.loads((source / "config.json").read_text()), tensors, folder)
        measure("tinylm-bf16", folder, rows)
    header = ["model", "layers", "precision", "element", "element_at", "norm", "norm_at", "flips"]
    OUT.write_text("".join("\t".join(row) + "\n" for row in [header, *rows]))


if __name__ == "__main__":
    main()
