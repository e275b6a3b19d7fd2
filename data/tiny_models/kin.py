"""Odd tiny models of the families that are told by a table (refimpl/models/*_kin.cpp): their configs, drawn at random;
weights that anybody can make from a tensor's name and shape; and what `transformers` computes of them, with taps."""

import json
import re
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, Mistral4ForCausalLM

import check_family_variants as variants
from make_module_oracle import build, checkpoint_tensors

from . import decilm, hybrids, kimi_k3, made_weights
from .precision import everything_double

draw, chance, flags, decoder, kinds, old = (
    variants.draw, variants.chance, variants.flags, variants.decoder, variants.kinds, variants.old_decoder,
)


# Weights.


def weight(name, shape):
    return torch.from_numpy(made_weights.weight(name, shape))


def checkpoint(config):
    if config.get("attn_res_block_size"):  # Kimi K3, of which no class is
        return {name: weight(name, shape) for name, shape in kimi_k3.shapes(config).items()}
    if config["model_type"] == "nemotron-nas":
        return {name: weight(name, shape) for name, shape in decilm.shapes(config).items()}
    if config["model_type"] in published.MODELS:
        return {name: weight(name, shape) for name, shape in published.shapes(config).items()}
    tensors = checkpoint_tensors(build(json.loads(json.dumps(twin_of(config)))))
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if config["model_type"] in TWINS:
        shapes = TWINS[config["model_type"]][1](config, shapes)
    return {name: weight(name, shape) for name, shape in shapes.items() if newer.is_stored(config, name)}


# Configs.


def rope(config, partial=False, scaled=True):
    """Any base, any scaling, under the names of either release."""
    part = {"partial_rotary_factor": draw.choice([0.5, 1.0])} if partial and chance(0.7) else {}
    parameters = {"rope_type": "default", "rope_theta": draw.choice([100.0, 10000.0, 1e6])}
    kind = draw.choice(["default", "linear", "yarn", "llama3", "dynamic"]) if scaled else "default"
    config["max_position_embeddings"] = draw.choice([32, 64])
    if kind == "linear":
        parameters |= {"rope_type": kind, "factor": 3.0}
    elif kind == "dynamic" and not partial:
        parameters |= {"rope_type": kind, "factor": 2.0}
    elif kind == "yarn":
        parameters |= {"rope_type": kind, "factor": 4.0, "original_max_position_embeddings": 8}
    elif kind == "llama3":
        parameters |= {
            "rope_type": kind, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8,
        }
    if parameters["rope_type"] == "default" and chance():
        return {**config, **part, "rope_theta": parameters["rope_theta"]}
    return {**config, "rope_parameters": {**parameters, **part}}


def activated(config, key="hidden_act"):
    if chance():
        config[key] = draw.choice(["silu", "gelu", "relu", "gelu_pytorch_tanh", "gelu_new", "relu2", "sigmoid"])
    return config


def small(config):
    """Few layers, few words, pairs of elements."""
    for key in ("num_hidden_layers", "n_layer", "n_layers"):
        if key in config:
            config[key] = min(config[key], 4)
    if "layer_types" in config:
        config["layer_types"] = config["layer_types"][: config["num_hidden_layers"]]
    config["vocab_size"] = draw.randint(40, 70)
    return config


def with_epsilon(config, key):
    if chance():
        config[key] = draw.choice([1e-3, 1e-5, 0.02])
    return config


def dense(*names, head_dim=True, kv_heads=True, partial=False, epsilon="rms_norm_eps", windows=False, scaled=True, more=None):
    def make():
        config = small(decoder(head_dim=head_dim, kv_heads=kv_heads))
        if partial:
            config.pop("head_dim", None)
            config["hidden_size"] = config["num_attention_heads"] * draw.choice([8, 16])
        config = activated(with_epsilon(rope(flags(config, *names), partial, scaled), epsilon))
        if windows:
            config = kinds(config, probability=0.7)
            config["sliding_window"] = draw.choice([3, 5])
        return more(config) if more else config

    return make


def factors(*keys):
    return lambda config: {**config, **{key: draw.choice([0.25, 0.7, 1.5, 3.0]) for key in keys if chance(0.7)}}


def smollm3(config):
    if chance():
        config["no_rope_layers"] = [draw.randint(0, 1) for _ in range(config["num_hidden_layers"])]
    elif chance():
        config["no_rope_layer_interval"] = draw.randint(1, 3)
    return config


def hunyuan(config):
    config["head_dim"] = config.get("head_dim", 8)
    if chance():
        config["rope_parameters"] = {"rope_type": "dynamic", "alpha": 50.0, "factor": 1.0, "rope_theta": 10000.0}
    elif "rope_parameters" not in config:
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": 500.0}
    return config


def exaone4(config):
    if chance(0.3):
        config["sliding_window"] = None
        config["layer_types"] = ["full_attention"] * config["num_hidden_layers"]
    return config


def olmo3(config):
    config.pop("rope_theta", None)
    parameters = config.pop("rope_parameters", None)
    if parameters and chance():
        config["rope_scaling"] = parameters
        config["rope_theta"] = parameters.pop("rope_theta")
    elif parameters:
        config["rope_parameters"] = {
            "full_attention": parameters, "sliding_attention": {"rope_type": "default", "rope_theta": 777.0},
        }
    return config


def ministral(config):
    config.setdefault("head_dim", 8)
    config.setdefault("rope_parameters", {"rope_type": "default", "rope_theta": 10000.0})
    return config


def ministral3(config):
    config.pop("layer_types", None)
    config.pop("rope_theta", None)
    config["sliding_window"] = draw.choice([None, 5])
    config["rope_parameters"] = {
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 5,
        "llama_4_scaling_beta": 0.3, "mscale": 1.0, "mscale_all_dim": 1.0,
    }
    config["max_position_embeddings"] = 20
    return config


def old_gpt(*keys, width="n_inner", activation="activation_function", epsilon="layer_norm_epsilon", **more):
    def make():
        config = small(old(*keys, width=width, **{key: value() for key, value in more.items()}))
        config = with_epsilon(config, epsilon) if epsilon else config
        return activated(config, activation) if activation else config

    return make


def gpt_neox():
    config = small(old(width="intermediate_size", attention_bias=chance(), use_parallel_residual=chance()))
    config["hidden_size"] = config["num_attention_heads"] * 16
    return activated(with_epsilon(rope({**config, "rotary_pct": draw.choice([0.25, 0.5])}, scaled=False), "layer_norm_eps"))


