#!/usr/bin/env python3
"""Holds `assay paramcount --tensors` against transformers on random odd variants of each family.

    data/check_family_variants.py build/release/cli/assay [--count 40] [--seed 1] [family ...]

Sizes are drawn so that few are equal or even, options that add tensors are switched at random, layers get kinds at
random. For each variant the tensors that save_pretrained() would write (make_module_oracle.py) must be those that assay
lists: names, shapes, how often. What transformers itself refuses is counted, and shown once. Exits 1 on a difference.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import warnings

import transformers

from composed_variants import make_composed
from encoder_variants import make_encoders
from hearing_variants import make_hearing
from image_variants import make_images
from make_module_oracle import build, checkpoint_tensors
from more_variants import make_more
from scan_models import make_scans
from sighted_variants import make_sighted
from watcher_variants import make_watchers
from whole_variants import make_wholes
from writer_variants import make_writers

warnings.filterwarnings("ignore")
transformers.logging.set_verbosity_error()
draw = random.Random()


def divisor(number):
    return draw.choice([d for d in range(1, number + 1) if number % d == 0])


def chance(probability=0.5):
    return draw.random() < probability


# Parts of configs.


def decoder(head_dim=True, kv_heads=True, intermediate=True, layers="num_hidden_layers"):
    heads, dim = draw.choice([1, 2, 3, 4, 6]), draw.choice([4, 6, 8, 10])
    free = head_dim and chance()  # the width of heads does not follow from that of the model
    config = {
        "vocab_size": draw.randint(50, 300),
        "hidden_size": 4 * draw.randint(3, 20) if free else heads * dim,
        layers: draw.randint(1, 7),
        "num_attention_heads": heads,
        "tie_word_embeddings": chance(),
        "pad_token_id": None,
    }
    if kv_heads:
        config["num_key_value_heads"] = divisor(heads)
    if free or (head_dim and chance()):
        config["head_dim"] = dim
    if intermediate:
        config["intermediate_size"] = draw.randint(5, 90)
    return config


def old_decoder(hidden="hidden_size", heads="num_attention_heads", layers="num_hidden_layers", width=None, **more):
    count = draw.randint(1, 4)
    config = {
        "vocab_size": draw.randint(50, 300),
        hidden: count * draw.choice([4, 8]),
        heads: count,
        layers: draw.randint(1, 5),
        "tie_word_embeddings": chance(),
    }
    if width and chance(0.6):
        config[width] = draw.randint(5, 90)
    return {**config, **more}


def flags(config, *names):
    return {**config, **{name: chance() for name in names if chance(0.7)}}


def experts(config, count="num_experts", active="num_experts_per_tok", width="moe_intermediate_size", shared=None):
    number = draw.randint(2, 9)
    config = {**config, count: number, active: draw.randint(1, number)}
    if width:
        config[width] = draw.randint(3, 40)
    if shared and chance(0.8):
        config[shared] = draw.randint(1, 3)
    return config


def kinds(config, key="layer_types", of=("sliding_attention", "full_attention"), probability=0.6):
    if chance(probability):
        config[key] = [draw.choice(of) for _ in range(config["num_hidden_layers"])]
    return config


def sparse_kinds(config):
    return kinds(config, "mlp_layer_types", ("dense", "sparse"), 0.5)


LINEAR = ("linear_attention", "full_attention")


def latent(config, with_q_rank=None):
    ranked = chance() if with_q_rank is None else with_q_rank
    return flags(
        {
            **{key: value for key, value in config.items() if key != "head_dim"},
            "q_lora_rank": draw.randint(4, 20) if ranked else None,
            "kv_lora_rank": draw.randint(4, 20),
            "qk_rope_head_dim": 2 * draw.randint(1, 4),
            "qk_nope_head_dim": draw.randint(2, 9),
            "v_head_dim": draw.randint(2, 9),
            "num_key_value_heads": config["num_attention_heads"],
        },
        "attention_bias",
    )


def state_space(config):
    expand = draw.randint(1, 3)
    return flags(
        {
            **config,
            "mamba_expand": expand,
            "mamba_n_heads": divisor(expand * config["hidden_size"]),
            "mamba_n_groups": draw.randint(1, 3),
            "mamba_d_state": draw.randint(2, 9),
            "mamba_d_conv": draw.randint(2, 5),
        },
        "mamba_conv_bias",
        "mamba_proj_bias",
    )


def delta_net(config):
    keys = draw.randint(1, 3)
    config.setdefault("head_dim", 8)
    return {
        **config,
        "linear_num_key_heads": keys,
        "linear_num_value_heads": keys * draw.randint(1, 3),
        "linear_key_head_dim": draw.randint(2, 8),
        "linear_value_head_dim": draw.randint(2, 8),
        "linear_conv_kernel_dim": draw.randint(2, 5),
    }


PLAIN_ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}

# One function a family.


def diffllama():
    config = flags(decoder(kv_heads=False), "attention_bias")
    even = config["num_attention_heads"] * 2  # heads come in pairs
    if "head_dim" not in config:
        config["hidden_size"] *= 2
    return {**config, "num_attention_heads": even, "num_key_value_heads": draw.choice([n for n in (2, even) if even % n == 0])}


def laguna():
    config = experts(decoder(), shared=None)
    config["head_dim"] = draw.choice([4, 6, 8])
    config["shared_expert_intermediate_size"] = draw.randint(3, 40)
    if chance():
        many = [config["num_key_value_heads"] * n for n in (1, 2, 3)]
        config["num_attention_heads_per_layer"] = [draw.choice(many) for _ in range(config["num_hidden_layers"])]
    if chance():
        config["gating"] = draw.choice([True, "per-head", "per-element"])
    return flags(sparse_kinds(kinds(config)), "attention_bias")


def minimax():
    config = experts(decoder(), "num_local_experts", width=None)
    if chance():
        config["block_size"] = draw.randint(3, 9)
    return kinds(config, of=LINEAR)


def deepseek_like(dense_first=False, **options):
    config = latent(experts(decoder(head_dim=False), "n_routed_experts", shared="n_shared_experts"), **options)
    if dense_first:
        return {**config, "first_k_dense_replace": draw.randint(0, 3)}
    return sparse_kinds(config)


def ernie4_5_moe():
    config = experts(decoder(head_dim=False), "moe_num_experts", "moe_k", shared="moe_num_shared_experts")
    if chance():
        config["moe_layer_start_index"] = draw.randint(0, 3)
    if chance():
        config["moe_layer_end_index"] = draw.choice([-1, max(0, config["num_hidden_layers"] - 2)])
    if chance():
        config["moe_layer_interval"] = draw.randint(1, 3)
    return flags(config, "use_bias")


def dots1():
    config = experts(decoder(), "n_routed_experts")
    config.update(n_shared_experts=draw.randint(1, 3), first_k_dense_replace=draw.randint(0, 3))
    return flags(kinds(config), "attention_bias")


def afmoe():
    config = kinds(experts(decoder(), shared="num_shared_experts"))
    if chance():
        config["num_dense_layers"] = draw.randint(0, 3)
    return flags(config, "attention_bias")


def cohere2_moe():
    config = experts(decoder(), width=None)
    if chance():
        config["num_shared_experts"] = draw.randint(0, 2)
    if chance():
        config["prefix_dense_intermediate_size"] = draw.randint(5, 60)
    if chance():
        config["first_k_dense_replace"] = draw.randint(0, 3)
    return flags(sparse_kinds(kinds(config)), "attention_bias")


def granitemoe():
    return flags(experts(decoder(head_dim=False), "num_local_experts", width=None), "attention_bias")


def granitemoehybrid():
    config = state_space(experts(decoder(head_dim=False), "num_local_experts", width=None))
    if chance(0.3):
        config["num_local_experts"] = 0
    config["shared_intermediate_size"] = draw.randint(4, 40)
    return flags(kinds(config, of=LINEAR), "attention_bias")


def bamba():
    config = state_space(decoder(head_dim=False))
    layers = config["num_hidden_layers"]
    attending = sorted(draw.sample(range(layers), draw.randint(1, layers)))
    config["attn_layer_indices"] = draw.choice([None, attending])
    return flags(config, "attention_bias", "mlp_bias")


def falcon_h1():
    config = state_space(decoder())
    config["mamba_d_ssm"] = draw.choice([None, config["mamba_n_heads"] * draw.randint(2, 20)])
    return flags(config, "attention_bias", "mlp_bias", "mamba_rms_norm", "projectors_bias")


def lfm2():
    config = kinds({**decoder(head_dim=False), "conv_L_cache": draw.randint(2, 5)}, of=("conv", "full_attention"))
    layers = config["num_hidden_layers"]
    if "layer_types" not in config and chance():
        config["full_attn_idxs"] = sorted(draw.sample(range(layers), draw.randint(0, layers)))
    if chance():
        config["block_multiple_of"] = draw.choice([1, 8, 13])
    if chance():
        config["block_ffn_dim_multiplier"] = draw.choice([1.0, 1.3, 0.7])
    return flags(config, "conv_bias", "block_auto_adjust_ff_dim")


def lfm2_moe():
    config = {**experts(decoder(head_dim=False)), "conv_L_cache": draw.randint(2, 5)}
    config = kinds(config, of=("conv", "full_attention"), probability=1)
    if chance():
        config["num_dense_layers"] = draw.randint(0, 3)
    return flags(config, "conv_bias", "use_expert_bias")


def mamba():
    config = {
        "vocab_size": draw.randint(50, 300),
        "hidden_size": draw.randint(5, 60),
        "num_hidden_layers": draw.randint(1, 5),
        "state_size": draw.randint(2, 9),
        "conv_kernel": draw.randint(2, 5),
        "expand": draw.randint(1, 3),
        "tie_word_embeddings": chance(),
    }
    if chance():
        config["time_step_rank"] = draw.choice(["auto", draw.randint(1, 9)])
    return flags(config, "use_bias", "use_conv_bias")


def mamba2():
    config, heads, dim = mamba(), draw.randint(1, 6), draw.randint(2, 9)
    config.pop("time_step_rank", None)
    expand = draw.choice([e for e in (1, 2, 3) if heads * dim % e == 0])
    sizes = {"num_heads": heads, "head_dim": dim, "expand": expand, "hidden_size": heads * dim // expand}
    return {**config, **sizes, "n_groups": divisor(heads)}


def jamba():
    config = experts(decoder(head_dim=False), width=None)
    for key in ("attn_layer", "expert_layer"):
        config[f"{key}_period"] = draw.randint(1, 4)
        config[f"{key}_offset"] = draw.randint(0, config[f"{key}_period"] - 1)
    config.update(mamba_expand=draw.randint(1, 3), mamba_d_state=draw.randint(2, 9), mamba_d_conv=draw.randint(2, 5))
    if chance():
        config["mamba_dt_rank"] = draw.choice(["auto", 5])
    if chance(0.2):
        config.update(num_experts=1, num_experts_per_tok=1)
    return flags(config, "mamba_conv_bias", "mamba_proj_bias")


def longcat_flash():
    # The class allocates matrices for experts that return their input; no checkpoint holds them: none are drawn.
    config = experts(
        decoder(head_dim=False, intermediate=False, layers="num_layers"), "n_routed_experts", "moe_topk", None
    )
    config = latent(config, with_q_rank=True)
    config.update(
        ffn_hidden_size=draw.randint(4, 40),
        expert_ffn_hidden_size=draw.randint(4, 40),
        zero_expert_num=0,
        head_dim=config["qk_rope_head_dim"],
    )
    return flags(config, "router_bias")


def bailing_hybrid():
    config = latent(experts(decoder(head_dim=False), active="num_experts_per_token", shared="num_shared_experts"))
    for key in ("q_lora_rank", "attention_bias"):
        config.pop(key, None)
    config.update(num_expert_group=1, topk_group=1, linear_num_heads=draw.randint(1, 4))
    config.update(linear_head_dim=draw.randint(2, 8), linear_conv_kernel_dim=draw.randint(2, 5))
    if chance():
        config["first_k_dense_replace"] = draw.randint(0, 3)
    return kinds(config, of=LINEAR)


def dbrx():
    heads, dim, number = draw.choice([1, 2, 4]), draw.choice([4, 6]), draw.randint(2, 6)
    return {
        "vocab_size": draw.randint(50, 300),
        "d_model": heads * dim,
        "n_heads": heads,
        "n_layers": draw.randint(1, 4),
        "tie_word_embeddings": False,
        "attn_config": {"kv_n_heads": divisor(heads), "rope_theta": 1e4},
        "ffn_config": {
            "hidden_size": heads * dim,
            "ffn_hidden_size": draw.randint(4, 30),
            "moe_num_experts": number,
            "moe_top_k": draw.randint(1, number),
        },
    }


def opt():
    config = old_decoder(
        width="ffn_dim",
        max_position_embeddings=draw.randint(8, 50),
        enable_bias=chance(),
        do_layer_norm_before=chance(),
        pad_token_id=1,
    )
    if chance():
        config["word_embed_proj_dim"] = draw.randint(4, 30)
    return config


def gpt_neo():
    config = old_decoder("hidden_size", "num_heads", "num_layers", "intermediate_size")
    return {**config, "attention_types": [[["global"], config["num_layers"]]]}


def helium():
    config = flags(decoder(head_dim=False), "attention_bias", "mlp_bias")
    return {**config, "head_dim": config["hidden_size"] // config["num_attention_heads"]}


def qwen3_next():
    config = delta_net(experts(decoder()))
    config["shared_expert_intermediate_size"] = draw.randint(3, 20)
    kinds(config, of=LINEAR)
    if "layer_types" not in config:
        config["full_attention_interval"] = draw.randint(1, 4)
    if chance():
        config["decoder_sparse_step"] = draw.randint(1, 3)
    if chance():
        config["mlp_only_layers"] = [draw.randint(0, 4)]
    return flags(config, "attention_bias")


def qwen3_5_moe():
    config = delta_net(experts(decoder(intermediate=False)))
    config["shared_expert_intermediate_size"] = draw.randint(3, 20)
    return flags(kinds(config, of=LINEAR), "attention_bias")


def nemotron_h():
    config = experts(decoder(), "n_routed_experts")
    config.setdefault("head_dim", 8)
    layers = config.pop("num_hidden_layers")
    config.update(
        layers_block_type=[draw.choice(["mamba", "moe", "attention", "mlp"]) for _ in range(layers)],
        n_shared_experts=1,
        moe_shared_expert_intermediate_size=draw.randint(3, 20),
        n_group=1,
        topk_group=1,
        mamba_num_heads=draw.randint(1, 4),
        mamba_head_dim=draw.randint(2, 8),
        n_groups=1,
        ssm_state_size=draw.randint(2, 8),
        conv_kernel=draw.randint(2, 5),
    )
    if chance():
        config["moe_latent_size"] = draw.randint(3, 12)
    return flags(config, "attention_bias", "mlp_bias", "use_conv_bias", "use_bias")


def mimo_v2_flash():
    config = experts(decoder(), "n_routed_experts")
    config.setdefault("head_dim", 8)
    config.update(v_head_dim=draw.randint(2, 8), num_attention_heads=2 * config["num_key_value_heads"])
    return flags(sparse_kinds(kinds(config, probability=1)), "attention_bias")


def glm_moe_dsa():
    config = deepseek_like(with_q_rank=True)
    config.update(index_n_heads=draw.randint(1, 4), index_head_dim=config["qk_rope_head_dim"] + 2, index_topk=4)
    return {**config, "n_group": 1, "topk_group": 1}


def olmo_hybrid():
    config = kinds(decoder(), of=LINEAR)
    if chance():
        heads = draw.randint(1, 3)
        config.update(linear_num_key_heads=heads, linear_num_value_heads=heads * draw.randint(1, 2))
    if chance():
        config["linear_key_head_dim"] = draw.randint(2, 8)
    if chance():
        config["linear_value_head_dim"] = draw.randint(2, 8)
    return flags({**config, "linear_conv_kernel_dim": draw.randint(2, 5)}, "attention_bias")


def zamba():
    config = decoder(head_dim=False)
    expand = draw.randint(1, 3)
    # Where the head is not tied, the class ties no blocks either; no checkpoint is so.
    config.update(num_hidden_layers=draw.randint(3, 9), mamba_expand=expand, pad_token_id=0, tie_word_embeddings=True)
    config.update(n_mamba_heads=divisor(expand * config["hidden_size"]), mamba_d_state=draw.randint(2, 9))
    config.update(mamba_d_conv=draw.randint(2, 5))
    if chance():
        config["mamba_dt_rank"] = draw.choice(["auto", 5])
    if chance():
        config.update(attn_layer_period=draw.randint(1, 4), attn_layer_offset=0)
    if chance():
        config["attention_head_dim"] = draw.randint(2, 9)
    if chance():
        config["attention_hidden_size"] = 2 * config["hidden_size"]
    kinds(config, "layers_block_type", ("mamba", "hybrid"), 0.4)
    return flags(config, "mamba_conv_bias", "mamba_proj_bias")


def zamba2():
    config = kinds(zamba(), "layers_block_type", ("mamba", "hybrid"), 1)
    for key in ("attn_layer_period", "attn_layer_offset", "attention_head_dim", "attention_hidden_size"):
        config.pop(key, None)
    for key in ("mamba_dt_rank", "mamba_conv_bias", "mamba_proj_bias"):
        config.pop(key, None)
    if chance():
        config.update(num_mem_blocks=draw.randint(1, 3), adapter_rank=draw.randint(2, 9))
    if chance():
        config.pop("intermediate_size")
    config["mamba_ngroups"] = divisor(config["n_mamba_heads"])
    return flags(config, "add_bias_linear", "use_shared_attention_adapter", "use_mem_rope", "use_conv_bias")


def lfm3():
    config = kinds({**decoder(), "conv_L_cache": draw.randint(2, 5)}, of=("conv", "full_attention", "sliding_attention"))
    config.update(pad_token_id=0, head_dim=draw.choice([4, 8]))
    return flags(config, "conv_bias", "attention_bias", "use_sandwich_norm", "use_attention_gate")


def kolibri1():
    config = kinds(experts(decoder(intermediate=False)))
    return {**config, "head_dim": 8, "shared_expert_intermediate_size": draw.randint(3, 40)}


def flint():
    config = kinds(experts(decoder()))
    config["shared_expert_intermediate_size"] = draw.randint(3, 40)
    if chance():
        config["mlp_only_layers"] = draw.choice([[], [draw.randint(0, 4)]])
    if chance():
        config["decoder_sparse_step"] = draw.randint(1, 3)
    return flags({**config, "head_dim": draw.choice([4, 6, 8])}, "attention_bias")


def granitemoe_swa():
    config = kinds(experts(decoder(head_dim=False), "num_local_experts", width=None))
    if chance():
        config["shared_intermediate_size"] = draw.randint(0, 20)
    return flags(config, "attention_bias")


def indexed(config):
    config.update(index_n_heads=draw.randint(1, 4), index_head_dim=config["qk_rope_head_dim"] + 2, index_topk=4)
    return {**config, "n_group": 1, "topk_group": 1}


def axk2():
    config = indexed(deepseek_like(with_q_rank=True))
    if "mlp_layer_types" not in config and chance():
        config.update(first_k_dense_replace=draw.randint(0, 3), moe_layer_freq=draw.randint(1, 2))
    config.setdefault("n_shared_experts", 1)
    return {**config, "gated_norm_rank": draw.randint(2, 9)}


def hy_v4():
    config = indexed(deepseek_like(with_q_rank=True))
    config.update(hc_mult=draw.randint(2, 5), pad_token_id=0)
    config.setdefault("n_shared_experts", 1)
    return kinds(config, "indexer_types", ("full", "shared"))


def early(hidden="n_embd", heads="n_head", layers="n_layer", width=None, **more):
    return {**old_decoder(hidden, heads, layers, width), "tie_word_embeddings": True, **more}


def biogpt():
    return early(*("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size"),
                 max_position_embeddings=draw.randint(8, 50))


def neox_japanese():
    config = early("hidden_size", "num_attention_heads", "num_hidden_layers")
    return {**config, "intermediate_multiple_size": draw.randint(1, 5)}


def gemma3n_text():
    config = {**decoder(), "vocab_size_per_layer_input": draw.randint(50, 300), "hidden_size_per_layer_input": draw.randint(3, 30),
              "laurel_rank": draw.randint(2, 20), "altup_num_inputs": draw.randint(1, 5)}
    config.setdefault("head_dim", draw.choice([4, 6, 8]))
    config["hidden_size"] = config["num_attention_heads"] * draw.randint(3, 15)
    layers = config["num_hidden_layers"]
    config["num_kv_shared_layers"] = 0
    config["layer_types"] = [draw.choice(["sliding_attention", "full_attention"]) for _ in range(layers)]
    if layers > 3 and chance():
        config["num_kv_shared_layers"] = layers - 3
        config["layer_types"][:2] = ["sliding_attention", "full_attention"]
        if chance():
            config.pop("layer_types")
            config["num_hidden_layers"], config["num_kv_shared_layers"] = 9, draw.randint(1, 4)
    config["activation_sparsity_pattern"] = [draw.choice([0.0, 0.95]) for _ in range(config["num_hidden_layers"])]
    if chance():
        config["intermediate_size"] = [draw.choice([17, 23]) for _ in range(config["num_hidden_layers"])]
    return flags(config, "attention_bias")


def gemma3n():
    heads = draw.randint(1, 4)
    audio = {"hidden_size": heads * draw.choice([4, 6, 8]), "conf_num_attention_heads": heads, "conf_num_hidden_layers": draw.randint(1, 4),
             "conf_conv_kernel_size": draw.randint(2, 6), "input_feat_size": draw.randint(9, 60), "vocab_size": draw.randint(5, 50),
             "sscp_conv_channel_size": [draw.randint(2, 9), draw.randint(2, 9)],
             "sscp_conv_kernel_size": [[draw.randint(1, 3), draw.randint(1, 4)], [draw.randint(1, 3), draw.randint(1, 4)]],
             "sscp_conv_stride_size": [[2, draw.randint(1, 3)], [2, draw.randint(1, 3)]]}
    text = gemma3n_text()
    tied = text.pop("tie_word_embeddings")
    vision = {"hidden_size": draw.randint(5, 60), "vocab_size": draw.randint(5, 50)}
    return {"text_config": {**text, "model_type": "gemma3n_text"}, "audio_config": audio, "vision_config": vision, "tie_word_embeddings": tied}


def recurrent_gemma():
    config = decoder(head_dim=False)
    if chance():
        config["lru_width"] = config["num_attention_heads"] * draw.randint(2, 9)
    if chance():
        config["block_types"] = [draw.choice(["recurrent", "attention"]) for _ in range(draw.randint(1, 4))]
    config.update(conv1d_width=draw.randint(2, 5), pad_token_id=0)
    return flags(config, "attention_bias")


def rwkv():
    config = {"vocab_size": draw.randint(50, 300), "hidden_size": draw.randint(5, 60)}
    config.update(num_hidden_layers=draw.randint(1, 5), tie_word_embeddings=chance())
    for key in ("attention_hidden_size", "intermediate_size"):
        if chance():
            config[key] = draw.randint(5, 60)
    return config


def xlstm():
    heads = draw.choice([1, 2, 3, 4])
    config = {"vocab_size": draw.randint(50, 300), "hidden_size": heads * 10 * draw.randint(1, 9)}
    config.update(num_hidden_layers=draw.randint(1, 4), num_heads=heads)
    if chance():
        config["weight_mode"] = draw.choice(["single", "fused"])
    if chance():
        config.update(qk_dim_factor=draw.choice([0.5, 1.0]), v_dim_factor=draw.choice([0.5, 1.0, 2.0]))
    if chance():
        config.update(ffn_proj_factor=draw.choice([1.3, 2.667, 3.0]), ffn_round_up_to_multiple_of=draw.randint(1, 70))
    return flags(config, "use_bias")


def cohere_compass():
    config = kinds(decoder(head_dim=False), probability=1)
    rope = {kind: dict(PLAIN_ROPE["rope_parameters"]) for kind in set(config["layer_types"])}
    return flags({**config, "rope_parameters": rope, "pad_token_id": 0}, "attention_bias")


def doge():
    config = flags(decoder(head_dim=False), "is_moe", *BIASES)
    number = draw.randint(1, 5) ** 2
    return {**config, "num_experts": number + draw.randint(0, 2), "num_experts_per_tok": draw.randint(1, number)}


def modernbert_decoder():
    config = flags(decoder(head_dim=False, kv_heads=False), "norm_bias", "decoder_bias", "classifier_bias", *BIASES)
    return kinds({**config, "pad_token_id": 0, "tie_word_embeddings": True})


def hrm_text():
    config = decoder(kv_heads=False)
    return {**config, "head_dim": 8, "H_cycles": draw.randint(1, 3), "L_cycles": draw.randint(1, 3)}


def aria_text():
    config = experts(decoder(), "moe_num_experts", "moe_topk", None)
    return flags({**config, "moe_num_shared_experts": draw.randint(1, 3)}, *BIASES)


def jetmoe():
    config = experts(decoder(head_dim=False), "num_local_experts", width=None)
    for key in ("num_attention_heads", "head_dim"):
        config.pop(key, None)
    return {**config, "kv_channels": draw.choice([4, 6, 8])}


def zaya():
    config = experts(decoder(intermediate=False))
    config.update(head_dim=draw.choice([4, 6, 8]), router_hidden_size=draw.randint(3, 30))
    config.update(cca_time0=draw.randint(1, 3), cca_time1=draw.randint(1, 3), num_experts_per_tok=1)
    return flags(config, "attention_bias", "lm_head_bias")


def dots3_note():
    config = indexed(deepseek_like(with_q_rank=True))
    config.update(pad_token_id=0, shared_experts_intermediate_size=draw.randint(3, 30))
    config.setdefault("n_shared_experts", 1)
    heads, nope, rope = draw.randint(1, 4), draw.randint(2, 9), 2 * draw.randint(1, 3)
    window = dict(num_attention_heads=heads, num_key_value_heads=heads, head_dim=nope + rope)
    window.update(qk_nope_head_dim=nope, kv_lora_rank=draw.randint(4, 20), v_head_dim=draw.randint(2, 9))
    config.update({f"swa_{key}": value for key, value in window.items()}, swa_qk_rope_head_dim=rope)
    config.update(swa_q_lora_rank=draw.randint(4, 20), head_dim=config["qk_nope_head_dim"] + config["qk_rope_head_dim"])
    kinds(config, of=("sliding_attention", "full_attention", "indexed_attention"))
    return flags(config, "use_dsa")


def qwen4_exp():
    config = kinds(delta_net(experts(decoder(intermediate=False))), of=LINEAR, probability=1)
    config.update(head_dim=8, shared_expert_intermediate_size=draw.randint(3, 20))
    config.update(indexer_n_heads=draw.randint(1, 3), indexer_kv_heads=1, indexer_head_dim=10)
    config.update(indexer_budget=8, indexer_compress_ratio=4, hc_count=draw.randint(2, 4), hc_lowrank=draw.randint(2, 9))
    linear = [i + 1 for i, kind in enumerate(config["layer_types"]) if kind == "linear_attention"]
    if linear and chance(0.7):
        each, size = draw.randint(1, 3), draw.randint(2, 3)
        config.update(ple_layer_ids=draw.sample(linear, draw.randint(1, len(linear))), ngram_size=size)
        config.update(heads_per_ngram=each, ple_embed_dim=each * (size - 1) * draw.randint(2, 9), eos_token_id=1)
        config.update(ngram_vocab_size_base=draw.randint(20, 300), split_ngram_parts=draw.choice([1, 2, 4]))
        config.update(ple_conv_kernel_size=draw.randint(2, 5))
    return flags(config, "attention_bias")


def hy_v4_vl():
    heads = draw.choice([1, 2, 4])
    vision = {"hidden_size": 4 * heads * draw.randint(1, 3), "num_attention_heads": heads, "patch_size": draw.randint(2, 5)}
    vision.update(intermediate_size=draw.randint(5, 40), num_hidden_layers=draw.randint(1, 4), num_channels=draw.randint(1, 3))
    vision.update(out_hidden_size=draw.randint(5, 40), spatial_merge_size=draw.randint(1, 3))
    vision["max_image_size"] = vision["patch_size"] * draw.randint(2, 6) + draw.randint(0, 1)
    text = {key: value for key, value in hy_v4().items() if key != "tie_word_embeddings"}
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [text["qk_rope_head_dim"] // 2, 0, 0]}
    text["rope_parameters"] = rope
    return {"text_config": {**text, "model_type": "hy_v4_vl_text"}, "vision_config": vision, "tie_word_embeddings": chance()}


def inkling():
    config = sparse_kinds(experts(decoder(), "n_routed_experts", shared="n_shared_experts"))
    config.update(swa_num_attention_heads=config["num_key_value_heads"] * 2, head_dim=draw.choice([4, 6, 8]))
    config.update(swa_num_key_value_heads=config["num_key_value_heads"], swa_head_dim=draw.choice([4, 6, 8]))
    config.update(d_rel=draw.randint(2, 9), rel_extent=draw.randint(5, 30), sliding_window_size=draw.randint(5, 30))
    config["conv_kernel_size"] = draw.randint(2, 5)
    return kinds(config, of=("hybrid", "hybrid_sliding"))


def beam():
    config = sparse_kinds(experts(decoder()))
    config.update(n_group=1, topk_group=1)
    return kinds(config)


def lfm3_vl():
    heads, layers = draw.choice([1, 2, 4]), draw.randint(1, 5)
    vision = {"hidden_size": heads * draw.choice([4, 8]), "intermediate_size": draw.randint(5, 40), "in_channels": 2}
    vision.update(patch_size=draw.randint(2, 5), spatial_merge_size=draw.randint(1, 3), num_hidden_layers=layers)
    vision.update(temporal_patch_size=draw.randint(1, 3), num_attention_heads=heads, num_key_value_heads=divisor(heads))
    vision["conv_kernel_size"] = draw.choice([3, 5])
    kinds(vision, of=("conv", "full_attention"))
    text = {key: value for key, value in lfm3().items() if key != "tie_word_embeddings"}
    whole = {"text_config": {**text, "model_type": "lfm3"}, "vision_config": vision}
    return flags({**whole, "projector_hidden_size": draw.randint(5, 40)}, "projector_bias", "tie_word_embeddings")


def inkling_whole():
    sides = {"patch_size": draw.choice([4, 6, 10, 12]), "temporal_patch_size": draw.choice([1, 2, 4])}
    vision = {**sides, "num_channels": draw.randint(1, 3), "n_layers": draw.randint(2, 7)}
    audio = {"n_mel_bins": draw.randint(3, 9), "mel_vocab_size": draw.randint(3, 20)}
    text = {key: value for key, value in inkling().items() if key != "tie_word_embeddings"}
    return {"text_config": {**text, "model_type": "inkling_text"}, "vision_config": vision, "audio_config": audio}


def inkling2():
    config = inkling()
    for key in ("mlp_layer_types", "intermediate_size", "n_shared_experts", "tie_word_embeddings"):
        config.pop(key, None)
    return {**config, "unpadded_vocab_size": config["vocab_size"], "n_layers_per_attn_res_block": draw.randint(1, 3)}


def inkling2_loop():
    config = inkling2()
    step, count = config["n_layers_per_attn_res_block"], config["num_hidden_layers"]
    config["num_hidden_layers"] = count = max(count, 2 * step)
    config.pop("layer_types", None)
    first = step * draw.randint(1, count // step - 1)
    config.update(loop_layer_index_start=first, loop_layer_index_end=step * draw.randint(first // step + 1, count // step))
    return {**config, "loop_num_passes": draw.randint(1, 4), "loop_gate_rank": draw.randint(2, 9)}


def inkling2_whole(text_type, make):
    def of():
        heads = draw.choice([1, 2, 3])
        vision = {"hidden_size": 4 * heads * draw.randint(1, 4), "num_attention_heads": heads, "num_hidden_layers": draw.randint(1, 4)}
        vision.update(num_channels=draw.randint(1, 3), patch_size=draw.randint(2, 6), spatial_merge_size=draw.randint(1, 3))
        vision.update(posemb_grid_size=draw.randint(2, 6), projection_hidden_dim=draw.randint(5, 40), projector_bias=chance())
        vision.update({"intermediate_size": draw.randint(5, 60)} if chance() else {"mlp_ratio": draw.choice([1.5, 2.0, 3.0])})
        text = make()
        vision["text_hidden_size"] = text["hidden_size"]
        return {"text_config": {**text, "model_type": text_type}, "vision_config": vision}

    return of


def lara_mini():
    config = experts(decoder(intermediate=False), shared=None)
    keys = draw.choice([1, 2, 3])
    config.update(linear_num_key_heads=keys, linear_num_value_heads=keys * draw.randint(1, 3))
    config.update(linear_key_head_dim=draw.choice([4, 6, 8]), linear_value_head_dim=draw.choice([4, 6, 10]))
    config.update(linear_conv_kernel_dim=draw.randint(2, 5), shared_expert_intermediate_size=draw.randint(3, 40))
    config.setdefault("head_dim", 8)
    return flags(kinds(config, of=("linear_attention", "sliding_attention", "full_attention")), "attention_bias")


def mistral_large4():
    text = indexed(deepseek_like())
    text.pop("q_lora_rank")
    text.setdefault("n_shared_experts", 1)
    layers = text["num_hidden_layers"]
    kinds(text, "indexer_types", ("full", "shared"))
    if "indexer_types" in text:
        text["indexer_types"][0] = "full"
    if chance():
        text["no_rope_layers"] = [draw.randint(0, 1) for _ in range(layers)]
    if "mlp_layer_types" not in text and chance():
        text["first_k_dense_replace"] = draw.randint(0, 3)
    vision = {"model_type": "pixtral", "hidden_size": 16, "num_hidden_layers": draw.randint(1, 3), "num_attention_heads": 2}
    vision.update(intermediate_size=draw.randint(5, 40), patch_size=draw.randint(2, 6))
    whole = {"text_config": {**text, "model_type": "mistral_large4_text"}, "vision_config": vision}
    whole.update(spatial_merge_size=draw.randint(1, 3), tie_word_embeddings=text["tie_word_embeddings"])
    return flags(whole, "multimodal_projector_bias")


def simple(*names, **options):
    return lambda: flags(decoder(**options), *names)


BIASES = ("attention_bias", "mlp_bias")
def gemma4_assistant(text_type="gemma4_text"):
    def config():
        text = kinds(decoder())
        del text["tie_word_embeddings"]
        layers = text["num_hidden_layers"]
        text |= {"model_type": text_type, "num_kv_shared_layers": layers, "attention_bias": chance()}
        if text_type == "gemma4_text":
            text |= {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0}
        if "layer_types" in text:
            text["layer_types"][-1] = "full_attention"
        text["vocab_size"] = 7 * draw.randint(5, 30)
        return {"text_config": text, "backbone_hidden_size": draw.randint(5, 90), "use_ordered_embeddings": chance(),
                "num_centroids": 7, "tie_word_embeddings": True}

    return config


def muse_glimmer_assistant():
    config = decoder(head_dim=False)
    del config["tie_word_embeddings"], config["vocab_size"]
    config["head_dim"] = draw.choice([4, 6, 8])
    if chance():
        config["target_layer_ids"] = [draw.randint(0, 30) for _ in range(draw.randint(1, 6))]
    return kinds(config)


FAMILIES = {
    "afmoe": ("AfmoeForCausalLM", afmoe),
    "apertus": ("ApertusForCausalLM", simple("attention_bias", head_dim=False)),
    "apertus1p5_text": ("Apertus1p5TextForCausalLM", simple("attention_bias", head_dim=False)),
    "arcee": ("ArceeForCausalLM", simple(*BIASES)),
    "axk1": ("AXK1ForCausalLM", lambda: deepseek_like(with_q_rank=True)),
    "bailing_hybrid": ("BailingHybridForCausalLM", bailing_hybrid),
    "bamba": ("BambaForCausalLM", bamba),
    "bitnet": ("BitNetForCausalLM", simple("attention_bias", head_dim=False)),
    "bloom": ("BloomForCausalLM", lambda: old_decoder("hidden_size", "n_head", "n_layer")),
    "codegen": (
        "CodeGenForCausalLM",
        lambda: {
            **old_decoder("n_embd", "n_head", "n_layer", "n_inner"),
            "n_embd": draw.choice([16, 32]),
            "n_head": 4,
            "rotary_dim": 2,
            "tie_word_embeddings": False,
        },
    ),
    "cohere2_moe": ("Cohere2MoeForCausalLM", cohere2_moe),
    "cwm": ("CwmForCausalLM", lambda: kinds(decoder())),
    "dbrx": ("DbrxForCausalLM", dbrx),
    "dots1": ("Dots1ForCausalLM", dots1),
    "ernie4_5": ("Ernie4_5ForCausalLM", simple("use_bias")),
    "ernie4_5_moe": ("Ernie4_5_MoeForCausalLM", ernie4_5_moe),
    "exaone4": ("Exaone4ForCausalLM", lambda: kinds(decoder())),
    "exaone_moe": (
        "ExaoneMoeForCausalLM",
        lambda: sparse_kinds(kinds(experts(decoder(), shared="num_shared_experts"))),
    ),
    "falcon_h1": ("FalconH1ForCausalLM", falcon_h1),
    "falcon_mamba": ("FalconMambaForCausalLM", mamba),
    "flex_olmo": ("FlexOlmoForCausalLM", lambda: flags(experts(decoder(head_dim=False), width=None), "attention_bias")),
    "glm4_moe_lite": ("Glm4MoeLiteForCausalLM", deepseek_like),
    "glm_moe_dsa": ("GlmMoeDsaForCausalLM", glm_moe_dsa),
    "gpt_bigcode": (
        "GPTBigCodeForCausalLM",
        lambda: old_decoder("n_embd", "n_head", "n_layer", "n_inner", multi_query=chance(), n_positions=17),
    ),
    "gpt_neo": ("GPTNeoForCausalLM", gpt_neo),
    "gpt_neox": ("GPTNeoXForCausalLM", lambda: old_decoder(width="intermediate_size", attention_bias=chance())),
    "gptj": ("GPTJForCausalLM", lambda: old_decoder("n_embd", "n_head", "n_layer", "n_inner", rotary_dim=2)),
    "granite": ("GraniteForCausalLM", simple(*BIASES, head_dim=False)),
    "granitemoe": ("GraniteMoeForCausalLM", granitemoe),
    "granitemoehybrid": ("GraniteMoeHybridForCausalLM", granitemoehybrid),
    "granitemoeshared": (
        "GraniteMoeSharedForCausalLM",
        lambda: {**granitemoe(), "shared_intermediate_size": draw.choice([0, draw.randint(4, 40)])},
    ),
    "helium": ("HeliumForCausalLM", helium),
    "hunyuan_v1_dense": (
        "HunYuanDenseV1ForCausalLM",
        lambda: {"head_dim": 6, **flags(decoder(), "attention_bias"), **PLAIN_ROPE},
    ),
    "hunyuan_v1_moe": (
        "HunYuanMoEV1ForCausalLM",
        lambda: {"head_dim": 6, **flags(experts(decoder(), active="moe_topk", width=None), "attention_bias"), **PLAIN_ROPE},
    ),
    "hy_v3": ("HYV3ForCausalLM", lambda: flags(sparse_kinds(experts(decoder(), shared="num_shared_experts")), *BIASES)),
    "hyperclovax": ("HyperCLOVAXForCausalLM", simple(*BIASES, "use_post_norm", head_dim=False)),
    "jais2": ("Jais2ForCausalLM", simple(*BIASES, head_dim=False)),
    "jamba": ("JambaForCausalLM", jamba),
    "lfm2": ("Lfm2ForCausalLM", lfm2),
    "lfm2_moe": ("Lfm2MoeForCausalLM", lfm2_moe),
    "longcat_flash": ("LongcatFlashForCausalLM", longcat_flash),
    "mamba": ("MambaForCausalLM", mamba),
    "mamba2": ("Mamba2ForCausalLM", mamba2),
    "mellum": (
        "MellumForCausalLM",
        lambda: flags(sparse_kinds(kinds(experts(decoder(), "num_local_experts"))), "attention_bias"),
    ),
    "laguna": ("LagunaForCausalLM", laguna),
    "diffllama": ("DiffLlamaForCausalLM", diffllama),
    "granite_swa": ("GraniteSWAForCausalLM", lambda: flags(kinds(decoder()), *BIASES)),
    "minimax": ("MiniMaxForCausalLM", minimax),
    "mimo_v2_flash": ("MiMoV2FlashForCausalLM", mimo_v2_flash),
    "ministral": ("MinistralForCausalLM", lambda: {"head_dim": 6, **kinds(decoder()), **PLAIN_ROPE}),
    "ministral3": ("Ministral3ForCausalLM", lambda: kinds(decoder())),
    "mistral4": ("Mistral4ForCausalLM", lambda: deepseek_like(dense_first=True)),
    "mpt": ("MptForCausalLM", lambda: old_decoder("d_model", "n_heads", "n_layers", expansion_ratio=draw.randint(1, 5))),
    "nanochat": ("NanoChatForCausalLM", simple("attention_bias", head_dim=False)),
    "nemotron": ("NemotronForCausalLM", simple(*BIASES)),
    "nemotron_h": ("NemotronHForCausalLM", nemotron_h),
    "olmo": ("OlmoForCausalLM", simple("attention_bias", head_dim=False)),
    "olmoe": ("OlmoeForCausalLM", lambda: flags(experts(decoder(head_dim=False), width=None), "attention_bias")),
    "dots3_note_text": ("Dots3NoteForCausalLM", dots3_note),
    "qwen4_exp_text": ("Qwen4ExpForCausalLM", qwen4_exp),
    "inkling_text": ("InklingForCausalLM", inkling),
    "beam": ("BeamForCausalLM", beam),
    "lfm3_vl": ("Lfm3VlForConditionalGeneration", lfm3_vl),
    "inkling_mm_model": ("InklingForConditionalGeneration", inkling_whole),
    "inkling2_text": ("Inkling2ForCausalLM", inkling2),
    "inkling2_loop_text": ("Inkling2LoopForCausalLM", inkling2_loop),
    "inkling2": ("Inkling2ForConditionalGeneration", inkling2_whole("inkling2_text", inkling2)),
    "inkling2_loop": ("Inkling2LoopForConditionalGeneration", inkling2_whole("inkling2_loop_text", inkling2_loop)),
    "lara_mini": ("LaraMiniForCausalLM", lara_mini),
    "mistral_large4": ("MistralLarge4ForConditionalGeneration", mistral_large4),
    "openai-gpt": ("OpenAIGPTLMHeadModel", lambda: early(n_positions=draw.randint(8, 50))),
    "ctrl": ("CTRLLMHeadModel", lambda: early(width="dff")),
    "xglm": ("XGLMForCausalLM", lambda: early("d_model", "attention_heads", "num_layers", "ffn_dim")),
    "biogpt": ("BioGptForCausalLM", biogpt),
    "gpt_neox_japanese": ("GPTNeoXJapaneseForCausalLM", neox_japanese),
    "gemma3n": ("Gemma3nForConditionalGeneration", gemma3n),  # its tower asks for timm
    "gemma3n_text": ("Gemma3nForCausalLM", gemma3n_text),
    "recurrent_gemma": ("RecurrentGemmaForCausalLM", recurrent_gemma),
    "rwkv": ("RwkvForCausalLM", rwkv),
    "xlstm": ("xLSTMForCausalLM", xlstm),
    "emu3_text_model": ("Emu3ForCausalLM", lambda: {**simple(*BIASES, head_dim=False)(), "pad_token_id": 0}),
    "cohere_compass_text": ("CohereCompassForCausalLM", cohere_compass),
    "doge": ("DogeForCausalLM", doge),
    "modernbert-decoder": ("ModernBertDecoderForCausalLM", modernbert_decoder),
    "hrm_text": ("HrmTextForCausalLM", hrm_text),
    "aria_text": ("AriaTextForCausalLM", aria_text),
    "jetmoe": ("JetMoeForCausalLM", jetmoe),
    "zaya": ("ZayaForCausalLM", zaya),
    "olmo_hybrid": ("OlmoHybridForCausalLM", olmo_hybrid),
    "zamba": ("ZambaForCausalLM", zamba),
    "gemma4_assistant": ("Gemma4AssistantForCausalLM", gemma4_assistant()),
    "gemma4_unified_assistant": ("Gemma4UnifiedAssistantForCausalLM", gemma4_assistant("gemma4_unified_text")),
    "muse_glimmer_assistant": ("MuseGlimmerAssistantModel", muse_glimmer_assistant),
    "zamba2": ("Zamba2ForCausalLM", zamba2),
    "lfm3": ("Lfm3ForCausalLM", lfm3),
    "kolibri1": ("Kolibri1ForCausalLM", kolibri1),
    "flint": ("FlintForCausalLM", flint),
    "granitemoe_swa": ("GraniteMoeSWAForCausalLM", granitemoe_swa),
    "axk2": ("AXK2ForCausalLM", axk2),
    "hy_v4": ("HYV4ForCausalLM", hy_v4),
    "hy_v4_vl": ("HYV4VLForConditionalGeneration", hy_v4_vl),
    "opt": ("OPTForCausalLM", opt),
    "persimmon": ("PersimmonForCausalLM", simple("qk_layernorm", head_dim=False, kv_heads=False)),
    "phi": ("PhiForCausalLM", simple("qk_layernorm", head_dim=False)),
    "qwen3_5_moe_text": ("Qwen3_5MoeForCausalLM", qwen3_5_moe),
    "qwen3_5_text": ("Qwen3_5ForCausalLM", lambda: flags(kinds(delta_net(decoder()), of=LINEAR), "attention_bias")),
    "qwen3_next": ("Qwen3NextForCausalLM", qwen3_next),
    "seed_oss": ("SeedOssForCausalLM", simple(*BIASES, "attention_out_bias")),
    "smollm3": ("SmolLM3ForCausalLM", simple(*BIASES, head_dim=False)),
    "solar_open": (
        "SolarOpenForCausalLM",
        lambda: flags(
            experts(decoder(intermediate=False), "n_routed_experts", shared="n_shared_experts"), "attention_bias"
        ),
    ),
    "stablelm": (
        "StableLmForCausalLM",
        simple("use_qkv_bias", "qk_layernorm", "use_parallel_residual", head_dim=False),
    ),
    "vaultgemma": ("VaultGemmaForCausalLM", lambda: flags(kinds(decoder(head_dim=False)), "attention_bias")),
    "youtu": ("YoutuForCausalLM", lambda: latent(decoder(head_dim=False))),
}
FAMILIES.update(make_sighted(draw, decoder, flags))
FAMILIES.update(make_wholes(draw, decoder, experts, kinds, flags))
FAMILIES.update(make_hearing(draw, decoder, flags))
FAMILIES.update(make_more(draw, decoder, flags))
FAMILIES.update(make_encoders(draw, flags))
FAMILIES.update(make_images(draw, flags, FAMILIES))
FAMILIES.update(make_composed(draw, flags, FAMILIES))
FAMILIES.update(make_writers(draw, flags))
FAMILIES.update(make_scans(draw))
FAMILIES.update(make_watchers(draw, decoder, flags))


def pattern(name):
    return re.sub(r"(?<=\.)\d+(?=\.)|^\d+(?=\.)", "#", name)


def census_of_transformers(config):
    census = collections.Counter()
    for name, tensor in checkpoint_tensors(build(config)).items():
        census[pattern(name), "x".join(map(str, tensor.shape))] += 1
    return census


def census_of_assay(program, path):
    command = [program, "paramcount", str(path), "--tensors", "--format", "csv"]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode != 0:
        return listed.stderr.strip()
    census = collections.Counter()
    columns, *lines = (line.split(",") for line in listed.stdout.splitlines())
    for line in lines:
        row = dict(zip(columns, line))
        if row["storage"] == "own" and row["mtp"] == "no":
            census[pattern(row["name"]), row["shape"]] += 1
    return census


def show(config, ours, theirs):
    print("  " + json.dumps(config))
    if isinstance(ours, str):
        print("  " + ours)
        return
    for tensor in sorted(set(ours) | set(theirs)):
        if ours[tensor] != theirs[tensor]:
            print(f"  {tensor[0]} {tensor[1]}: assay {ours[tensor]}, transformers {theirs[tensor]}")


def check(family, program, count, folder):
    architecture, make = FAMILIES[family]
    compared = differing = 0
    refused = None
    for number in range(count):
        config = {"architectures": [architecture], "model_type": family, **make()}
        try:
            theirs = census_of_transformers(json.loads(json.dumps(config)))
        except Exception as error:  # whatever its validators say
            refused = refused or repr(error)[:120]
            continue
        path = folder / f"{family}-{number}.json"
        path.write_text(json.dumps(config))
        ours = census_of_assay(program, path)
        compared += 1
        if ours != theirs:
            differing += 1
            if differing == 1:
                show(config, ours, theirs)
    print(f"{family}: {compared} compared, {differing} differ" + (f"; refused: {refused}" if refused else ""), flush=True)
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("families", nargs="*")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_intermixed_args()
    draw.seed(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        differing = [
            check(family, options.program, options.count, pathlib.Path(folder))
            for family in options.families or sorted(FAMILIES)
        ]
    sys.exit(1 if any(differing) else 0)


if __name__ == "__main__":
    main()
