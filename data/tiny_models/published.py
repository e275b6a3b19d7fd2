"""Families whose truth is the code that their authors published, for kin.py: odd tiny configs, and the models themselves. That code is
no part of this project. CODE is a folder with it: OpenELM (modeling_openelm.py and configuration_openelm.py beside apple/OpenELM's
weights), minimind (jingyaogong/minimind)."""

import importlib
import os
import sys
import types
from pathlib import Path

import torch
from transformers import PretrainedConfig

from . import kin

draw, chance = kin.draw, kin.chance
CODE = Path(os.environ.get("ASSAY_PUBLISHED_CODE", "code"))


def own_code(name, folder, module):
    """A module of the folder, whose own imports are relative."""
    if name not in sys.modules:
        package = types.ModuleType(name)
        package.__path__ = [str(CODE / folder)]
        sys.modules[name] = package
    return importlib.import_module(f"{name}.{module}")


# OpenELM: heads and widths by layer, as its configuration class makes them of four numbers.


def openelm_settings(**values):
    """Its __post_init__ is its own, and since release 5 of transformers one of the base class, too."""
    kind = own_code("openelm", "OpenELM", "configuration_openelm").OpenELMConfig
    if "heads" not in vars(kind):
        kind.heads, base = kind.__post_init__, PretrainedConfig.__post_init__
        kind.__post_init__ = lambda self, **more: base(self, **more) if more else self.heads()
    return kind(**values)


def openelm():
    head_dim, groups = draw.choice([4, 8]), draw.choice([1, 2])
    made = openelm_settings(
        model_dim=draw.choice([24, 40]), head_dim=head_dim, num_gqa_groups=groups, qkv_multipliers=[0.4, 1.0], num_transformer_layers=draw.choice([2, 3]),
        ffn_multipliers=draw.choice([[0.5, 2.0], [1.0, 1.5]]), ffn_dim_divisor=draw.choice([4, 6]),
    )
    keys = ("model_dim", "head_dim", "num_gqa_groups", "qkv_multipliers", "num_transformer_layers", "ffn_multipliers", "ffn_dim_divisor", "num_query_heads", "num_kv_heads")
    config = {key: getattr(made, key) for key in keys}
    config |= {"vocab_size": draw.randint(40, 70), "max_context_length": 64, "rope_max_length": 128, "rope_freq_constant": draw.choice([100, 10000])}
    config |= {"activation_fn_name": draw.choice(["swish", "gelu"]), "ffn_with_glu": chance(0.7), "normalize_qk_projections": chance(0.7)}
    return {**config, "share_input_output_layers": chance(0.7), "normalization_layer_name": "rms_norm"}


def openelm_model(config):
    own = own_code("openelm", "OpenELM", "modeling_openelm")
    return own.OpenELMForCausalLM(openelm_settings(**{**config, "use_cache": False}))


# MiniMind 3: a Qwen3 under keys of its own.


def minimind(config):
    config = {key: value for key, value in config.items() if key not in ("rope_parameters", "rope_theta")}
    config |= {"rope_theta": draw.choice([100.0, 1e6]), "hidden_size": config["num_attention_heads"] * draw.choice([8, 12])}
    if chance():
        config |= {"use_moe": True, "num_experts": draw.randint(2, 5), "norm_topk_prob": chance()}
        config["num_experts_per_tok"] = draw.randint(1, config["num_experts"])
        if chance():
            config["moe_intermediate_size"] = draw.randint(3, 12)
    return config


def minimind_model(config):
    own = own_code("minimind", "minimind/model", "model_minimind")
    return own.MiniMindForCausalLM(own.MiniMindConfig(**config))


MODELS = {"minimind": minimind_model, "openelm": openelm_model}
FAMILIES = {
    "minimind": ("MiniMindForCausalLM", kin.dense(scaled=False, more=minimind)),
    "openelm": ("OpenELMForCausalLM", openelm),
}
TAPS = {"openelm": {"attn_norm": "attn_norm", "ffn_norm": "mlp_norm", "ffn": "mlp_out"}}


def shapes(config):
    with torch.device("cpu"):
        model = MODELS[config["model_type"]](dict(config))
    tied = "lm_head.weight" if config.get("tie_word_embeddings", config["model_type"] == "minimind") else None
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items() if name != tied}


def loaded(config, tensors, dtype):
    """Weights of that type; what the code itself computes, such as frequencies, as it computes it."""
    model = MODELS[config["model_type"]](dict(config))
    for name, parameter in model.named_parameters():
        parameter.data = tensors[name if name in tensors else "model.embed_tokens.weight"].to(dtype)
    return model.eval()