def falcon():
    config = small(old("hidden_size", "num_attention_heads", "num_hidden_layers", bias=chance()))
    config["new_decoder_architecture"] = chance()
    if config["new_decoder_architecture"]:
        config["num_kv_heads"] = variants.divisor(config["num_attention_heads"])
        if chance():
            config["num_ln_in_parallel_attn"] = draw.choice([1, 2])
    else:
        config |= {"multi_query": chance(), "parallel_attn": chance()}
    return activated(with_epsilon(rope(config, scaled=False), "layer_norm_epsilon"), "activation")


def mpt():
    config = small(old("d_model", "n_heads", "n_layers", max_seq_len=64))
    config["n_heads"] = draw.choice([1, 2, 3, 4, 6])
    config["d_model"] = config["n_heads"] * 8
    attention = {}
    if chance():
        attention["softmax_scale"] = 0.3
    if chance():
        attention["clip_qkv"] = 0.8
    return with_epsilon({**config, "attn_config": attention}, "layer_norm_epsilon")


def bloom():
    config = small(old("hidden_size", "n_head", "n_layer"))
    config["n_head"] = draw.choice([1, 2, 3, 4, 6])
    config["hidden_size"] = config["n_head"] * 4
    return with_epsilon(config, "layer_norm_epsilon")


def opt():
    config = small(variants.opt())
    config |= {"do_layer_norm_before": True, "max_position_embeddings": 40}
    config.pop("word_embed_proj_dim", None)
    if chance():
        config["_remove_final_layer_norm"] = True
    return activated(config, "activation_function")


def vaultgemma(config):
    config |= {key: draw.choice([None, 2.0, 5.0]) for key in ("attn_logit_softcapping", "final_logit_softcapping")}
    return {**config, "query_pre_attn_scalar": draw.choice([9, 30])}


def experts(*names, count="num_experts", active="num_experts_per_tok", width="moe_intermediate_size", more=None, **options):
    """As dense(), with a mixture."""
    make_dense = dense(*names, **options)

    def make():
        config = variants.experts(make_dense(), count, active, width)
        return more(config) if more else config

    return make


def shared(*keys):
    return lambda config: {**config, **{key: draw.randint(1, 2) for key in keys if chance(0.8)}}


def grouped(config):
    groups, size = draw.randint(1, 3), draw.randint(2, 4)
    config |= {"n_routed_experts": groups * size, "n_group": groups, "topk_group": draw.randint(1, groups)}
    config["num_experts_per_tok"] = draw.randint(1, size * config["topk_group"])
    if chance():
        config["routed_scaling_factor"] = 1.7
    config = flags(shared("n_shared_experts")(config), "norm_topk_prob")
    return {**config, "first_k_dense_replace": draw.randint(0, 2)} if chance() else config


def qwen2_moe(config):
    config["shared_expert_intermediate_size"] = draw.randint(3, 20)
    if chance():
        config |= {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": draw.randint(0, 3)}
    if chance():
        config["decoder_sparse_step"] = draw.randint(1, 2)
    if chance():
        config["mlp_only_layers"] = [draw.randint(0, 2)]
    return config


def dots1(config):
    config = grouped(config)
    config["max_window_layers"] = draw.randint(0, 3)
    return config


def glm4_moe(config):
    return {**grouped(config), "num_nextn_predict_layers": 0}


def hunyuan_moe(config):
    return {**hunyuan(config), "tie_word_embeddings": False}


def ernie_moe(config):
    config = shared("moe_num_shared_experts")(config)
    if chance():
        config |= {"moe_layer_start_index": draw.randint(0, 2), "moe_layer_interval": draw.randint(1, 2)}
    return config


def minimax_m2(config):
    if "partial_rotary_factor" not in config and "partial_rotary_factor" not in config.get("rope_parameters", {}) and chance():
        config["rotary_dim"] = 4
    config["head_dim"] = 8
    return config


def mimo_v2(config):
    kv_heads, count = draw.randint(1, 2), config["num_hidden_layers"]
    config = grouped({**config, "num_attention_heads": 2 * kv_heads * draw.randint(1, 2), "num_key_value_heads": kv_heads})
    for key in ("first_k_dense_replace", "n_shared_experts", "rope_theta"):
        config.pop(key, None)
    parts = {"rope_type": "default", "partial_rotary_factor": draw.choice([0.334, 0.5])}
    return {
        **config, "head_dim": draw.choice([8, 12]), "v_head_dim": draw.choice([5, 8]), "num_nextn_predict_layers": 0,
        "layer_types": [draw.choice(["sliding_attention", "full_attention"]) for _ in range(count)],
        "mlp_layer_types": [draw.choice(["sparse", "dense"]) for _ in range(count)],
        "rope_parameters": {kind: {**parts, "rope_theta": base} for kind, base in (("full_attention", 9e3), ("sliding_attention", 70.0))},
    }


def llama4(config):
    config.setdefault("head_dim", 8)
    config["head_dim"] += config["head_dim"] % 2
    config |= {"intermediate_size_mlp": draw.randint(5, 30), "attention_chunk_size": draw.choice([3, 4]), "floor_scale": 3}
    config["num_experts_per_tok"] = min(config["num_experts_per_tok"], 3)
    if chance():
        config["interleave_moe_layer_step"] = 2
    if chance():
        config["no_rope_layers"] = [draw.randint(0, 1) for _ in range(config["num_hidden_layers"])]
    elif chance():
        config["no_rope_layer_interval"] = 2
    return flags(config, "use_qk_norm", "attn_temperature_tuning")


def two_kinds(count, shared=0):
    """Kinds of layers, the last one full, of which both stand before the ones that share, if they share both."""
    types = [draw.choice(["sliding_attention", "full_attention"]) for _ in range(count - 1)] + ["full_attention"]
    own = count - shared
    for kind in set(types[own:]) - set(types[:own]):
        types[draw.randrange(own)] = kind
    return two_kinds(count, shared) if set(types[own:]) - set(types[:own]) else types


def gemma4():
    config = small(flags(decoder(), "attention_bias", "use_double_wide_mlp"))
    count, heads = draw.randint(3, 5), config["num_attention_heads"]
    shared = draw.choice([0, 0, 1, 2])
    width = draw.choice([5, 8] if shared else [0, 5, 8])
    config |= {
        "num_hidden_layers": count, "layer_types": two_kinds(count, shared), "sliding_window": draw.choice([3, 5]),
        "head_dim": draw.choice([4, 8, 12]), "global_head_dim": draw.choice([8, 16, 24]), "num_kv_shared_layers": shared,
        "hidden_size_per_layer_input": width, "max_position_embeddings": 64,
    }
    if width:
        config["vocab_size_per_layer_input"] = config["vocab_size"]
    if chance():
        config |= {"attention_k_eq_v": True, "num_global_key_value_heads": variants.divisor(heads)}
    if chance():
        config = {**variants.experts(config, "num_experts", "top_k_experts", "moe_intermediate_size"), "enable_moe_block": True}
    if chance():
        full = {"rope_type": "proportional", "partial_rotary_factor": draw.choice([0.25, 0.5, 0.75]), "rope_theta": 1e6}
        if chance():
            full["factor"] = 3.0
        config["rope_parameters"] = {"full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": 70.0}}
    if chance():
        config["final_logit_softcapping"] = draw.choice([3.0, 30.0])
    return activated(with_epsilon(config, "rms_norm_eps"), "hidden_activation")


