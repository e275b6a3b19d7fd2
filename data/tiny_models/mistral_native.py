"""Odd tiny models under the names of Mistral's own files, for kin.py: Ministral 3's class, and Mixtral's where there are experts, whose heads
rotate by halves where Mistral's rotate in pairs. Source: mistral-inference 1.6 (transformer_layers.py, rope.py, moe.py)."""

import re

from . import kin

draw, chance = kin.draw, kin.chance

NAMES = {
    "tok_embeddings.": "model.embed_tokens.", "output.": "lm_head.", "attention.wq": "self_attn.q_proj", "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj", "attention.wo": "self_attn.o_proj", "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm", "feed_forward.": "mlp.", ".w1.": ".gate_proj.", ".w3.": ".up_proj.", ".w2.": ".down_proj.",
}


def native():
    config = kin.small(kin.decoder(head_dim=True, kv_heads=True))
    config.setdefault("num_key_value_heads", config["num_attention_heads"])
    config["head_dim"] = draw.choice([4, 6, 8])
    floor = draw.choice([3, 5])
    rope = {"rope_type": "default", "rope_theta": draw.choice([1e2, 1e4, 1e6]), "original_max_position_embeddings": floor}
    if chance():
        rope |= {"rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.0}
    config |= {"rms_norm_eps": draw.choice([1e-5, 1e-3]), "max_position_embeddings": 64, "tie_word_embeddings": chance()}
    if chance(0.35):
        config |= {"num_local_experts": draw.choice([3, 4]), "num_experts_per_tok": draw.choice([1, 2])}
    else:
        if chance(0.7):
            rope |= {"llama_4_scaling_beta": draw.choice([0.1, 0.5]), "llama_4_scaling_floor": floor}
        config["sliding_window"] = draw.choice([None, 3, 3, 4])
    return {**config, "rope_parameters": rope}


def as_transformers(config):
    rope = {key: value for key, value in config["rope_parameters"].items() if key != "llama_4_scaling_floor"}
    usual = {**config, "hidden_act": "silu", "rope_parameters": rope, "heads_in_pairs": True}
    if "num_local_experts" in config:
        if rope["rope_type"] == "default":
            rope.pop("original_max_position_embeddings")
        return {**usual, "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "sliding_window": None}
    rope.setdefault("llama_4_scaling_beta", 0.0)
    return {**usual, "model_type": "ministral3", "architectures": ["Ministral3ForCausalLM"], "sliding_window": config.get("sliding_window")}


def names_of(config):
    if "num_local_experts" not in config:
        return NAMES
    alike = {own: usual for own, usual in NAMES.items() if not own.startswith((".w", "feed_forward"))}
    return {**alike, "feed_forward.": "block_sparse_moe."}  # Mixtral's experts have Mistral's names


def shapes_of(config, shapes):
    made = {}
    for name, shape in shapes.items():
        name = re.sub(r"^model\.(?=layers|norm)", "", name)
        for own, usual in names_of(config).items():
            name = name.replace(usual, own)
        made[name] = shape
    return made


def by_halves(matrix, head_dim):
    """Rows 2i and 2i + 1 of a head become i and half + i."""
    return matrix.view(-1, head_dim // 2, 2, matrix.shape[-1]).transpose(1, 2).reshape(matrix.shape)


def of(config, tensors):
    made = {}
    for name, tensor in tensors.items():
        if name.endswith((".wq.weight", ".wk.weight")):
            tensor = by_halves(tensor, config["head_dim"])
        made[kin.renamed(re.sub(r"^(?=layers|norm)", "model.", name), names_of(config))] = tensor
    return made


FAMILIES = {"mistral_native": ("MistralNativeForCausalLM", native)}
TWINS = {"mistral_native": (as_transformers, shapes_of, of)}
