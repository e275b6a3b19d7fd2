"""Odd tiny configs of models whose layers are of their own making (refimpl/models/own_layers.h), and of what OPT and Mamba lacked, drawn
at random (kin.py has the rest, and computes them)."""

from pathlib import Path

from safetensors.torch import load_file

import check_family_variants as variants

from .kin import activated, dense, experts, falcon, small, with_epsilon

draw, chance, flags = variants.draw, variants.chance, variants.flags


def falcon_mamba():
    config = small({**variants.mamba(), "hidden_act": "silu", "pad_token_id": None})
    if chance(0.7):
        config["mixer_rms_eps"] = draw.choice([1e-3, 0.02])
    return with_epsilon(config, "layer_norm_epsilon")


def opt_behind():
    """Norms of sums, and embeddings narrower than the stream: OPT-350M."""
    config = small({**variants.opt(), "model_type": "opt"})
    config |= {"do_layer_norm_before": False, "max_position_embeddings": 40}
    config["word_embed_proj_dim"] = draw.choice([config["hidden_size"], draw.randint(3, 30)])
    return activated(config, "activation_function")


def falcon_rw():
    """Biases of positions in place of rotation; more heads than a power of two in some."""
    config = {**falcon(), "model_type": "falcon", "alibi": True}
    for key in ("rope_parameters", "rope_theta"):
        config.pop(key, None)
    return config


def rwkv():
    config = small(variants.rwkv())
    config["num_hidden_layers"] = draw.randint(2, 4)
    config["rescale_every"] = draw.choice([-1, 1, 2, 3])
    return with_epsilon(config, "layer_norm_epsilon")


def jetmoe(config):
    for key in ("num_attention_heads", "head_dim"):
        config.pop(key, None)
    config["num_key_value_heads"] = draw.randint(1, 3)
    return activated({**config, "kv_channels": draw.choice([4, 6, 8])}, "activation_function")


def doge(config):
    """Texts are no longer than what is kept; key heads are several, each with its own decay."""
    window, kv_heads = draw.choice([None, 4]), draw.choice([1, 2, 3])
    heads = kv_heads * draw.randint(1, 2)
    config |= {"num_attention_heads": heads, "num_key_value_heads": kv_heads, "hidden_size": heads * draw.choice([4, 6])}
    config["keep_window_size"] = draw.choice([16, 2048])
    return {**config, **({"sliding_window": window} if window else {})}


def zamba():
    config = small(variants.zamba())
    config["num_hidden_layers"] = draw.randint(4, 5)
    heads, kv_heads = draw.choice([(1, 1), (2, 1), (2, 2), (4, 2)])
    hidden = heads * draw.choice([4, 6])
    for key in ("attention_head_dim", "attention_hidden_size", "attn_layer_period", "attn_layer_offset"):
        config.pop(key, None)
    config |= {
        "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "n_mamba_heads": draw.choice([n for n in (1, 2, 4) if config["mamba_expand"] * hidden % n == 0]),
        "layers_block_type": ["mamba", "hybrid", *(draw.choice(["mamba", "hybrid"]) for _ in range(config["num_hidden_layers"] - 3)), "hybrid"],
    }
    return activated(with_epsilon(config, "rms_norm_eps"))


def zaya():
    """At least the two tokens that are published for each convolution."""
    config = small(variants.zaya())
    kv_heads = draw.choice([2, 4])
    for key in ("layer_types", "rope_theta", "rope_parameters", "sliding_window"):
        config.pop(key, None)
    config |= {
        "head_dim": draw.choice([4, 8]), "num_key_value_heads": kv_heads, "num_attention_heads": kv_heads * draw.randint(1, 2),
        "cca_time0": draw.randint(2, 3), "cca_time1": draw.randint(2, 3), "num_hidden_layers": draw.randint(2, 3), "pad_token_id": 0,
    }
    if chance():
        config["layer_types"] = [draw.choice(["hybrid", "hybrid_sliding"]) for _ in range(config["num_hidden_layers"])]
        config["sliding_window"] = 4
    if chance():
        parts = {"rope_type": "default", "partial_rotary_factor": draw.choice([0.5, 1.0])}
        config["rope_parameters"] = {kind: {**parts, "rope_theta": base} for kind, base in (("hybrid", 9e3), ("hybrid_sliding", 70.0))}
    return activated(with_epsilon(config, "rms_norm_eps"))


def xlstm():
    config = small({**variants.xlstm(), "use_bias": False})
    config["hidden_size"] = config["num_heads"] * 10 * draw.randint(1, 2)
    config |= {"gate_soft_cap": draw.choice([2.0, 15.0]), "output_logit_soft_cap": draw.choice([3.0, 30.0]), "eps": draw.choice([1e-6, 0.01])}
    return with_epsilon(config, "norm_eps")


KIN = {
    "falcon_mamba": ("FalconMambaForCausalLM", falcon_mamba),
    "falcon_rw": ("FalconForCausalLM", falcon_rw),
    "opt_behind": ("OPTForCausalLM", opt_behind),
    "rwkv": ("RwkvForCausalLM", rwkv),
    "jetmoe": ("JetMoeForCausalLM", experts(count="num_local_experts", width=None, head_dim=False, more=jetmoe)),
    "doge": ("DogeForCausalLM", dense("attention_bias", "mlp_bias", head_dim=False, more=doge)),
    "zamba": ("ZambaForCausalLM", zamba),
    "zaya": ("ZayaForCausalLM", zaya),
    "xlstm": ("xLSTMForCausalLM", xlstm),
}

# A layer's children -> the tap that is their output, as kin.OF_FAMILY.
TAPS = {
    "falcon_mamba": {"norm": "attn_norm", "mixer": "attn_out"},
    "rwkv": {"ln1": "attn_norm", "ln2": "mlp_norm"},
    "zamba": {"input_layernorm": None, "self_attn": None},
    "xlstm": {"norm_mlstm": "attn_norm", "mlstm_layer": "attn_out", "norm_ffn": "mlp_norm", "ffn": "mlp_out"},
}


def taps_of(kind, layer):
    if kind == "opt" and not layer.do_layer_norm_before:
        return {"self_attn_layer_norm": "attn_post_norm", "final_layer_norm": "mlp_post_norm"}
    return {}


def mend(model, folder):
    """ZAYA1's class writes -1 over what a checkpoint says of the expert that does nothing, when it has loaded it."""
    if model.config.model_type != "zaya":
        return
    tensors = load_file(Path(folder) / "model.safetensors")
    for index, layer in enumerate(model.model.layers):
        layer.mlp.gate.balancing_biases.copy_(tensors[f"model.layers.{index}.mlp.gate.balancing_biases"])


def as_seen(kind, config, taps):
    """JetMoe's class gives attention every key once for each expert of a token."""
    if kind == "jetmoe":
        count = config.num_key_value_heads
        taps |= {"k": taps["k"][:, :count], "v": taps["v"][:, :count]}
    return taps