def gemma3n():
    config = small(flags(decoder(), "attention_bias", "altup_correct_scale"))
    count, streams, shared = draw.randint(3, 5), draw.randint(1, 4), draw.choice([0, 0, 1, 2])
    config["hidden_size"] = config["num_attention_heads"] * draw.choice([6, 10])
    config |= {
        "num_hidden_layers": count, "layer_types": two_kinds(count, shared), "sliding_window": draw.choice([3, 5]),
        "head_dim": draw.choice([4, 8, 12]), "num_kv_shared_layers": shared, "hidden_size_per_layer_input": draw.choice([5, 8]),
        "vocab_size_per_layer_input": config["vocab_size"] - draw.choice([0, 9]), "max_position_embeddings": 64,
        "laurel_rank": draw.randint(2, 9), "altup_num_inputs": streams, "altup_active_idx": draw.randrange(streams),
        "activation_sparsity_pattern": [draw.choice([0.0, 0.3, 0.95]) for _ in range(count)],
    }
    if chance():
        config["intermediate_size"] = [draw.choice([17, 23]) for _ in range(count)]
    if chance():
        config["rope_parameters"] = {
            "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 1e4},
            "sliding_attention": {"rope_type": "default", "rope_theta": 70.0},
        }
    elif chance():
        config |= {"rope_theta": 2e5, "rope_local_base_freq": 300.0}
    if chance():
        config["final_logit_softcapping"] = draw.choice([3.0, 30.0])
    return activated(with_epsilon(config, "rms_norm_eps"), "hidden_activation")


def gemma4_unified():
    """What the class knows of it: no embedding for each layer, no experts."""
    config = gemma4()
    left_out = ("per_layer_input", "num_experts", "top_k_experts", "moe", "enable_moe_block")
    return {key: value for key, value in config.items() if not any(part in key for part in left_out)}


def apertus(config):
    for key in ("rope_theta", "hidden_act"):
        config.pop(key, None)
    return config


def phimoe(config):
    config = {**config, "num_local_experts": draw.randint(2, 6), "num_experts_per_tok": 2, "router_jitter_noise": draw.choice([0.01, 0.2])}
    width = config["hidden_size"] // config["num_attention_heads"]
    config.pop("rope_theta", None)
    if chance():
        factors = {f"{name}_factor": [1 + draw.randint(0, 8) / 4 for _ in range(width // 2)] for name in ("short", "long")}
        config["rope_parameters"] = {
            "rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 32, "short_mscale": 1.25,
            "long_mscale": 1.25, **factors,
        }
        config |= {"original_max_position_embeddings": 32, "max_position_embeddings": 64}
    if chance():
        config["sliding_window"] = 4
    return flags(config, "lm_head_bias")


def mistral4():
    config = variants.latent(variants.experts(small(decoder(head_dim=False)), "n_routed_experts"))
    config = grouped({**config, "n_shared_experts": 1})
    config["n_shared_experts"] = draw.randint(1, 2)
    config["num_key_value_heads"] = config["num_attention_heads"]
    if chance(0.8):
        config["rope_parameters"] = {
            "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 5,
            "llama_4_scaling_beta": draw.choice([0.0, 0.3]), "mscale": 1.0, "mscale_all_dim": draw.choice([0.5, 1.0]),
            "beta_fast": 32.0, "beta_slow": 1.0,
        }
        config["max_position_embeddings"] = 20
    return flags(activated(with_epsilon(config, "rms_norm_eps")), "rope_interleave")


def exaone_moe(config):
    count = config["num_hidden_layers"]
    config = grouped(config)
    config["num_experts"] = config.pop("n_routed_experts")
    config["num_shared_experts"] = config.pop("n_shared_experts", 1)
    config["mlp_layer_types"] = [draw.choice(["sparse", "dense"]) for _ in range(count)]
    config.pop("first_k_dense_replace", None)
    config.setdefault("layer_types", ["full_attention"] * count)
    config.setdefault("head_dim", 8)
    return config


def hy_v3(config):
    config["mlp_layer_types"] = [draw.choice(["sparse", "dense"]) for _ in range(config["num_hidden_layers"])]
    config["num_shared_experts"] = draw.randint(1, 2)
    config.setdefault("head_dim", 8)
    if chance():
        config["router_scaling_factor"] = 1.5
    return config


def mellum(config):
    count = config["num_hidden_layers"]
    config["mlp_layer_types"] = [draw.choice(["sparse", "sparse", "dense"]) for _ in range(count)]
    for key in ("rope_theta", "rope_parameters"):
        config.pop(key, None)
    config.setdefault("head_dim", 8)
    if chance():
        full = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 8}
        config["rope_parameters"] = {"full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": 70.0}}
    return config


def afmoe(config):
    config.setdefault("head_dim", 8)
    config |= {"num_shared_experts": draw.randint(1, 2), "num_dense_layers": draw.randint(0, 2), "mup_enabled": chance()}
    return {**config, "route_scale": draw.choice([0.7, 2.5])} if chance() else config


def cohere2_moe(config):
    config.setdefault("head_dim", 8)
    config |= {"num_shared_experts": draw.randint(0, 2), "shared_expert_combination_strategy": draw.choice(["average", "sum"])}
    config |= {"expert_selection_fn": draw.choice(["softmax", "sigmoid"]), "prefix_dense_sliding_window_pattern": draw.randint(1, 2)}
    config |= {"prefix_dense_intermediate_size": draw.randint(5, 30), "logit_scale": draw.choice([0.25, 1.5])}
    config["mlp_layer_types"] = [draw.choice(["dense", "sparse", "sparse"]) for _ in range(config["num_hidden_layers"])]
    config.setdefault("layer_types", ["sliding_attention", "full_attention"] * config["num_hidden_layers"])
    config["layer_types"] = config["layer_types"][: config["num_hidden_layers"]]
    if chance(0.3):
        config["rms_norm_eps"] = 1e-3
    return flags(config, "norm_topk_prob")


def dbrx():
    config = small(variants.dbrx())
    config["d_model"] = config["n_heads"] * 8
    config["ffn_config"]["hidden_size"] = config["d_model"]
    config["attn_config"]["rope_theta"] = 500.0
    config["rope_parameters"] = {"rope_type": "default", "rope_theta": 500.0}
    config["max_seq_len"] = 64
    if chance():
        config["attn_config"]["clip_qkv"] = 0.8
    if chance():
        config["ffn_config"]["moe_normalize_expert_weights"] = draw.choice([None, 1.0])
    if chance():
        config["ffn_config"]["ffn_act_fn"] = {"name": draw.choice(["gelu", "relu"])}
    return config


STEP_TOWER = {
    "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14,
}


def step3p7():
    """Told by kinds of layers, or by lists, as published."""
    text = with_epsilon(small(decoder()), "rms_norm_eps")
    count, kv_heads = draw.randint(3, 5), draw.randint(1, 2)
    text |= {
        "model_type": "step3p5", "num_hidden_layers": count, "num_attention_heads": kv_heads * draw.randint(1, 3),
        "num_key_value_heads": kv_heads, "head_dim": draw.choice([8, 12]), "num_sliding_attention_heads": kv_heads * draw.randint(1, 3),
        "layer_types": [draw.choice(["sliding_attention", "full_attention"]) for _ in range(count)], "sliding_window": 4,
        "n_routed_experts": draw.randint(3, 6), "num_experts_per_tok": draw.randint(1, 3), "moe_intermediate_size": draw.randint(4, 12),
        "share_expert_dim": draw.randint(4, 12), "mlp_layer_types": [draw.choice(["dense", "sparse"]) for _ in range(count)],
        "pad_token_id": 1, "moe_router_scaling_factor": draw.choice([1.0, 3.0]), "max_position_embeddings": 64,
    }
    tied = text.pop("tie_word_embeddings")
    if chance():
        text |= {key: [draw.choice([0, 0.2, 0.5, None]) for _ in range(count)] for key in ("swiglu_limits", "swiglu_limits_shared")}
    if chance():
        text["query_pre_attn_scalar"] = 5
    if chance():
        full = {"rope_type": "default", "rope_theta": 9e3, "partial_rotary_factor": 0.5}
        text["rope_parameters"] = {"full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": 70.0}}
    else:
        full = [kind == "full_attention" for kind in text["layer_types"]]
        text["rope_theta"] = [9e3 if each else 70.0 for each in full]
        text["partial_rotary_factors"] = [0.5 if each else 1.0 for each in full]
        if chance():
            text["rope_scaling"] = {
                "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8,
            }
    return {"text_config": text, "vision_config": STEP_TOWER, "tie_word_embeddings": tied}


