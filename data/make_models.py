"""Makes data/models/: a tiny random model per family, its quirks in small, and what `transformers` computes of it.

    python data/make_models.py                           # all
    python data/make_models.py llama gemma3              # some
    python data/make_models.py --gguf                    # only the GGUF files, of the weights that are there
    python data/make_models.py --deepseek .../inference  # beside, what DeepSeek's own model.py computes

The last wants the folder `inference` of github.com/deepseek-ai/DeepSeek-V3; its model.py is run as it is, on the CPU.
"""

import argparse
import copy
import json
import re
import zlib
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, DeepseekV3Config, DeepseekV3ForCausalLM
from transformers.utils import logging

from tiny_models import deepseek_reference, deepseek_v4, gguf_files, golden, mtp, weights
from tiny_models.configs import CONFIGS, LONG_PROMPT

OUT = Path(__file__).parent / "models"


def published_shapes(config):
    """Names and shapes of the checkpoint, the MTP layer included: `transformers` makes it as one more decoder layer."""
    values = copy.deepcopy(config)  # transformers adds keys to the dictionaries it is given
    values.pop("quantization_config", None)
    extra = config.get("num_nextn_predict_layers", 0)
    if config["model_type"] in ("deepseek_v3", "kimi_k2"):
        values |= {"num_hidden_layers": config["num_hidden_layers"] + extra, "model_type": "deepseek_v3"}
        shapes = weights.checkpoint_shapes(DeepseekV3Config(**values), DeepseekV3ForCausalLM)
        for index in range(config["num_hidden_layers"], config["num_hidden_layers"] + extra):
            shapes |= {f"model.layers.{index}.{name}": shape for name, shape in mtp.shapes(config).items()}
        return shapes
    if config["model_type"] == "deepseek_v4":
        return deepseek_v4.shapes(config)
    if extra:
        return shapes_with_prediction(values, extra)
    model_type = values.pop("model_type")
    return weights.checkpoint_shapes(AutoConfig.for_model(model_type, **values), AutoModelForCausalLM)


def shapes_with_prediction(values, extra):
    """Of the classes with an indexer: their MTP layers have one, too."""
    count, model_type = values["num_hidden_layers"], values.pop("model_type")
    longer = copy.deepcopy(values) | {"num_hidden_layers": count + extra}
    if "indexer_types" in values:
        longer["indexer_types"] = [*values["indexer_types"], *["full"] * extra]
    shapes = weights.checkpoint_shapes(AutoConfig.for_model(model_type, **longer), AutoModelForCausalLM)
    for index in range(count, count + extra):
        around = mtp.shapes({**values, "model_type": model_type})
        shapes |= {f"model.layers.{index}.{name}": shape for name, shape in around.items()}
    return shapes


def checkpoint(name, config):
    """(as stored, as computed with)"""
    seed = zlib.crc32(name.encode())
    tensors = weights.random_checkpoint(config, published_shapes(config), seed)
    for index in range(config.get("num_nextn_predict_layers", 0) * (config["model_type"] != "glm_moe_dsa")):
        prefix = f"model.layers.{config['num_hidden_layers'] + index}"
        tensors[f"{prefix}.embed_tokens.weight"] = tensors["model.embed_tokens.weight"].clone()
        tensors[f"{prefix}.shared_head.head.weight"] = tensors["lm_head.weight"].clone()
    method = config.get("quantization_config", {}).get("quant_method")
    if method == "mxfp4":
        return weights.with_mxfp4_experts(tensors, torch.Generator().manual_seed(seed))
    if method == "fp8":
        return weights.with_fp8_blocks(tensors)
    if config["model_type"] == "longcat_flash":
        # The class has gate and up of experts that hold nothing, and never uses them.
        count = config["n_routed_experts"]
        held = {n: t for n, t in tensors.items() if int((n + ".experts.0.").split(".experts.")[1].split(".")[0]) < count}
        return held, tensors
    return tensors, tensors


def prompts(name, length, vocab, count=300):
    generator = torch.Generator().manual_seed(zlib.crc32(f"{name} {length}".encode()))
    return [torch.randint(2, vocab, (length,), generator=generator).tolist() for _ in range(count)]


def as_published(config, tensors):
    """Names of a model that sees; experts of Qwen3.5 stacked, gates before ups."""
    if "text_config" not in config:
        return tensors
    stored = {re.sub(r"^model\.", "model.language_model.", name): value for name, value in tensors.items()}
    for path in sorted({m[1] for m in (re.match(r"(.*\.mlp\.experts)\.0\.", name) for name in stored) if m}):
        count = config["text_config"]["num_experts"]
        gate, up, down = (
            torch.stack([stored.pop(f"{path}.{e}.{part}_proj.weight") for e in range(count)]) for part in ("gate", "up", "down")
        )
        stored |= {f"{path}.gate_up_proj": torch.cat([gate, up], dim=1), f"{path}.down_proj": down}
    return stored


def make(name):
    print(name)
    published = CONFIGS[name]
    config = published.get("text_config", published)
    folder = OUT / name
    (folder / "golden").mkdir(parents=True, exist_ok=True)
    stored, decoded = checkpoint(name, config)
    stored = as_published(published, stored)
    (folder / "config.json").write_text(json.dumps(published, indent=2) + "\n")
    save_file({n: t.contiguous() for n, t in stored.items()}, folder / "model.safetensors", {"format": "pt"})
    with_mtp = config.get("num_nextn_predict_layers", 0) > 0 and config["model_type"] != "deepseek_v4"
    found = golden.search(config, decoded, prompts(name, 24, config["vocab_size"]), with_mtp)
    if name in LONG_PROMPT:
        length = deepseek_v4.LENGTH if config["model_type"] == "deepseek_v4" else 40
        beyond = golden.search(config, decoded, prompts(name, length, config["vocab_size"]), False)
        found |= {f"long.{key}": value for key, value in beyond.items()}
    save_file(found, folder / "golden" / "transformers.safetensors")
    if name in gguf_files.MODELS:
        gguf_files.make(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *CONFIGS], help="which models; all without")
    parser.add_argument("--deepseek", metavar="FOLDER", type=Path, help="DeepSeek-V3's inference folder")
    parser.add_argument("--gguf", action="store_true", help="only the GGUF files")
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    if options.deepseek:
        deepseek_reference.make(options.deepseek, OUT)
        return
    for name in options.names or CONFIGS:
        if not options.gguf:
            make(name)
        elif name in gguf_files.MODELS:
            gguf_files.make(OUT / name)


if __name__ == "__main__":
    main()
