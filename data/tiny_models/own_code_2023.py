"""Odd tiny models of 2023 with code of their own (refimpl/models/own_code_2023_kin.cpp), as own_code.py: Qwen (1), ChatGLM2 to GLM-4.
Sources: modeling_qwen.py and modeling_chatglm.py, which are published beside the weights."""

import re

from . import kin
from .own_code import back

draw, chance = kin.draw, kin.chance


def flat(config):
    """Without what these classes do not know."""
    for key in ("rope_parameters", "rope_theta", "rms_norm_eps", "hidden_act", "head_dim", "num_key_value_heads", "max_position_embeddings"):
        config.pop(key, None)
    return config


# Qwen (1): biases of queries, keys and values; of others, where no_bias is false.

QWEN = {
    "transformer.wte": "model.embed_tokens", "transformer.h.": "model.layers.", "transformer.ln_f": "model.norm",
    ".attn.c_proj": ".self_attn.o_proj", ".mlp.w1": ".mlp.up_proj", ".mlp.w2": ".mlp.gate_proj", ".mlp.c_proj": ".mlp.down_proj",
    ".ln_1": ".input_layernorm", ".ln_2": ".post_attention_layernorm",
}


def qwen(config):
    config = flat(config)
    config["hidden_size"] = config["num_attention_heads"] * draw.choice([5, 8])
    config |= {
        "intermediate_size": 2 * draw.randint(5, 15), "kv_channels": draw.choice([8, 16]), "rotary_emb_base": draw.choice([100, 10000]),
        "rotary_pct": 1.0, "no_bias": chance(0.6), "seq_length": draw.choice([16, 64]), "max_position_embeddings": 64,
        "use_dynamic_ntk": chance(), "use_logn_attn": chance(),
    }
    return kin.with_epsilon(config, "layer_norm_epsilon")


def qwen_as_seed(config):
    rope = {"rope_type": "default", "rope_theta": float(config["rotary_emb_base"])}
    biased = not config["no_bias"]
    return {
        **config, "model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"], "attention_bias": True, "attention_out_bias": biased,
        "mlp_bias": biased, "head_dim": config["kv_channels"], "intermediate_size": config["intermediate_size"] // 2,
        "num_key_value_heads": config["num_attention_heads"], "rms_norm_eps": config.get("layer_norm_epsilon", 1e-6),
        "rope_parameters": rope,
    }


def shapes_of_qwen(_config, shapes):
    made = {}
    for name, shape in shapes.items():
        if "q_proj" in name:
            made[kin.renamed(name, back(QWEN)).replace("self_attn.q_proj", "attn.c_attn")] = (3 * shape[0], *shape[1:])
        elif not re.search(r"[kv]_proj", name):
            made[kin.renamed(name, back(QWEN))] = shape
    return made


def of_qwen(_config, tensors):
    made = {}
    for name, tensor in tensors.items():
        if "c_attn" in name:
            for letter, part in zip("qkv", tensor.chunk(3)):
                made[kin.renamed(name, QWEN).replace("attn.c_attn", f"self_attn.{letter}_proj")] = part
        else:
            made[kin.renamed(name, QWEN)] = tensor
    return made


# ChatGLM: GLM under other names, with q, k and v in one matrix.

CHATGLM = {
    "transformer.embedding.word_embeddings": "model.embed_tokens", "transformer.encoder.layers.": "model.layers.",
    "transformer.encoder.final_layernorm": "model.norm", "transformer.output_layer": "lm_head", ".self_attention.dense.": ".self_attn.o_proj.",
    ".mlp.dense_h_to_4h": ".mlp.gate_up_proj", ".mlp.dense_4h_to_h": ".mlp.down_proj",
}


def chatglm(config):
    config = flat(config)
    heads = config["num_attention_heads"]
    config["num_layers"], config["padded_vocab_size"] = config.pop("num_hidden_layers"), config["vocab_size"]
    config["ffn_hidden_size"] = config.pop("intermediate_size")
    config |= {
        "kv_channels": draw.choice([8, 16]), "multi_query_attention": True, "multi_query_group_num": kin.variants.divisor(heads),
        "add_qkv_bias": chance(), "rope_ratio": draw.choice([1, 50, 500]), "seq_length": draw.choice([32, 64]), "rmsnorm": True,
        "post_layer_norm": True, "original_rope": True,
    }
    return kin.with_epsilon(config, "layernorm_epsilon")


def chatglm_as_glm(config):
    rope = {"rope_type": "default", "rope_theta": 10000.0 * config["rope_ratio"], "partial_rotary_factor": 0.5}
    return {
        **config, "model_type": "glm", "architectures": ["GlmForCausalLM"], "num_hidden_layers": config["num_layers"],
        "intermediate_size": config["ffn_hidden_size"], "head_dim": config["kv_channels"], "attention_bias": config["add_qkv_bias"],
        "num_key_value_heads": config["multi_query_group_num"], "rms_norm_eps": config.get("layernorm_epsilon", 1e-5),
        "rope_parameters": rope, "pad_token_id": None,
    }


def rows_of(config):
    width, groups = config["kv_channels"], config["multi_query_group_num"]
    return [config["num_attention_heads"] * width, groups * width, groups * width]


def shapes_of_chatglm(config, shapes):
    made = {}
    for name, shape in shapes.items():
        if "q_proj" in name:
            made[kin.renamed(name, back(CHATGLM)).replace("self_attn.q_proj", "self_attention.query_key_value")] = (sum(rows_of(config)), *shape[1:])
        elif not re.search(r"[kv]_proj", name):
            made[kin.renamed(name, back(CHATGLM))] = shape
    return made


def of_chatglm(config, tensors):
    made = {}
    for name, tensor in tensors.items():
        if "query_key_value" in name:
            for letter, part in zip("qkv", tensor.split(rows_of(config))):
                made[kin.renamed(name, CHATGLM).replace("self_attention.query_key_value", f"self_attn.{letter}_proj")] = part
        else:
            made[kin.renamed(name, CHATGLM)] = tensor
    return made


FAMILIES = {
    "chatglm": ("ChatGLMModel", kin.dense(scaled=False, more=chatglm)),
    "qwen": ("QWenLMHeadModel", kin.dense(scaled=False, more=qwen)),
}
TWINS = {
    "chatglm": (chatglm_as_glm, shapes_of_chatglm, of_chatglm),
    "qwen": (qwen_as_seed, shapes_of_qwen, of_qwen),
}
