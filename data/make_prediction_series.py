"""Makes data/fixtures/prediction_series: a tiny DeepSeek-V3 with two modules for multi-token prediction in series, and what each says
of a text, in float64.

    python data/make_prediction_series.py

As arXiv 2412.19437 §2.2 has it: module k is given what module k - 1 said (of the first: the main model, after its final norm) at
position i, and the embedding of token i + k; positions are those of i. Decoder layers are those of `transformers`, what stands around
them is tiny_models/mtp.py's.
"""

import json
import random
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

from tiny_models import golden, mtp, weights
from tiny_models.configs import CONFIGS
from tiny_models.precision import everything_double

OUT = Path(__file__).parent / "fixtures" / "prediction_series"
SMALLER = {"num_hidden_layers": 2, "num_nextn_predict_layers": 2, "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2}


def checkpoint(config):
    """Each module one more decoder layer, as published, with copies of the embedding and the head."""
    main, extra = config["num_hidden_layers"], config["num_nextn_predict_layers"]
    longer = json.loads(json.dumps({**config, "num_hidden_layers": main + extra}))
    shapes = weights.checkpoint_shapes(DeepseekV3Config(**longer), DeepseekV3ForCausalLM)
    for k in range(main, main + extra):
        shapes |= {f"model.layers.{k}.{name}": shape for name, shape in mtp.shapes(config).items()}
    tensors = weights.random_checkpoint(config, shapes, 7)
    for k in range(main, main + extra):
        tensors[f"model.layers.{k}.embed_tokens.weight"] = tensors["model.embed_tokens.weight"].clone()
        tensors[f"model.layers.{k}.shared_head.head.weight"] = tensors["lm_head.weight"].clone()
    return tensors


@torch.no_grad()
def series(model, modules, tokens):
    """Logits of each module, of as many rows as there are tokens for."""
    hidden, said = model.model(tokens, use_cache=False).last_hidden_state, []
    for k, module in enumerate(modules, start=1):
        hidden = hidden[:, : tokens.shape[1] - k]
        embedding = model.model.embed_tokens(tokens[:, k:])
        count = hidden.shape[1]
        mask = torch.full((count, count), float("-inf"), dtype=hidden.dtype).triu(1)[None, None]
        joined = module.eh_proj(torch.cat([module.enorm(embedding), module.hnorm(hidden)], dim=-1))
        angles = model.model.rotary_emb(embedding, torch.arange(count).unsqueeze(0))
        out = module.layer(joined, attention_mask=mask, position_embeddings=angles)
        hidden = module.norm(out[0] if isinstance(out, tuple) else out)
        said.append(model.lm_head(hidden)[0])
    return said


def main():
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    config = {**CONFIGS["deepseek-v3"], **SMALLER}
    decoded = checkpoint(config)
    (OUT / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file({name: tensor.contiguous() for name, tensor in decoded.items()}, OUT / "model.safetensors", {"format": "pt"})
    tokens = [random.Random(3).randrange(2, config["vocab_size"]) for _ in range(16)]
    main_layers = config["num_hidden_layers"]
    with tempfile.TemporaryDirectory() as folder:
        plain = {name: tensor for name, tensor in decoded.items()
                 if not any(name.startswith(f"model.layers.{main_layers + k}.") for k in range(2))}
        Path(folder, "config.json").write_text(json.dumps({**config, "num_nextn_predict_layers": 0}))
        save_file({name: tensor.double().contiguous() for name, tensor in plain.items()}, f"{folder}/model.safetensors", {"format": "pt"})
        with everything_double():
            model = golden.load(folder, torch.float64)
            modules = [mtp.load(model, decoded, f"model.layers.{main_layers + k}", torch.float64).eval() for k in range(2)]
            said = series(model, modules, torch.tensor([tokens]))
    found = {"tokens": torch.tensor(tokens, dtype=torch.int32)}
    found |= {f"module.{k}": logits.contiguous() for k, logits in enumerate(said)}
    save_file(found, OUT / "logits.safetensors")
    print({name: tuple(tensor.shape) for name, tensor in found.items()})


if __name__ == "__main__":
    main()
