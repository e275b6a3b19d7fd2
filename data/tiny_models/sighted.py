"""Odd tiny configs of language models behind encoders that need more than the class's own draw: ERNIE 4.5 VL, Molmo2, Muse; and of Inkling. Wants
transformers 5.23, which has the classes of Molmo2 and Muse Spark."""

import check_family_variants as variants

from .kin import activated, draw, chance, rope, with_epsilon
from .newer import behind

AFTER = {"post_attention_layernorm": "attn_post_norm", "post_feedforward_layernorm": "mlp_post_norm"}


def shorter(text, *keys):
    """Lists with an entry for each layer, as many as are left."""
    for key in keys:
        if key in text:
            text[key] = text[key][: text["num_hidden_layers"]]


def ernie4_5_vl_moe(text):
    shorter(text, "mlp_layer_types")
    text["num_hidden_layers"] = max(text["num_hidden_layers"], 2)
    if "mlp_layer_types" in text:
        text["mlp_layer_types"] = [draw.choice(["sparse", "dense"]) for _ in range(text["num_hidden_layers"] - 1)] + ["sparse"]
    text["moe_num_experts"] = draw.randint(3, 6)
    text["moe_k"] = draw.randint(1, text["moe_num_experts"] - 1)
    text["rope_parameters"]["rope_theta"] = draw.choice([100.0, 5e5])
    text |= with_epsilon(activated({}), "rms_norm_eps")


def molmo2(text):
    text["additional_vocab_size"] = text["vocab_size"]  # transformers writes the joined table in equal halves
    text |= with_epsilon(activated(rope({})), "rms_norm_eps")
    if chance():
        first = draw.randint(0, 1)
        text["rope_scaling_layers"] = list(range(first, text["num_hidden_layers"], 2))


def muse(text):
    text["head_dim"] = draw.choice([4, 6, 8])
    count = text["num_hidden_layers"]
    text["num_attention_heads"] = heads = draw.choice([n for n in range(1, 7) if text["hidden_size"] % n == 0])
    text["num_key_value_heads"] = variants.divisor(heads)
    text["sliding_window"] = draw.choice([3, 5, 64])
    shorter(text, "layer_types", "mlp_layer_types")
    base = draw.choice([100.0, 5e5])
    text |= rope({}, scaled=False)
    text.pop("rope_theta", None)
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": base}
    if chance():
        text["layer_rope_theta"] = [draw.choice([0, base]) for _ in range(count)]
    for key, values in (
        ("qk_scale_factor", [0.7, 3.0]), ("output_multiplier", [0.25, 1.5]), ("post_norm_eps", [1e-3, 0.02]), ("final_logit_softcapping", [2.0, 30.0]),
    ):
        if chance():
            text[key] = draw.choice(values)
    text |= with_epsilon({}, "rms_norm_eps")


def muse_glimmer(text):
    muse(text)
    text |= activated({}, "hidden_activation")


def muse_spark(text):
    muse(text)
    text |= activated({})
    if chance():
        text["routed_scaling_factor"] = 1.7
    if chance():
        text["residual_gate_temperature"] = draw.choice([0.1, 1.0])


def inkling():
    """Stretches and windows that a short text passes; experts in the last layer at least."""
    config = variants.FAMILIES["inkling_text"][1]()
    config["num_hidden_layers"] = count = draw.randint(1, 4)
    shorter(config, "mlp_layer_types")
    if "mlp_layer_types" in config:
        config["mlp_layer_types"][-1] = "sparse"
    config["layer_types"] = [draw.choice(["hybrid", "hybrid_sliding"]) for _ in range(count)]
    config = with_epsilon({**config, "vocab_size": draw.randint(40, 70)}, "rms_norm_eps")
    config |= {"sliding_window_size": draw.choice([2, 3, 5]), "rel_extent": draw.choice([2, 4, 30]), "num_hidden_layers": count}
    config |= {"logits_mup_width_multiplier": draw.choice([0.5, 3.0]), "route_scale": draw.choice([1.0, 2.5])}
    config["n_shared_experts"] = draw.choice([1, 2, 3])
    if chance(0.8):
        config |= {"log_scaling_n_floor": draw.choice([1, 3]), "log_scaling_alpha": draw.choice([0.1, 0.7])}
    if chance():
        config["unpadded_vocab_size"] = config["vocab_size"] - draw.randint(1, 9)
    return activated(config)


def inkling_whole():
    """Under the names that are published, gates and ups row by row; layers of both kinds."""
    beside = {"vision_config": {"patch_size": 12, "temporal_patch_size": 2, "num_channels": 1, "n_layers": 3}}
    beside["audio_config"] = {"n_mel_bins": 3, "mel_vocab_size": 16}
    text = inkling()
    text.pop("tie_word_embeddings", None)
    text |= {"num_hidden_layers": 3, "layer_types": ["hybrid_sliding", "hybrid", draw.choice(["hybrid", "hybrid_sliding"])]}
    text["mlp_layer_types"] = ["dense", "sparse", draw.choice(["dense", "sparse"])]
    return {**beside, "text_config": {**text, "model_type": "inkling_text"}}


def of(family, change):
    return variants.FAMILIES[family][0], behind(family, change)


KIN = {
    "ernie4_5_vl_moe": of("ernie4_5_vl_moe", ernie4_5_vl_moe),
    "inkling_mm_model": ("InklingForConditionalGeneration", inkling_whole),
    "inkling_text": ("InklingForCausalLM", inkling),
    "molmo2": of("molmo2", molmo2),
    "muse_glimmer": of("muse_glimmer", muse_glimmer),
    "muse_spark": of("muse_spark", muse_spark),
}
CONVOLVED = {"attn_sconv": "attn_conv", "mlp_sconv": "mlp_conv"}
TAPS = {
    "inkling_mm_model": CONVOLVED,
    "inkling_text": CONVOLVED,
    "muse_glimmer": AFTER,
    "muse_spark": {**AFTER, "post_attention_residual_gate": "attn_residual"},
}


def taps_of(layer):
    """Molmo2's norms may stand behind attention and MLP."""
    return {"input_layernorm": "attn_post_norm", "post_attention_layernorm": "mlp_post_norm"} if getattr(layer, "norm_after", False) else {}
