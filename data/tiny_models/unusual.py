"""Variants of families of kin.py that say what no published config says, and its class computes all the same."""

import check_family_variants as variants

draw = variants.draw
# Of activations.py what has no weights, but for what every family draws (kin.activated).
ACTIVATIONS = ("gelu_fast", "gelu_10", "quick_gelu", "tanh", "linear", "relu6", "leaky_relu", "hardswish", "mish", "laplace",
               "sqrtsoftplus", "swish")
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "rope_theta": 500.0}


def any_activation(config):
    """Delta rules: behind their convolutions, too."""
    return {**config, "hidden_act": draw.choice(ACTIVATIONS)}


def convolved(config):
    return {**config, "hidden_act": draw.choice(["gelu", "quick_gelu", "tanh", "mish"])}


def kimi_linear(config):
    """Its class ties nothing, whatever a config says."""
    return {**convolved(config), "tie_word_embeddings": False}


def bailing_hybrid(config):
    """Scores that grow with YaRN's factor."""
    return {**convolved(config), "max_position_embeddings": 32, "rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": draw.choice([0.4, 1.0])}}


def qwen4_exp(config):
    """Without a partial_rotary_factor whole heads rotate."""
    ropes = draw.choice([{"rope_type": "default", "rope_theta": 500.0}, YARN, {"rope_type": "linear", "factor": 3.0, "rope_theta": 90.0}])
    width = max(config["head_dim"], config["indexer_head_dim"])
    return {**convolved(config), "head_dim": width, "indexer_head_dim": width, "max_position_embeddings": 32, "output_gate_type": "silu",
            "rope_parameters": ropes}


def mimo_v2_flash(config):
    """Without one a third of each head does, but under a stretched rule."""
    stretched = {"rope_type": "linear", "factor": 3.0, "rope_theta": 90.0}
    kinds = [{"rope_type": "default", "rope_theta": 500.0}, draw.choice([YARN, stretched])]
    draw.shuffle(kinds)
    return {**config, "head_dim": 12, "max_position_embeddings": 32, "rope_parameters": dict(zip(("full_attention", "sliding_attention"), kinds))}


def modernbert_decoder(config):
    """A window that is said counts before half of the local attention."""
    return {**config, "model_type": "modernbert-decoder", "sliding_window": draw.choice([2, 4, 7])}


def windows_by(key):
    """Which layers have a window follows from a period, where no list says it."""

    def change(config):
        config.pop("layer_types", None)
        return {**config, "num_hidden_layers": 4, "sliding_window": 3, key: draw.choice([1, 2, 3])}

    return change


def cohere2_moe(config):
    return {**windows_by("sliding_window_pattern")(config), "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
            "num_experts_per_tok": config["num_experts"]}


CHANGES = {
    "arcee": any_activation, "granitemoe": any_activation, "kimi_linear": kimi_linear, "olmo_hybrid": convolved,
    "falcon_h1": convolved, "granitemoehybrid": convolved,
    "bailing_hybrid": bailing_hybrid, "qwen4_exp": qwen4_exp, "mimo_v2_flash": mimo_v2_flash, "modernbert_decoder": modernbert_decoder,
    "afmoe": windows_by("global_attn_every_n_layers"), "cohere2_moe": cohere2_moe,
}


def families(all_families):
    """{name: (architecture, how a config is drawn)}, beside all the others."""

    def changed(family):
        architecture, make = all_families[family]
        return architecture, lambda: CHANGES[family]({"model_type": family, **make()})

    return {f"{family}_unusual": changed(family) for family in CHANGES}