M3_TOWER = {
    "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 28, "patch_size": 14,
}


def minimax_m3():
    """Blocks of two or three keys, so that a short text has more of them than are picked."""
    text = with_epsilon(small(decoder()), "rms_norm_eps")
    count, kv_heads = draw.randint(2, 4), draw.choice([1, 2, 4])
    tied = text.pop("tie_word_embeddings")
    text |= {
        "model_type": "minimax_m3_vl_text", "num_hidden_layers": count, "num_attention_heads": kv_heads * draw.randint(1, 3),
        "num_key_value_heads": kv_heads, "head_dim": draw.choice([8, 12]), "num_local_experts": draw.randint(3, 6),
        "num_experts_per_tok": draw.randint(1, 3), "dense_intermediate_size": draw.randint(5, 20),
        "shared_intermediate_size": draw.randint(5, 20), "moe_layer_freq": [draw.randint(0, 1) for _ in range(count)],
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}, "max_position_embeddings": 64,
        "swiglu_limit": draw.choice([0.5, 7.0]), "routed_scaling_factor": draw.choice([1.0, 2.0]),
        "sparse_attention_config": {
            "use_sparse_attention": True, "sparse_index_dim": draw.choice([6, 8, 16]), "sparse_num_index_heads": kv_heads,
            "sparse_topk_blocks": draw.choice([2, 3]), "sparse_block_size": draw.choice([1, 2]), "sparse_local_block": draw.choice([1, 1, 2]),
            "sparse_attention_freq": [0] + [1] * (count - 1),
        },
    }
    return {"text_config": text, "vision_config": M3_TOWER, "tie_word_embeddings": tied}


def ling2(config):
    config = grouped(config)
    for theirs, ours in {"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts"}.items():
        config[ours] = config.pop(theirs, 1)
    for key in ("rope_parameters", "max_position_embeddings"):
        config.pop(key, None)
    config.setdefault("first_k_dense_replace", 0)
    config.setdefault("norm_topk_prob", True)
    config.setdefault("routed_scaling_factor", 2.5)
    config.setdefault("rms_norm_eps", 1e-6)
    return {
        **config, "rope_theta": draw.choice([1e4, 6e5]), "partial_rotary_factor": draw.choice([0.5, 1.0]), "hidden_act": "silu",
        "use_qk_norm": chance(), "head_dim": draw.choice([8, 16]), "max_position_embeddings": 64,
    }


TOWER = {
    "depth": 1, "hidden_size": 8, "intermediate_size": 6, "num_heads": 2, "in_channels": 3, "patch_size": 2,
    "temporal_patch_size": 2, "spatial_merge_size": 1,
}


