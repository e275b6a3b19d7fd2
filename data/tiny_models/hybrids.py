"""Odd tiny configs of families whose layers keep a state beside keys and values, drawn at random (kin.py has the rest)."""

import copy

import check_family_variants as variants
from transformers.models.nemotron_h import modeling_nemotron_h

draw, chance, flags = variants.draw, variants.chance, variants.flags


def sizes(**more):
    kv_heads, head_dim = draw.choice([1, 2, 3]), draw.choice([4, 6, 8])
    heads = kv_heads * draw.choice([1, 2])
    config = {
        "vocab_size": draw.randint(40, 70), "hidden_size": heads * head_dim, "num_hidden_layers": draw.choice([2, 3, 4]),
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "tie_word_embeddings": chance(), "pad_token_id": None,
        "intermediate_size": draw.randint(5, 30), "max_position_embeddings": draw.choice([32, 64]),
    }
    if chance():
        config["rms_norm_eps"] = draw.choice([1e-3, 1e-5, 0.02])
    return {**config, **more}


def layer_kinds(config, of):
    """Some of the first kind at least."""
    count = config["num_hidden_layers"]
    return draw.sample([of[0], *(draw.choice(of) for _ in range(count - 1))], count)


def mamba2(config, inner):
    heads = draw.choice([n for n in (2, 4, 6) if inner % n == 0])
    return flags(
        {
            **config, "mamba_n_heads": heads, "mamba_d_head": inner // heads, "mamba_d_state": draw.choice([3, 8]),
            "mamba_n_groups": draw.choice([n for n in (1, 2, 3) if heads % n == 0]), "mamba_d_conv": draw.choice([2, 4, 5]),
            "mamba_chunk_size": draw.choice([4, 64]), "time_step_limit": draw.choice([[0.0, 1e9], [0.5, 0.9]]),
        },
        "mamba_conv_bias", "mamba_proj_bias",
    )


def multiplied(config, *keys):
    return {**config, **{key: draw.choice([0.25, 0.7, 1.5, 3.0]) for key in keys if chance(0.7)}}


