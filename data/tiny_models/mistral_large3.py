"""Odd tiny models of Mistral Large 3, for kin.py: Mistral Small 4 under Mistral's own names, with experts one by one and one ε for all
norms. Source: vLLM 0.32 (models/mistral_large_3.py, deepseek_v2.py; transformers_utils/configs/mistral.py)."""

import re

import torch

from . import kin

draw, chance = kin.draw, kin.chance

NAMES = {
    "tok_embeddings.": "model.embed_tokens.", "output.": "lm_head.", "attention.wq_a": "self_attn.q_a_proj", "attention.wq_b": "self_attn.q_b_proj",
    "attention.wkv_a_with_mqa": "self_attn.kv_a_proj_with_mqa", "attention.wkv_b": "self_attn.kv_b_proj", "attention.wo": "self_attn.o_proj",
    "attention.q_a_norm": "self_attn.q_a_layernorm", "attention.kv_a_norm": "self_attn.kv_a_layernorm", "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm", "shared_experts.": "mlp.shared_experts.", ".gate.weight": ".mlp.gate.weight", "feed_forward.": "mlp.",
    ".w1.": ".gate_proj.", ".w3.": ".up_proj.", ".w2.": ".down_proj.",
}


def large3():
    config = kin.mistral4()
    for key in ("rope_interleave", "attention_bias", "hidden_act", "head_dim", "mlp_layer_types"):
        config.pop(key, None)
    rope = dict(config.pop("rope_parameters", None) or {"rope_type": "default", "rope_theta": 1e4, "original_max_position_embeddings": 5})
    if rope["rope_type"] == "yarn" and chance():
        rope = {key: value for key, value in rope.items() if "mscale" not in key} | {"attention_factor": 1.0}
    rope["llama_4_scaling_beta"] = draw.choice([0.1, 0.3])
    config.update(n_group=1, topk_group=1, norm_topk_prob=True, first_k_dense_replace=draw.randint(0, 2), rope_parameters=rope)
    config.setdefault("rms_norm_eps", 1e-6)
    config["q_lora_rank"] = draw.choice([6, 8])
    config.setdefault("max_position_embeddings", 64)
    return config


def as_mistral4(config):
    return {
        **config, "model_type": "mistral4", "architectures": ["Mistral4ForCausalLM"], "rope_interleave": True, "attention_bias": False,
        "hidden_act": "silu", "epsilon_of_latents": config["rms_norm_eps"],
    }


def ours(name):
    name = re.sub(r"^model\.(?=layers|norm)", "", name)
    for own, usual in NAMES.items():
        name = name.replace(usual, own)
    return name


def shapes_of(config, shapes):
    made = {}
    for name, shape in shapes.items():
        stack = re.match(r"model\.(.*)\.mlp\.experts\.(gate_up_proj|down_proj)$", name)
        if not stack:
            made[ours(name)] = shape
            continue
        for e in range(shape[0]):
            parts = {"w1": (shape[1] // 2, shape[2]), "w3": (shape[1] // 2, shape[2])} if stack[2] == "gate_up_proj" else {"w2": shape[1:]}
            made |= {f"{stack[1]}.experts.{e}.{part}.weight": tuple(size) for part, size in parts.items()}
    return made


def theirs(name):
    name = re.sub(r"^(?=layers|norm)", "model.", name)
    return kin.renamed(name, NAMES)


def of(config, tensors):
    made, experts = {}, {}
    for name, tensor in tensors.items():
        found = re.match(r"(.*)\.experts\.(\d+)\.(w\d)\.weight$", name)
        if found:
            experts.setdefault(f"model.{found[1]}.mlp.experts.", {})[int(found[2]), found[3]] = tensor
        else:
            made[theirs(name)] = tensor
    for at, parts in experts.items():
        count = config["n_routed_experts"]
        made[f"{at}gate_up_proj"] = torch.stack([torch.cat([parts[e, "w1"], parts[e, "w3"]]) for e in range(count)])
        made[f"{at}down_proj"] = torch.stack([parts[e, "w2"] for e in range(count)])
    return made


FAMILIES = {"mistral_large3": ("MistralLarge3ForCausalLM", large3)}
TWINS = {"mistral_large3": (as_mistral4, shapes_of, of)}