def seeing(make, kind, **tower):
    """A text model beside a tower that no text meets: positions in three axes, which are one."""

    def made():
        text = {**make(), "model_type": f"{kind}_text"}
        width = text.get("head_dim", text["hidden_size"] // text["num_attention_heads"])
        tied = text.pop("tie_word_embeddings")
        text.pop("rope_theta", None)
        half = width // 2
        parameters = {"rope_type": "default", "rope_theta": 5e5, "mrope_section": [half - 2 * (half // 3), half // 3, half // 3]}
        vision = {**TOWER, "out_hidden_size": text["hidden_size"], **tower}
        return {"text_config": {**text, "rope_parameters": parameters}, "vision_config": vision, "tie_word_embeddings": tied}

    return made


def text_of(config):
    return config.get("text_config", config.get("llm_config", config))


def words_of(config):
    """Rows of the head, or those of them that are computed (Inkling)."""
    text = text_of(config)
    return text.get("unpadded_vocab_size") or text["vocab_size"]


BIASES = ("attention_bias", "mlp_bias")
MULTIPLIERS = ("embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier")
FAMILIES = {
    "exaone_moe": ("ExaoneMoeForCausalLM", experts(windows=True, count="n_routed_experts", more=exaone_moe)),
    "hy_v3": ("HYV3ForCausalLM", experts("attention_bias", "mlp_bias", more=hy_v3)),
    "mellum": ("MellumForCausalLM", experts("attention_bias", "norm_topk_prob", windows=True, more=mellum)),
    "apertus": ("ApertusForCausalLM", dense("attention_bias", head_dim=False, more=apertus)),
    "bailing_moe_v2": ("BailingMoeV2ForCausalLM", experts("use_qkv_bias", count="n_routed_experts", scaled=False, more=ling2)),
    "minimax_m3_vl": ("MiniMaxM3SparseForConditionalGeneration", minimax_m3),
    "mistral4": ("Mistral4ForCausalLM", mistral4),
    "phimoe": ("PhimoeForCausalLM", dense("attention_bias", head_dim=False, scaled=False, more=phimoe)),
    "step3p7": ("Step3p7ForConditionalGeneration", step3p7),
    "afmoe": ("AfmoeForCausalLM", experts("attention_bias", windows=True, more=afmoe)),
    "cohere2_moe": (
        "Cohere2MoeForCausalLM",
        experts("attention_bias", windows=True, scaled=False, width=None, epsilon="layer_norm_eps", more=cohere2_moe),
    ),
    "dbrx": ("DbrxForCausalLM", dbrx),
    "arcee": ("ArceeForCausalLM", dense(*BIASES)),
    "bloom": ("BloomForCausalLM", bloom),
    "cohere": ("CohereForCausalLM", dense("attention_bias", "use_qk_norm", head_dim=False, epsilon="layer_norm_eps", more=factors("logit_scale"))),
    "cohere2": ("Cohere2ForCausalLM", dense("attention_bias", windows=True, epsilon="layer_norm_eps", more=factors("logit_scale"))),
    "cwm": ("CwmForCausalLM", dense("mlp_bias", windows=True)),
    "ernie4_5": ("Ernie4_5ForCausalLM", dense("use_bias")),
    "dots1": ("Dots1ForCausalLM", experts("attention_bias", windows=True, count="n_routed_experts", more=dots1)),
    "ernie4_5_moe": (
        "Ernie4_5_MoeForCausalLM", experts("use_bias", count="moe_num_experts", active="moe_k", more=ernie_moe),
    ),
    "flex_olmo": ("FlexOlmoForCausalLM", experts("attention_bias", "norm_topk_prob", head_dim=False, width=None)),
    "glm4_moe": (
        "Glm4MoeForCausalLM",
        experts("attention_bias", "use_qk_norm", partial=True, count="n_routed_experts", more=glm4_moe),
    ),
    "granitemoe": (
        "GraniteMoeForCausalLM",
        experts("attention_bias", head_dim=False, count="num_local_experts", width=None, more=factors(*MULTIPLIERS)),
    ),
    "hunyuan_v1_moe": (
        "HunYuanMoEV1ForCausalLM", experts("attention_bias", scaled=False, active="moe_topk", width=None, more=hunyuan_moe),
    ),
    "llama4_text": ("Llama4ForCausalLM", experts("attention_bias", count="num_local_experts", width=None, more=llama4)),
    "mimo_v2_flash": (
        "MiMoV2FlashForCausalLM", experts("attention_bias", windows=True, scaled=False, count="n_routed_experts", more=mimo_v2),
    ),
    "minimax_m2": ("MiniMaxM2ForCausalLM", experts(partial=True, count="num_local_experts", width=None, more=minimax_m2)),
    "olmoe": (
        "OlmoeForCausalLM",
        experts("attention_bias", "norm_topk_prob", head_dim=False, width=None, more=factors("clip_qkv")),
    ),
    "qwen2_moe": ("Qwen2MoeForCausalLM", experts("qkv_bias", "norm_topk_prob", head_dim=False, more=qwen2_moe)),
    "solar_open": ("SolarOpenForCausalLM", experts("attention_bias", count="n_routed_experts", more=grouped)),
    "exaone4": ("Exaone4ForCausalLM", dense(windows=True, more=exaone4)),
    "falcon": ("FalconForCausalLM", falcon),
    "gemma": ("GemmaForCausalLM", dense("attention_bias")),
    "gemma3n_text": ("Gemma3nForCausalLM", gemma3n),
    "gemma4_text": ("Gemma4ForCausalLM", gemma4),
    "gemma4_unified_text": ("Gemma4UnifiedForCausalLM", gemma4_unified),
    "glm": ("GlmForCausalLM", dense("attention_bias", partial=True)),
    "glm4": ("Glm4ForCausalLM", dense("attention_bias", partial=True)),
    "gpt_bigcode": (
        "GPTBigCodeForCausalLM",
        old_gpt("n_embd", "n_head", "n_layer", multi_query=chance, scale_attn_weights=chance, n_positions=lambda: 33),
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", gpt_neox),
    "gptj": ("GPTJForCausalLM", old_gpt("n_embd", "n_head", "n_layer", rotary_dim=lambda: draw.choice([2, 4]), n_positions=lambda: 33)),
    "granite": ("GraniteForCausalLM", dense(*BIASES, head_dim=False, more=factors(*MULTIPLIERS))),
    "helium": ("HeliumForCausalLM", lambda: activated(with_epsilon(rope(small(variants.helium())), "rms_norm_eps"))),
    "hunyuan_v1_dense": ("HunYuanDenseV1ForCausalLM", dense("attention_bias", scaled=False, more=hunyuan)),
    "hyperclovax": ("HyperCLOVAXForCausalLM", dense(*BIASES, "use_post_norm", head_dim=False, more=factors(*MULTIPLIERS))),
    "jais2": ("Jais2ForCausalLM", dense(*BIASES, head_dim=False, epsilon="layer_norm_eps")),
    "ministral": ("MinistralForCausalLM", dense(windows=True, scaled=False, more=ministral)),
    "ministral3": ("Ministral3ForCausalLM", dense(windows=True, scaled=False, more=ministral3)),
    "mpt": ("MptForCausalLM", mpt),
    "nemotron": ("NemotronForCausalLM", dense(*BIASES, partial=True, epsilon="norm_eps")),
    "olmo": ("OlmoForCausalLM", dense("attention_bias", head_dim=False, epsilon="unused_eps", more=factors("clip_qkv"))),
    "olmo3": ("Olmo3ForCausalLM", dense("attention_bias", head_dim=False, windows=True, more=olmo3)),
    "opt": ("OPTForCausalLM", opt),
    "persimmon": ("PersimmonForCausalLM", dense("qk_layernorm", kv_heads=False, partial=True, epsilon="layer_norm_eps")),
    "phi": ("PhiForCausalLM", dense("qk_layernorm", partial=True, epsilon="layer_norm_eps")),
    "seed_oss": ("SeedOssForCausalLM", dense(*BIASES, "attention_out_bias")),
    "smollm3": ("SmolLM3ForCausalLM", dense(*BIASES, head_dim=False, windows=True, more=smollm3)),
    "stablelm": (
        "StableLmForCausalLM",
        dense("use_qkv_bias", "qk_layernorm", "use_parallel_residual", partial=True, epsilon="layer_norm_eps"),
    ),
    "starcoder2": ("Starcoder2ForCausalLM", dense("use_bias", head_dim=False, windows=True, epsilon="norm_epsilon")),
    "qwen2_5_vl": ("Qwen2_5_VLForConditionalGeneration", seeing(dense(head_dim=False, scaled=False), "qwen2_5_vl")),
    "qwen3_vl": (
        "Qwen3VLForConditionalGeneration",
        seeing(dense("attention_bias", scaled=False), "qwen3_vl", num_position_embeddings=4, deepstack_visual_indexes=[0]),
    ),
    "qwen3_vl_moe": (
        "Qwen3VLMoeForConditionalGeneration",
        seeing(experts("attention_bias", scaled=False), "qwen3_vl_moe", num_position_embeddings=4, deepstack_visual_indexes=[0]),
    ),
    "baichuan": ("BaiChuanForCausalLM", dense(head_dim=False, kv_heads=False)),
    "mimo": ("MiMoForCausalLM", dense(more=lambda config: {**config, "head_dim": draw.choice([6, 8])})),
    "internlm2": ("InternLM2ForCausalLM", dense(head_dim=False, more=lambda config: {**config, "bias": chance()})),
    "minicpm": (
        "MiniCPMForCausalLM",
        dense(head_dim=False, more=lambda config: {**config, "scale_emb": 3, "scale_depth": 1.4, "dim_model_base": 7}),
    ),
    "vaultgemma": (
        "VaultGemmaForCausalLM",
        lambda: vaultgemma(activated(dense("attention_bias", windows=True)(), "hidden_activation")),
    ),
}


from . import newer, own_layers, rules_2026, sighted  # noqa: E402, which take functions from above

FAMILIES |= (hybrids.FAMILIES | newer.KIN | own_layers.KIN | rules_2026.KIN | rules_2026.behind_mistral3(mistral4)
             | sighted.KIN | {"kimi_k3": ("KimiLinearForCausalLM", kimi_k3.config)})


# Families without a class in `transformers`: the class that computes the same, under which config, and its weights out of
# theirs. Sources: the modeling code that is published with them.


def as_llama(config, **more):
    return {**config, "model_type": "llama", "architectures": ["LlamaForCausalLM"], **more}


def as_qwen2(config):
    return {**config, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}


def as_granite(config):
    width = config["hidden_size"] // config["num_attention_heads"]
    return {
        **config, "model_type": "granite", "architectures": ["GraniteForCausalLM"], "embedding_multiplier": config["scale_emb"],
        "residual_multiplier": config["scale_depth"] / config["num_hidden_layers"] ** 0.5,
        "logits_scaling": config["hidden_size"] / config["dim_model_base"], "attention_multiplier": width**-0.5,
    }


def sizes(config):
    heads, kv_heads = config["num_attention_heads"], config.get("num_key_value_heads", config["num_attention_heads"])
    return heads, kv_heads, config["hidden_size"] // heads


INTERNLM2 = {
    "model.tok_embeddings": "model.embed_tokens", "output.": "lm_head.", ".attention.wo": ".self_attn.o_proj",
    ".feed_forward.w1": ".mlp.gate_proj", ".feed_forward.w3": ".mlp.up_proj", ".feed_forward.w2": ".mlp.down_proj",
    ".attention_norm": ".input_layernorm", ".ffn_norm": ".post_attention_layernorm",
}


def renamed(name, names):
    for ours, theirs in names.items():
        name = name.replace(ours, theirs)
    return name


def of_internlm2(config, tensors):
    """wqkv: the queries of a key head, its key, its value, then those of the next."""
    heads, kv_heads, width = sizes(config)
    made = {}
    for name, tensor in tensors.items():
        if ".wqkv." in name:
            rows = tensor.unflatten(0, (kv_heads, heads // kv_heads + 2, width))
            for letter, part in (("q", rows[:, :-2]), ("k", rows[:, -2]), ("v", rows[:, -1])):
                made[name.replace("attention.wqkv", f"self_attn.{letter}_proj")] = part.flatten(0, part.dim() - (tensor.dim()))
        else:
            made[renamed(name, INTERNLM2)] = tensor
    return made


def of_baichuan(config, tensors):
    made = {}
    for name, tensor in tensors.items():
        if "W_pack" in name:
            for letter, part in zip("qkv", tensor.chunk(3)):
                made[name.replace("W_pack", f"{letter}_proj")] = part
        else:
            made[name] = tensor
    return made


LING2 = {"model.word_embeddings": "model.embed_tokens", ".attention.dense": ".self_attn.o_proj", "gate.expert_bias": "gate.e_score_correction_bias",
         ".attention.query_layernorm": ".self_attn.q_norm", ".attention.key_layernorm": ".self_attn.k_norm"}


def as_glm4_moe(config):
    return {
        **config, "model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "n_routed_experts": config["num_experts"],
        "n_shared_experts": config["num_shared_experts"], "attention_bias": config.get("use_qkv_bias", False), "num_nextn_predict_layers": 0,
        "rope_parameters": {
            "rope_type": "default", "rope_theta": config["rope_theta"], "partial_rotary_factor": config["partial_rotary_factor"],
        },
    }


def of_ling2(config, tensors):
    """query_key_value: all queries, all keys, all values."""
    heads, kv_heads, width = config["num_attention_heads"], config.get("num_key_value_heads", config["num_attention_heads"]), config["head_dim"]
    made = {}
    for name, tensor in tensors.items():
        if "query_key_value" in name:
            for letter, part in zip("qkv", tensor.split([heads * width, kv_heads * width, kv_heads * width])):
                made[name.replace("attention.query_key_value", f"self_attn.{letter}_proj")] = part
        else:
            made[renamed(name, LING2)] = tensor
    return made


def shapes_of_ling2(config, shapes):
    back = {theirs: ours for ours, theirs in LING2.items()}
    made = {}
    for name, shape in shapes.items():
        if re.search(r"[kv]_proj", name):
            continue
        if "q_proj" in name:
            kv_heads = config.get("num_key_value_heads", config["num_attention_heads"])
            rows = shape[0] + 2 * kv_heads * config["head_dim"]
            made[name.replace("self_attn.q_proj", "attention.query_key_value")] = (rows, *shape[1:])
        else:
            made[renamed(name, back)] = shape
    return made


def shapes_of_internlm2(config, shapes):
    heads, kv_heads, width = sizes(config)
    back = {theirs: ours for ours, theirs in INTERNLM2.items()}
    made = {}
    for name, shape in shapes.items():
        if re.search(r"[kv]_proj", name):
            continue
        if "q_proj" in name:
            made[name.replace("self_attn.q_proj", "attention.wqkv")] = ((heads + 2 * kv_heads) * width, *shape[1:])
        else:
            made[renamed(name, back)] = shape
    return made


def shapes_of_baichuan(config, shapes):
    made = {name: shape for name, shape in shapes.items() if not re.search(r"[kqv]_proj", name)}
    for name, shape in shapes.items():
        if "q_proj" in name:
            made[name.replace("q_proj", "W_pack")] = (3 * shape[0], *shape[1:])
    return made


TWINS = {
    "internlm2": (lambda config: as_llama(config, attention_bias=config["bias"]), shapes_of_internlm2, of_internlm2),
    "baichuan": (as_llama, shapes_of_baichuan, of_baichuan),
    "mimo": (as_qwen2, lambda config, shapes: shapes, lambda config, tensors: tensors),
    "bailing_moe_v2": (as_glm4_moe, shapes_of_ling2, of_ling2),
    "minicpm": (as_granite, lambda config, shapes: shapes, lambda config, tensors: tensors),
}


from . import hub_code, mistral_large3, mistral_native, own_code, own_code_2023, own_mixtures, published, unusual  # noqa: E402  of what stands above

TWINS |= hybrids.TWINS
FAMILIES |= own_code.FAMILIES | own_code_2023.FAMILIES | own_mixtures.FAMILIES | mistral_large3.FAMILIES | mistral_native.FAMILIES | published.FAMILIES | hub_code.FAMILIES
TWINS |= own_code.TWINS | own_code_2023.TWINS | own_mixtures.TWINS | mistral_large3.TWINS | mistral_native.TWINS | hub_code.TWINS
FAMILIES |= unusual.families(FAMILIES)


def twin_of(config):
    return TWINS[config["model_type"]][0](config) if config["model_type"] in TWINS else config


def config_of(family):
    architecture, make = FAMILIES[family]
    return {"architectures": [architecture], "model_type": family, **make()}


# What `transformers` computes.

# A layer's children -> the tap that is their output; those of a family before those of all.
COMMON = {
    "input_layernorm": "attn_norm", "ln_1": "attn_norm", "norm_1": "attn_norm", "ln_attn": "attn_norm",
    "self_attn_layer_norm": "attn_norm", "ln_2": "mlp_norm", "norm_2": "mlp_norm", "ln_mlp": "mlp_norm",
    "final_layer_norm": "mlp_norm", "post_attention_layernorm": "mlp_norm", "self_attn": "attn_out", "attention": "attn_out",
    "attn": "attn_out", "self_attention": "attn_out", "mlp": "mlp_out", "block_sparse_moe": "mlp_out", "feed_forward": "mlp_out", "pre_feedforward_layernorm": "mlp_norm",
}
AFTER = {"post_attention_layernorm": "attn_post_norm", "post_feedforward_layernorm": "mlp_post_norm"}
OF_FAMILY = {
    "exaone4": AFTER, "gemma3_text": AFTER, "olmo3": AFTER, "flex_olmo": AFTER,
    "glm4": {"post_self_attn_layernorm": "attn_post_norm", "post_mlp_layernorm": "mlp_post_norm"},
    "gemma3n_text": {**AFTER, "laurel": "laurel", "post_per_layer_input_norm": "own_input"},
    "gemma4_text": {
        **AFTER, "post_feedforward_layernorm_1": "dense_norm", "post_feedforward_layernorm_2": "experts_norm",
        "pre_feedforward_layernorm_2": "experts_in", "experts": "experts_out", "post_per_layer_input_norm": "own_input",
    },
    "afmoe": {
        "post_attention_layernorm": "attn_post_norm", "pre_mlp_layernorm": "mlp_norm", "post_mlp_layernorm": "mlp_post_norm",
    },
    "dbrx": {"ffn": "mlp_out"},
    "apertus": {"attention_layernorm": "attn_norm", "feedforward_layernorm": "mlp_norm"},
    "bloom": {"self_attention": None, "mlp": None},  # the sums are theirs
    "mpt": {"ffn": None},
    "falcon": {"mlp": None},  # to which attention's output is added in place
}
OF_FAMILY["gemma4_unified_text"] = OF_FAMILY["gemma4_text"]
OF_FAMILY |= published.TAPS | newer.TAPS | own_layers.TAPS | rules_2026.TAPS | sighted.TAPS
TURNED = ("deepseek_v3", "mistral4", "axk2", "bailing_hybrid", "dots3_note_text", *rules_2026.TURNED)  # rotated parts of queries lie in another order there
SCALED_BEFORE = ("opt",)  # queries, which others scale by their scores


@contextmanager
def recorded(model):
    taken, handles, kind = {}, [], model.config.model_type
    base = getattr(model, "model", model.base_model)
    base = getattr(base, "language_model", base)
    base = base.decoder if kind == "opt" else base
    layers = next(getattr(base, name) for name in ("layers", "h", "blocks") if hasattr(base, name))

    def of_tokens(value):
        """Streams [streams, 1, tokens, width] side by side."""
        return value[:, 0].transpose(0, 1).flatten(1) if kind == "gemma3n_text" and value.dim() == 4 else value

    def keep(name, module):
        def hook(_module, _inputs, output):
            value = output[0] if isinstance(output, (tuple, list)) else output
            taken[name] = of_tokens(value).detach().clone()

        handles.append(module.register_forward_hook(hook))

    def keep_input(name, module):
        def hook(_module, inputs, kwargs):
            taken[name] = of_tokens(inputs[0] if inputs else kwargs["hidden_states"]).detach().clone()

        handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    keep_input("embed", layers[0])
    for index, layer in enumerate(layers):
        keep(f"layers.{index}.out", layer)
        for child, module in layer.named_children():
            tap = {**COMMON, **OF_FAMILY.get(kind, {}), **hybrids.taps_of(kind, layer), **own_mixtures.taps_of(layer),
                   **own_layers.taps_of(kind, layer), **sighted.taps_of(layer)}.get(child)
            if tap and type(module) is not torch.nn.Identity and not getattr(module, "silent", False):
                keep(f"layers.{index}.{tap}", module)
        of_layer = f"layers.{index}."
        for within in (hybrids.keep_within, published.keep_within):
            within(kind, layer, lambda tap, m, at=of_layer: keep(at + tap, m), lambda tap, m, at=of_layer: keep_input(at + tap, m))
        if hasattr(layer, "self_attn"):
            own_mixtures.keep_within(layer, lambda tap, m, at=of_layer: keep(at + tap, m))
    for name in ("norm", "final_layernorm", "ln_f", "final_layer_norm", "norm_f", "final_norm", "layer_norm", "layernorm", "hyper_connection_mixer", "ln_out", "out_norm"):
        if getattr(base, name, None) is not None:
            keep("final_norm", getattr(base, name))
    source = sys.modules[type(model).__module__]
    plain = getattr(source, "eager_attention_forward", None)

    def attention(module, query, key, value, *args, **kwargs):
        result = plain(module, query, key, value, *args, **kwargs)
        of = {"q": query, "k": key, "v": value}
        if kind in SCALED_BEFORE:
            del of["q"]
        if getattr(module, "is_kv_shared_layer", False):
            of = {"q": query}
        if hasattr(module, "kv_a_layernorm"):
            of = {"q": query}  # the rest is of a latent, which is kept
        if kind in TURNED:
            of = {}
        if hasattr(model.config, "rope_head_dim"):  # K2 Horizon's lie in another order in its twin
            of = {"v": value}
        if getattr(model.config, "heads_in_pairs", False):  # Mistral's own files: element 2i + j is j·half + i in its twin
            of |= {name: of[name].unflatten(-1, (2, -1)).transpose(-1, -2).flatten(-2) for name in ("q", "k")}
        if module.layer_idx is None or module.layer_idx < 0:  # a block of several layers
            return result
        if kind == "diffllama":  # the second of two calls
            del of["v"]
        for name, tensor in own_layers.as_seen(kind, model.config, of).items():
            taken[f"layers.{module.layer_idx}.{name}"] = tensor[0].transpose(0, 1).detach().clone()
        if kind != "diffllama":
            taken[f"layers.{module.layer_idx}.attn_context"] = result[0][0].detach().clone()
        return result

    if plain:
        source.eager_attention_forward = attention
    try:
        yield taken
    finally:
        if plain:
            source.eager_attention_forward = plain
        for handle in handles:
            handle.remove()


@contextmanager
def exact_constants():
    """BLOOM writes the root of 2/pi with eight digits: what float32 keeps of it. RecurrentGemma adds up in float32, as a default
    value has it that was made long ago."""
    from transformers.models.bloom import modeling_bloom
    from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRglru

    scan, kept = RecurrentGemmaRglru._rnn_scan, modeling_bloom.bloom_gelu_forward
    scan.__defaults__, added_in = (torch.float64,), scan.__defaults__
    modeling_bloom.bloom_gelu_forward = lambda x: torch.nn.functional.gelu(x, approximate="tanh")
    try:
        yield
    finally:
        modeling_bloom.bloom_gelu_forward, scan.__defaults__ = kept, added_in


UNLISTED = {"mistral4": Mistral4ForCausalLM, **newer.UNLISTED}  # which AutoModelForCausalLM does not know


@torch.no_grad()
def run(folder, tokens, dtype):
    """{tap: numbers}, the logits among them."""
    options = {"dtype": dtype, "attn_implementation": "eager", "experts_implementation": "eager"}
    config = json.loads((Path(folder) / "config.json").read_text())
    if config.get("alibi"):  # which its eager code adds twice, once with the mask
        options["attn_implementation"] = "sdpa"
    kind = AutoModelForImageTextToText if "text_config" in config else AutoModelForCausalLM
    kind = UNLISTED.get(config["model_type"], kind)
    model = kind.from_pretrained(folder, **options).eval()
    own_code.mend(model, config, folder)
    hub_code.mend(model, config, folder)
    own_mixtures.mend(model, config, folder)
    own_layers.mend(model, folder)
    return run_model(newer.with_shared_blocks(model), tokens)


@torch.no_grad()
def run_model(model, tokens):
    with (rules_2026.recorded_passes if model.config.model_type == "hrm_text" else recorded)(model) as taken:
        taken["logits"] = model(torch.tensor([tokens]), use_cache=False).logits
    return {name: value.double().flatten() for name, value in taken.items()}


def as_computed(config, tensors):
    """The config and weights of the class that computes a family."""
    if config["model_type"] not in TWINS:
        return config, tensors
    return twin_of(config), TWINS[config["model_type"]][2](config, tensors)


def exactly(config, tensors, tokens, clear=False):
    """{tap: numbers} of a model that computes in double throughout; where `clear`, ValueError if rounding may turn a choice of Kimi K3's."""
    if config.get("attn_res_block_size"):
        model = kimi_k3.Model(config, tensors, torch.float64)
        exact = model.run(tokens)
        if clear and model.margin < 0.012:
            raise ValueError("a choice of experts that rounding may turn")
        return exact
    if config["model_type"] == "nemotron-nas":
        with everything_double():
            return run_model(decilm.loaded(config, tensors, torch.float64), tokens)
    if config["model_type"] in published.MODELS:
        with everything_double():
            return run_model(published.loaded(config, tensors, torch.float64), tokens)
    config, tensors = as_computed(config, tensors)
    with tempfile.TemporaryDirectory() as folder:
        put(folder, config, tensors, torch.float64)
        with everything_double(), exact_constants():
            return run(folder, tokens, torch.float64)


def in_bfloat16(config, tensors, tokens):
    if config.get("attn_res_block_size"):
        return kimi_k3.Model(config, tensors, torch.bfloat16).run(tokens)
    if config["model_type"] == "nemotron-nas":
        return run_model(decilm.loaded(config, tensors, torch.bfloat16), tokens)
    if config["model_type"] in published.MODELS:
        return run_model(published.loaded(config, tensors, torch.bfloat16), tokens)
    config, tensors = as_computed(config, tensors)
    with tempfile.TemporaryDirectory() as folder:
        put(folder, config, tensors, torch.float64)
        return run(folder, tokens, torch.bfloat16)


def truths(config, tensors, tokens):
    """What a model computes in double throughout, and its logits in bfloat16."""
    return exactly(config, tensors, tokens, clear=True), in_bfloat16(config, tensors, tokens)["logits"]


def put(folder, config, tensors, dtype=torch.bfloat16):
    (Path(folder) / "config.json").write_text(json.dumps(config, indent=1))
    save_file({n: t.to(dtype).contiguous() for n, t in tensors.items()}, Path(folder) / "model.safetensors", {"format": "pt"})