def experts(config, count_key, chosen_key, groups_key="n_group"):
    groups = draw.choice([1, 1, 2])
    count = groups * draw.choice([2, 3, 4])
    chosen_groups = draw.randint(1, groups)
    return {
        **config, count_key: count, chosen_key: draw.randint(1, count // groups * chosen_groups), groups_key: groups,
        "topk_group": chosen_groups, "moe_intermediate_size": draw.choice([5, 9]), "routed_scaling_factor": draw.choice([1.0, 2.5]),
    }


def nemotron_h():
    config = experts(sizes(), "n_routed_experts", "num_experts_per_tok")
    config.pop("rms_norm_eps", None)
    config["num_hidden_layers"] = draw.choice([3, 4, 5])
    heads = draw.choice([2, 4, 6])
    config |= {
        "layers_block_type": layer_kinds(config, ["linear_attention", "moe", "full_attention", "mlp"]),
        "head_dim": draw.choice([4, 8]), "n_shared_experts": 1, "moe_shared_expert_intermediate_size": draw.choice([4, 11]),
        "mamba_num_heads": heads, "mamba_head_dim": draw.choice([3, 8]), "n_groups": draw.choice([n for n in (1, 2, 3) if heads % n == 0]),
        "ssm_state_size": draw.choice([3, 8]), "conv_kernel": draw.choice([2, 4]), "chunk_size": draw.choice([4, 64]),
        "time_step_min": draw.choice([0.001, 0.7]), "layer_norm_epsilon": draw.choice([1e-5, 1e-3]), "tie_word_embeddings": False,
        "mlp_hidden_act": draw.choice(["relu2", "relu2", "silu"]), "norm_topk_prob": chance(0.7),
    }
    if chance():
        config["moe_latent_size"] = draw.choice([3, 8])
    if chance(0.3):
        config["hybrid_override_pattern"] = "".join(
            {"linear_attention": "M", "moe": "E", "full_attention": "*", "mlp": "-"}[kind] for kind in config.pop("layers_block_type")
        )
    return flags(config, "mlp_bias", "use_conv_bias", "use_bias")


# Puzzle: each layer of experts says how many they are, how wide, and how many a token visits. transformers' class knows one number for all.


def nemotron_h_puzzle():
    config = nemotron_h()
    pattern = config.pop("hybrid_override_pattern", None)
    kinds = config.pop("layers_block_type", None) or [{"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}[c] for c in pattern]
    kinds = [*kinds[:2], "moe", "moe"]
    words = {"linear_attention": "mamba", "full_attention": "attention"}
    blocks = [{"block_type": words.get(kind, kind)} for kind in kinds]
    for block in blocks:
        if block["block_type"] == "moe":
            count = draw.randint(2, 7)
            block |= {"moe_intermediate_size": draw.randint(3, 12), "n_routed_experts": count, "num_experts_per_tok": draw.randint(1, count)}
    for key in ("num_experts_per_tok", "moe_intermediate_size"):
        config.pop(key)
    return {**config, "n_group": 1, "topk_group": 1, "num_hidden_layers": len(blocks), "block_configs": blocks}


def puzzle_as_nemotron_h(config):
    words = {"mamba": "linear_attention", "attention": "full_attention"}
    kinds = [words.get(block["block_type"], block["block_type"]) for block in config["block_configs"]]
    return {**config, "model_type": "nemotron_h", "architectures": ["NemotronHForCausalLM"], "layers_block_type": kinds}


class LayersExperts(modeling_nemotron_h.NemotronHMoE):
    """Of a config with block_configs as many and as wide as the layer says; of others the class's own."""

    def __init__(self, config, layer_idx=None):
        if getattr(config, "block_configs", None):
            config = copy.copy(config)
            for key, value in config.block_configs[layer_idx].items():
                setattr(config, key, value)
        super().__init__(config, layer_idx)


modeling_nemotron_h.MIXER_TYPES["moe"] = LayersExperts


def falcon_h1():
    config = sizes()
    if chance():
        config["head_dim"] = draw.choice([4, 8])
    inner = draw.choice([None, 12, 24])
    config = mamba2({**config, "mamba_d_ssm": inner, "mamba_expand": 2}, inner or 2 * config["hidden_size"])
    config["rope_theta"] = draw.choice([100.0, 1e11])
    if chance(0.7):
        config["mlp_multipliers"] = [0.7, 1.5]
    if chance(0.7):
        config["ssm_multipliers"] = [0.3, 1.5, 0.7, 3.0, 0.25]
    config = multiplied(
        config, "embedding_multiplier", "lm_head_multiplier", "key_multiplier", "attention_in_multiplier",
        "attention_out_multiplier", "ssm_in_multiplier", "ssm_out_multiplier",
    )
    return flags(config, "attention_bias", "mlp_bias", "mamba_rms_norm", "projectors_bias", "mamba_norm_before_gate")


def granitemoehybrid():
    config = sizes()
    config = mamba2({**config, "mamba_expand": 2}, 2 * config["hidden_size"])
    count = draw.choice([0, 3, 5])
    config |= {
        "num_local_experts": count, "num_experts_per_tok": draw.randint(1, max(1, min(3, count))),
        "shared_intermediate_size": draw.choice([5, 12]), "layer_types": layer_kinds(config, ["linear_attention", "full_attention"]),
        "position_embedding_type": draw.choice(["rope", "nope", None]),
    }
    factors = ("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling")
    return flags(multiplied(config, *factors), "attention_bias")


def kimi_linear():
    config = experts(sizes(), "num_experts", "num_experts_per_token", "num_expert_group")
    layers = config["num_hidden_layers"] + 1
    kinds = layer_kinds({"num_hidden_layers": layers}, ["kda", "full"])
    config |= {
        "num_key_value_heads": config["num_attention_heads"], "num_hidden_layers": layers, "kv_lora_rank": draw.choice([5, 8]), "q_lora_rank": draw.choice([None, 7]),
        "qk_nope_head_dim": draw.choice([3, 8]), "qk_rope_head_dim": draw.choice([2, 4]), "v_head_dim": draw.choice([5, 8]),
        "first_k_dense_replace": draw.choice([0, 1, 2]), "num_shared_experts": draw.choice([1, 2]), "moe_renormalize": chance(0.7),
        "mla_use_nope": True,
        "linear_attn_config": {
            "full_attn_layers": [i + 1 for i, kind in enumerate(kinds) if kind == "full"],
            "kda_layers": [i + 1 for i, kind in enumerate(kinds) if kind == "kda"],
            "num_heads": draw.choice([1, 2, 3]), "head_dim": draw.choice([4, 6]), "short_conv_kernel_size": draw.choice([2, 4]),
        },
    }
    return flags(config, "attention_bias")


def olmo_hybrid():
    config = sizes(layer_types=[])
    config["num_hidden_layers"] = draw.choice([3, 4])
    kinds = layer_kinds(config, ["linear_attention", "full_attention"])
    kinds[kinds.index("linear_attention") - 1] = "full_attention"  # one of each at least
    heads = draw.randint(1, 3)
    config |= {
        "layer_types": kinds, "linear_num_key_heads": heads, "linear_num_value_heads": heads * draw.choice([1, 2]),
        "linear_key_head_dim": draw.choice([4, 6]), "linear_value_head_dim": draw.choice([3, 8]),
        "linear_conv_kernel_dim": draw.choice([2, 4]), "linear_allow_neg_eigval": chance(0.7),
    }
    if chance(0.7):
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": draw.choice([100.0, 5e5, None])}
    elif chance():
        config["rope_theta"] = None
    return flags(config, "attention_bias")


FAMILIES = {
    "falcon_h1": ("FalconH1ForCausalLM", falcon_h1),
    "granitemoehybrid": ("GraniteMoeHybridForCausalLM", granitemoehybrid),
    "kimi_linear": ("KimiLinearForCausalLM", kimi_linear),
    "nemotron_h": ("NemotronHForCausalLM", nemotron_h),
    "nemotron_h_puzzle": ("NemotronHPuzzleForCausalLM", nemotron_h_puzzle),
    "olmo_hybrid": ("OlmoHybridForCausalLM", olmo_hybrid),
}
# As kin.TWINS.
TWINS = {"nemotron_h_puzzle": (puzzle_as_nemotron_h, lambda config, shapes: shapes, lambda config, tensors: tensors)}


def taps_of(kind, layer):
    """A layer's children -> the tap that is their output, where kin.COMMON does not say it."""
    if kind == "nemotron_h":
        alone = layer.block_type in ("moe", "mlp")
        return {"norm": "mlp_norm", "mixer": "mlp_out"} if alone else {"norm": "attn_norm", "mixer": "attn_out"}
    if kind == "falcon_h1":
        return {"mamba": "mixer_out", "pre_ff_layernorm": "mlp_norm"}
    if kind == "granitemoehybrid":
        return {"mamba": "attn_out", "block_sparse_moe": None, **({} if layer.has_experts else {"shared_mlp": "mlp_out"})}
    if kind == "olmo_hybrid":
        if hasattr(layer, "linear_attn"):
            return {"linear_attn": "attn_out"}
        return {"post_attention_layernorm": "attn_post_norm", "post_feedforward_layernorm": "mlp_post_norm"}
    return {}


def keep_within(kind, layer, keep, keep_input):
    """What stands within a layer's children: keep(tap, module) and keep_input(tap, module) take it."""
    mixer = next((getattr(layer, name) for name in ("mamba", "mixer", "linear_attn", "self_attn") if getattr(layer, name, None) is not None), None)
    norm = getattr(mixer, "norm", getattr(mixer, "o_norm", None))
    if kind in (*FAMILIES, "glm5_next") and hasattr(norm, "weight"):
        keep("scan_norm", norm)
        keep_input("scan", norm)
    if getattr(mixer, "kv_a_layernorm", None) is not None:
        keep("latent", mixer.kv_a_layernorm)
