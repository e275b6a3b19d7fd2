#!/usr/bin/env python3
"""Writes data/fixtures/modules/<name>.tsv of models that MLX has code for and PyTorch's libraries have not.

    pip install "mlx[cpu]" mlx-lm mlx-vlm      (0.32.4, 0.32.2, 0.7.10)
    data/make_mlx_oracle.py data/fixtures/mlx_configs

Each config's model is built (arrays are lazy: nothing is computed), and its parameters are named as the checkpoint has
them: what the model's sanitize() joins when it loads one is taken apart again.
"""
import importlib
import json
import pathlib
import re
import sys

from mlx.utils import tree_flatten

from module_rows import write_rows


def from_lm(module, config):
    code = importlib.import_module(f"mlx_lm.models.{module}")
    model = code.Model(code.ModelArgs.from_dict(config))
    return {name: tuple(array.shape) for name, array in tree_flatten(model.parameters())}


def from_vlm(module, config):
    code = importlib.import_module(f"mlx_vlm.models.{module}")
    model = code.Model(code.ModelConfig.from_dict(config))
    return {name: tuple(array.shape) for name, array in tree_flatten(model.parameters())}


def renamed(shapes, *pairs):
    """The beginning of each name, by the first of `pairs` that it has."""
    def name_of(name):
        for old, new in pairs:
            if name.startswith(old):
                return new + name[len(old):]
        return name
    return {name_of(name): shape for name, shape in shapes.items()}


def channels_first(shapes, ending):
    return {name: (shape[0], shape[3], *shape[1:3]) if name.endswith(ending) and len(shape) == 4 else shape
            for name, shape in shapes.items()}


def experts_apart(shapes, stack, one):
    """`stack`, an expression, names the stacks of all experts' matrices; `one` is the template of an expert's."""
    apart = {}
    for name, shape in shapes.items():
        match = re.fullmatch(stack, name)
        if match is None:
            apart[name] = shape
            continue
        for expert in range(shape[0]):
            apart[match.expand(one).replace("{expert}", str(expert))] = shape[1:]
    return apart


def klear(config):
    return experts_apart(from_lm("Klear", config), r"(.*\.mlp\.experts)\.(\w+_proj\.weight)", r"\1.{expert}.\2")


def phixtral(config):
    sizes = {"num_vocab": config["vocab_size"], "model_dim": config["n_embd"], "num_heads": config["n_head"],
             "num_layers": config["n_layer"]}
    return experts_apart(from_lm("phixtral", {**config, **sizes}), r"(.*\.moe)\.switch_mlp\.(fc\d\.\w+)", r"\1.mlp.{expert}.\2")


def youtu_vl(config):
    shapes = renamed(from_vlm("youtu_vl", config), ("vision_tower.merger.", "merger."), ("vision_tower.", "siglip2.vision_model."),
                     ("language_model.", ""))
    for name in [name for name in shapes if name.endswith(".embed_q.weight")]:
        heads, rank, of_key = shapes.pop(name)
        _, of_value, _ = shapes.pop(name.replace("embed_q", "unembed_out"))
        shapes[name.replace("embed_q", "kv_b_proj")] = (heads * (of_key + of_value), rank)
    return shapes


def mage_vl(config):
    shapes = renamed(from_vlm("mage_vl", config), ("vision_tower.", "model.visual."),
                     ("language_model.lm_head.", "lm_head."), ("language_model.model.", "model.language_model."))
    return channels_first(shapes, "patch_embedding.weight")


BUILDERS = {"PlamoForCausalLM": lambda config: from_lm("plamo", config),
            "TalkieForCausalLM": lambda config: from_lm("talkie", config),
            "BaichuanM1ForCausalLM": lambda config: from_lm("baichuan_m1", config),
            "KlearMoeForCausalLM": klear, "PhiForCausalLM": phixtral, "YoutuVLForConditionalGeneration": youtu_vl,
            "MageVLForConditionalGeneration": mage_vl}


def main(configs):
    for path in sorted(pathlib.Path(configs).glob("*.json")):
        config = json.loads(path.read_text())
        write_rows(path.stem, BUILDERS[config["architectures"][0]](config))
        print(path.stem)


if __name__ == "__main__":
    main(*sys.argv[1:])
