"""Families whose truth is the code that their authors published, for kin.py: odd tiny configs, and the models themselves. That code is
no part of this project. CODE is a folder with it: OpenELM (modeling_openelm.py and configuration_openelm.py beside apple/OpenELM's
weights), minimind (jingyaogong/minimind), fla (what pip --target makes of flash-linear-attention, fla-core, triton and einops)."""

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


# RWKV-7 of flash-linear-attention, whose kernels are put aside for the plain functions that stand beside them.


def rwkv7():
    """At least two layers: rates of the first weights are told by a layer's share of the others."""
    heads, width = draw.randint(1, 3), draw.choice([4, 8])
    config = {
        "vocab_size": draw.randint(40, 70), "hidden_size": heads * width, "head_dim": width, "num_hidden_layers": draw.choice([2, 3]),
        "decay_low_rank_dim": draw.randint(2, 6), "gate_low_rank_dim": draw.randint(2, 6), "a_low_rank_dim": draw.randint(2, 6),
        "v_low_rank_dim": draw.randint(2, 6), "norm_eps": draw.choice([1e-5, 0.02]), "tie_word_embeddings": False, "hidden_act": "sqrelu",
    }
    if chance():
        config["intermediate_size"] = draw.randint(6, 30)
    elif chance():
        config["hidden_ratio"] = draw.choice([1, 2])
    return config


def shifted(x, *_options, **_more):
    return torch.nn.functional.pad(x, (0, 0, 1, 0))[:, :-1] - x, None


def rwkv7_model(config):
    if str(CODE / "fla") not in sys.path:
        sys.path.insert(0, str(CODE / "fla"))
    from fla.layers import rwkv7 as layers
    from fla.models.rwkv7 import modeling_rwkv7 as own
    from fla.ops.generalized_delta_rule.dplr.naive import dplr_recurrence
    from fla.ops.rwkv7 import fused_addcmul, fused_k_update, gate_output_correction

    def scan(r, w, k, v, kk, a, **_options):
        exact = torch.promote_types(r.dtype, torch.float32)
        r, w, k, v, alpha, beta = (x.transpose(1, 2).to(exact) for x in (r, w, k, v, -kk, kk * a))
        made, _ = dplr_recurrence(r * r.shape[-1] ** 0.5, k, v, alpha, beta, w)
        return made.transpose(1, 2).to(kk.dtype), None

    layers.token_shift = own.token_shift = shifted
    layers.fused_addcmul_rwkv7, layers.fused_k_rwkv7 = fused_addcmul.torch_addcmul_rwkv7, fused_k_update.k_update_ref
    layers.gate_output_correction, layers.fused_mul_recurrent_rwkv7 = gate_output_correction.gate_output_correction_ref, scan
    own.ACT2FN["sqrelu"] = lambda x: torch.relu(x).square()
    return own.RWKV7ForCausalLM(own.RWKV7Config(**config, fuse_norm=False, fuse_cross_entropy=False, use_l2warp=False, use_cache=False))


MODELS = {"minimind": minimind_model, "openelm": openelm_model, "rwkv7": rwkv7_model}
FAMILIES = {
    "minimind": ("MiniMindForCausalLM", kin.dense(scaled=False, more=minimind)),
    "openelm": ("OpenELMForCausalLM", openelm),
    "rwkv7": ("RWKV7ForCausalLM", rwkv7),
}
OURS = {"attn_norm": "attn_norm", "ffn_norm": "mlp_norm", "ffn": "mlp_out"}
TAPS = {"openelm": OURS, "rwkv7": OURS}


def keep_within(kind, layer, keep, keep_input):
    """As hybrids.keep_within()."""
    if kind == "rwkv7":
        keep("scan_norm", layer.attn.g_norm)
        keep_input("scan", layer.attn.g_norm)


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
