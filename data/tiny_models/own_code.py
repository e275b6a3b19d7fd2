"""Odd tiny models of families that `transformers` has no class for (refimpl/models/own_code_kin.cpp), for kin.py: configs, and the
class that computes the same of weights put in other places. What such a class lacks is put into it: norms behind blocks, streams that
are mixed in again, layers that are passed several times. Sources: the code published beside the weights; vLLM 0.32's classes."""

import math
import re
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers.models.llama import modeling_llama

from . import kin

draw, chance = kin.draw, kin.chance


def theta_and_rope(config):
    """(rope_theta, rope_parameters), whichever of the two a config says."""
    rope = dict(config.get("rope_parameters") or {"rope_type": "default", "rope_theta": config.get("rope_theta", 10000.0)})
    return rope["rope_theta"], rope


def heads_of(config):
    heads = config["num_attention_heads"]
    return heads, config.get("num_key_value_heads", heads), config.get("head_dim", config["hidden_size"] // heads)


def back(names):
    return {theirs: ours for ours, theirs in names.items()}


def with_names(names):
    """Shapes and weights of a family that differs in names alone."""
    return (
        lambda config, shapes: {kin.renamed(name, back(names)): shape for name, shape in shapes.items()},
        lambda config, tensors: {kin.renamed(name, names): tensor for name, tensor in tensors.items()},
    )


SAME = with_names({})


# EXAONE 3: a Llama under other names.

EXAONE = {
    "transformer.wte": "model.embed_tokens", "transformer.h.": "model.layers.", "transformer.ln_f": "model.norm",
    ".attn.attention.out_proj": ".self_attn.o_proj", ".attn.attention.": ".self_attn.", ".mlp.c_fc_0": ".mlp.gate_proj",
    ".mlp.c_fc_1": ".mlp.up_proj", ".mlp.c_proj": ".mlp.down_proj", ".ln_1": ".input_layernorm", ".ln_2": ".post_attention_layernorm",
}


def exaone(config):
    config["activation_function"] = config.pop("hidden_act", "silu")
    config["num_layers"] = config.pop("num_hidden_layers")
    return config


def exaone_as_llama(config):
    return kin.as_llama(
        config, hidden_act=config["activation_function"], num_hidden_layers=config["num_layers"],
        rms_norm_eps=config.get("layer_norm_epsilon", 1e-5), attention_bias=False, mlp_bias=False,
    )


# InternLM3: biases of queries, keys and values apart from the others.


def internlm3_as_seed(config):
    return {
        **config, "model_type": "seed_oss", "architectures": ["SeedOssForCausalLM"], "attention_bias": config.get("qkv_bias", False),
        "attention_out_bias": config.get("bias", False), "mlp_bias": config.get("bias", False), "head_dim": heads_of(config)[2],
        "rms_norm_eps": config.get("rms_norm_eps", 1e-6),
    }


# InternLM 1: its base stands elsewhere. KORMo: norms under other names.


def internlm1(config):
    if chance(0.7):
        for key in ("rope_parameters", "rope_theta"):
            config.pop(key, None)
        config["rotary"] = {"base": draw.choice([100.0, 1000000.0]), "type": draw.choice(["dynamic", "origin"])}
    return config


def internlm1_as_llama(config):
    base = {"rope_theta": config["rotary"]["base"]} if "rotary" in config else {}
    return kin.as_llama(config, attention_bias=config.get("bias", True), mlp_bias=False, **base)


KORMO = {".pre_attention_layernorm": ".input_layernorm", ".pre_mlp_layernorm": ".post_attention_layernorm"}


# Orion: LayerNorms with biases around a Llama's matrices, as a StableLM of which all of a head rotates.


def stated(config):
    config.setdefault("rms_norm_eps", 1e-5)
    config.setdefault("num_key_value_heads", config["num_attention_heads"])
    return config


def orion_as_stablelm(config):
    _, rope = theta_and_rope(config)
    return {
        **config, "model_type": "stablelm", "architectures": ["StableLmForCausalLM"], "layer_norm_eps": config["rms_norm_eps"],
        "use_qkv_bias": False, "qk_layernorm": False, "use_parallel_residual": False, "partial_rotary_factor": 1.0,
        "rope_parameters": {**rope, "partial_rotary_factor": 1.0},
    }


def pangu_as_llama(config):
    return kin.as_llama(config, attention_bias=config.get("bias", True), rms_norm_eps=config.get("rms_norm_eps", 1e-5))


# TeleChat 2: keys and values in one matrix, a key head's key before its value; biases behind attention and MLP only, so that the others
# of the Llama are zero; the base stretched once for texts longer than those that training began with.

TELECHAT = {
    "transformer.word_embeddings": "model.embed_tokens", "transformer.h.": "model.layers.", "transformer.ln_f": "model.norm",
    ".self_attention.dense": ".self_attn.o_proj", ".self_attention.query.": ".self_attn.q_proj.",
}


def telechat2(config):
    config["n_layer"], config["n_head"] = config.pop("num_hidden_layers"), config.pop("num_attention_heads")
    config["ffn_hidden_size"] = config.pop("intermediate_size")
    config["base_seqlen"], config["training_seqlen"] = draw.choice([(16, 16), (16, 64), (24, 64)])
    config.pop("max_position_embeddings", None)
    return config


def telechat2_as_llama(config):
    width = config["hidden_size"] // config["n_head"]
    alpha = max(1, 2 ** math.ceil(math.log2(config["training_seqlen"] / config["base_seqlen"]) + 1) - 1)
    theta = theta_and_rope(config)[0] * alpha ** (width / (width - 2))
    return kin.as_llama(
        {key: value for key, value in config.items() if key not in ("rope_parameters", "n_layer", "n_head")},
        num_hidden_layers=config["n_layer"], num_attention_heads=config["n_head"], intermediate_size=config["ffn_hidden_size"],
        rms_norm_eps=config.get("layer_norm_epsilon", 1e-5), attention_bias=True, mlp_bias=True, rope_theta=theta, max_position_embeddings=64,
    )


def shapes_of_telechat2(config, shapes):
    made = {}
    for name, shape in shapes.items():
        if re.search(r"(v_proj|q_proj.bias|k_proj.bias|gate_proj.bias|up_proj.bias)", name):
            continue
        if "k_proj" in name:
            made[kin.renamed(name, back(TELECHAT)).replace("self_attn.k_proj", "self_attention.key_value")] = (2 * shape[0], *shape[1:])
        else:
            made[kin.renamed(name, back(TELECHAT))] = shape
    return made


def of_telechat2(config, tensors):
    kv_heads, made = config.get("num_key_value_heads", config["n_head"]), {}
    for name, tensor in tensors.items():
        theirs = kin.renamed(name, TELECHAT)
        if "key_value" in name:
            rows = tensor.unflatten(0, (kv_heads, 2, -1))
            for letter, part in zip("kv", (rows[:, 0], rows[:, 1])):
                made[theirs.replace("self_attention.key_value", f"self_attn.{letter}_proj")] = part.flatten(0, 1)
        else:
            made[theirs] = tensor
    for name in [name for name in made if re.search(r"(q|k|v|gate|up)_proj.weight", name)]:
        made[name.replace("weight", "bias")] = torch.zeros(len(made[name]))
    return made


# Tele-FLM: a Llama whose embedding and logits are scaled, as Granite's are.


def teleflm(config):
    config = {**stated(config), "use_mup": chance(0.7)}
    return {**config, "input_mult": draw.choice([0.5, 3.0]), "output_mult": draw.choice([0.7, 2.0]), "mup_scale_factor": draw.choice([2.0, 5.0])}


def teleflm_as_granite(config):
    mup = config["use_mup"]
    return {
        **config, "model_type": "granite", "architectures": ["GraniteForCausalLM"], "attention_multiplier": heads_of(config)[2] ** -0.5,
        "residual_multiplier": 1.0, "embedding_multiplier": config["input_mult"] if mup else 1.0,
        "logits_scaling": config["mup_scale_factor"] / config["output_mult"] if mup else 1.0, "attention_bias": False, "mlp_bias": False,
    }


# IQuest-Coder: windows in the layers behind the first so many.


def iquestcoder(config):
    if not config.get("attention_bias") and chance(0.6):
        config |= {"use_sliding_window": True, "sliding_window": draw.choice([3, 5]), "max_window_layers": draw.randint(0, 2)}
    config.setdefault("head_dim", 8)
    return config


def iquest_as_cwm(config):
    if not config.get("use_sliding_window"):
        return kin.as_llama(config, rms_norm_eps=config.get("rms_norm_eps", 1e-5))
    types = ["full_attention" if i < config["max_window_layers"] else "sliding_attention" for i in range(config["num_hidden_layers"])]
    return {
        **config, "model_type": "cwm", "architectures": ["CwmForCausalLM"], "layer_types": types, "rope_parameters": theta_and_rope(config)[1],
        "rms_norm_eps": config.get("rms_norm_eps", 1e-5),
    }


# Rnj-1: Gemma 3 that sees everything everywhere.


def rnj1(config):
    config["hidden_activation"] = config.pop("hidden_act", "gelu_pytorch_tanh")
    config.setdefault("head_dim", 8)
    return {**config, "query_pre_attn_scalar": draw.choice([8, 30]), "final_logit_softcapping": draw.choice([None, 5.0])}


def as_gemma3(config, kinds, ropes, **more):
    return {
        **config, "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "layer_types": kinds, "rope_parameters": ropes,
        "head_dim": heads_of(config)[2], "rms_norm_eps": config.get("rms_norm_eps", 1e-6), "attn_logit_softcapping": None, **more,
    }


def rnj1_as_gemma3(config):
    rope = theta_and_rope(config)[1]
    ropes = {"full_attention": rope, "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    return as_gemma3(config, ["full_attention"] * config["num_hidden_layers"], ropes)


# PLaMo 3: Gemma 3's layers, whose norms are stored less other numbers, and whose embedding is not scaled: here it is by a power of 2.


def plamo3(config):
    heads = draw.choice([2, 4])
    for key in ("rope_parameters", "rope_theta", "hidden_act", "layer_types"):
        config.pop(key, None)
    config |= {
        "hidden_size": draw.choice([16, 64]), "num_attention_heads": heads, "num_key_value_heads": draw.choice([1, heads]),
        "head_dim": draw.choice([8, 12]), "rope_theta": draw.choice([1e4, 1e6]), "rope_local_theta": 70.0, "window_size": draw.choice([3, 5]),
        "sliding_window_pattern": draw.choice([2, 3]), "num_hidden_layers": draw.choice([3, 4]),
    }
    if chance(0.6):
        config |= {"rope_scaling_factor": 4.0, "initial_context_length": 8, "max_position_embeddings": 32}
    return config


def plamo3_as_gemma3(config):
    full = {"rope_type": "default", "rope_theta": config["rope_theta"]}
    if "rope_scaling_factor" in config:
        full |= {
            "rope_type": "yarn", "factor": config["rope_scaling_factor"], "original_max_position_embeddings": config["initial_context_length"],
            "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        }
    period = config["sliding_window_pattern"]
    kinds = ["full_attention" if (i + 1) % period == 0 else "sliding_attention" for i in range(config["num_hidden_layers"])]
    ropes = {"full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": config["rope_local_theta"]}}
    return as_gemma3(
        config, kinds, ropes, sliding_window=config["window_size"], hidden_activation="silu", query_pre_attn_scalar=config["head_dim"],
        final_logit_softcapping=None, attention_bias=False, tie_word_embeddings=False,
    )


PLAMO = {
    "model.layers.layers.": "model.layers.", ".pre_mixer_norm": ".input_layernorm", ".post_mixer_norm": ".post_attention_layernorm",
    ".pre_mlp_norm": ".pre_feedforward_layernorm", ".post_mlp_norm": ".post_feedforward_layernorm", ".mixer.": ".self_attn.",
}
PLAMO_OFFSETS = {"post_mixer_norm": 1 / 5, "post_mlp_norm": 1 / 5**1.5}


def shapes_of_plamo3(config, shapes):
    made = {}
    for name, shape in shapes.items():
        if re.search(r"[kv]_proj|up_proj", name) or name == "lm_head.weight" and config["tie_word_embeddings"]:
            continue
        ours = kin.renamed(name, back(PLAMO))
        heads, kv_heads, width = heads_of(config)
        if "q_proj" in name:
            made[ours.replace("q_proj", "qkv_proj")] = ((heads + 2 * kv_heads) * width, *shape[1:])
        elif "gate_proj" in name:
            made[ours.replace("gate_proj", "gate_up_proj")] = (2 * shape[0], *shape[1:])
        else:
            made[ours] = shape
    return made


def of_plamo3(config, tensors):
    heads, kv_heads, width = heads_of(config)
    made = {}
    for name, tensor in tensors.items():
        theirs = kin.renamed(name, PLAMO)
        if "qkv_proj" in name:
            for letter, part in zip("qkv", tensor.split([heads * width, kv_heads * width, kv_heads * width])):
                made[theirs.replace("qkv_proj", f"{letter}_proj")] = part
        elif "gate_up_proj" in name:
            made[theirs.replace("gate_up_proj", "gate_proj")], made[theirs.replace("gate_up_proj", "up_proj")] = tensor.chunk(2)
        elif "norm" in name:
            offset = next((value for key, value in PLAMO_OFFSETS.items() if key in name), 1)
            made[theirs] = tensor.double() + (offset - 1)
        else:
            made[theirs] = tensor
    embedding = made["model.embed_tokens.weight"]
    made.setdefault("lm_head.weight", embedding)
    made["model.embed_tokens.weight"] = embedding / config["hidden_size"] ** 0.5
    return made


# Solar Pro: the stream before some layers is mixed in again before later ones.


def solar(config):
    return {**config, "num_hidden_layers": 4, "bskcn_1": [0, 2], "bskcn_2": [1], "bskcn_3": [1, 3], "bskcn_4": draw.choice([[2], [2, 3]]), "bskcn_tv": [0.9, draw.choice([0.8, 0.3])]}


# Step 1: a Llama that does not rotate, and whose scores lose a head's slope times the root of the distance.


def step1(config):
    config["num_attention_groups"] = config.pop("num_key_value_heads", config["num_attention_heads"])
    config.pop("hidden_act", None)
    dropped = ("rope_parameters", "rope_theta", "max_position_embeddings")
    return stated({**{key: value for key, value in config.items() if key not in dropped}, "max_seq_len": 64})


def step1_as_llama(config):
    return kin.as_llama(config, num_key_value_heads=config["num_attention_groups"], hidden_act="silu", root_slopes=True)


def put_slopes(model, config):
    heads = config["num_attention_heads"]
    whole = 2 ** int(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / whole) for i in range(whole)] + [2 ** (-8 * (2 * i + 1) / (2 * whole)) for i in range(heads - whole)]
    model.model.rotary_emb.inv_freq.zero_()
    for layer in model.model.layers:
        layer.self_attn.slopes = torch.tensor(slopes, dtype=torch.float64)


def mend(model, config, folder):
    """What a twin's class lacks; `folder`: with weights that it does not know."""
    if "root_slopes" in config:
        put_slopes(model, config)
    if "bskcn_1" in config:
        mix_streams(model.model.layers, config)
    if config.get("norm_between"):
        norm_between(model.model, config["norm_between"])
    if "loop_window_size" in config:
        gate_passes(model, config, load_file(Path(folder) / "model.safetensors"))


def mix_streams(layers, config):
    kept, weight = {}, config["bskcn_tv"][1]

    def before(index):
        def hook(_module, inputs):
            x = inputs[0]
            for slot in (1, 2):
                if index in config[f"bskcn_{slot}"]:
                    kept[slot] = x
            for slot in (1, 2):
                if index in config[f"bskcn_{slot + 2}"]:
                    x = kept[slot] * weight + x * (1 - weight)
            return (x, *inputs[1:])

        return hook

    for index, layer in enumerate(layers):
        layer.register_forward_pre_hook(before(index))


# Nanbeige and IQuest-Coder Loop: a Llama that has every layer once for each pass, with the same weights.


def nanbeige(config):
    return {**config, "num_hidden_layers": draw.randint(1, 3), "num_loops": draw.randint(2, 3), "skip_loop_final_norm": chance(0.3)}


def loop_coder(config):
    config = {**config, "num_hidden_layers": draw.randint(1, 2), "loop_num": draw.randint(2, 3), "loop_window_size": draw.choice([2, 4])}
    return {**config, "head_dim": config["hidden_size"] // config["num_attention_heads"]}


def nanbeige_as_llama(config):
    layers = config["num_hidden_layers"]
    between = {} if config["skip_loop_final_norm"] else {"norm_between": layers}
    return kin.as_llama(config, num_hidden_layers=layers * config["num_loops"], **between)


def loop_coder_as_llama(config):
    layers = config["num_hidden_layers"]
    return kin.as_llama(config, num_hidden_layers=layers * config["loop_num"], own_layers=layers, rms_norm_eps=config.get("rms_norm_eps", 1e-5))


def shapes_of_loops(config, shapes):
    made = {name: shape for name, shape in shapes.items() if not (m := re.search(r"layers\.(\d+)\.", name)) or int(m[1]) < config["num_hidden_layers"]}
    if "loop_num" in config:
        heads, _, width = heads_of(config)
        for i in range(config["num_hidden_layers"]):
            made |= {f"model.gate_projections.{i}.weight": (heads, width), f"model.gate_projections.{i}.bias": (heads,)}
    return made


def of_loops(config, tensors):
    made, layers = {}, config["num_hidden_layers"]
    for name, tensor in tensors.items():
        found = re.search(r"layers\.(\d+)\.", name)
        if "gate_projections" in name:
            made[name.replace("model.gate_projections", "loop_gates")] = tensor
            continue
        for i in range(config.get("num_loops", config.get("loop_num")) if found else 1):
            made[name.replace(found[0], f"layers.{int(found[1]) + i * layers}.") if found else name] = tensor.clone()
    return made


def norm_between(model, layers):
    for index in range(layers, len(model.layers), layers):
        model.layers[index].register_forward_pre_hook(lambda _module, inputs: (model.norm(inputs[0]), *inputs[1:]))


def gate_passes(model, config, tensors):
    kept = {}
    for index, layer in enumerate(model.model.layers):
        own = index % config["own_layers"]
        gate = [tensors[f"loop_gates.{own}.{part}"] for part in ("weight", "bias")]
        layer.self_attn.looped = (kept, own, index >= config["own_layers"], config["loop_window_size"], *gate)


PLAIN_ATTENTION = modeling_llama.eager_attention_forward


def looped_attention(module, query, key, value, mask, **options):
    if hasattr(module, "slopes"):
        places = torch.arange(query.shape[2])
        far = (places[:, None] - places).clamp(min=0).double().sqrt()
        mask = mask - (module.slopes[:, None, None] * far).to(mask.dtype)
    if not hasattr(module, "looped"):
        return PLAIN_ATTENTION(module, query, key, value, mask, **options)
    kept, own, later, window, weight, bias = module.looped
    if not later:
        kept[own] = (key, value)
        return PLAIN_ATTENTION(module, query, key, value, mask, **options)
    places = torch.arange(query.shape[2])
    near = mask.masked_fill(places[:, None] - places >= window, torch.finfo(mask.dtype).min)
    local, weights = PLAIN_ATTENTION(module, query, key, value, near, **options)
    whole, _ = PLAIN_ATTENTION(module, query, *kept[own], mask, **options)
    logits = torch.einsum("bhtd,hd->bth", query, weight.to(query.dtype)) + bias.to(query.dtype)
    gate = logits.sigmoid().unsqueeze(-1)
    return whole * gate + local * (1 - gate), weights


modeling_llama.eager_attention_forward = looped_attention


FAMILIES = {
    "aquila": ("AquilaForCausalLM", kin.dense(head_dim=False, more=stated)),
    "exaone": ("ExaoneForCausalLM", kin.dense(epsilon="layer_norm_epsilon", more=exaone)),
    "internlm": ("InternLMForCausalLM", kin.dense("bias", head_dim=False, more=internlm1)),
    "internlm3": ("InternLM3ForCausalLM", kin.dense("qkv_bias", "bias")),
    "iquestcoder": ("IQuestCoderForCausalLM", kin.dense(*kin.BIASES, more=iquestcoder)),
    "iquestloopcoder": ("IQuestLoopCoderForCausalLM", kin.dense(head_dim=False, more=loop_coder)),
    "kormo": ("KORMoForCausalLM", kin.dense()),
    "nanbeige": ("NanbeigeForCausalLM", kin.dense(*kin.BIASES, head_dim=False, more=nanbeige)),
    "orion": ("OrionForCausalLM", kin.dense(head_dim=False, more=stated)),
    "pangu_embedded": ("PanguEmbeddedForCausalLM", kin.dense("bias", "mlp_bias")),
    "plamo3": ("Plamo3ForCausalLM", kin.dense(scaled=False, more=plamo3)),
    "rnj1": ("Rnj1ForCausalLM", kin.dense("attention_bias", more=rnj1)),
    "solar": ("SolarForCausalLM", kin.dense(*kin.BIASES, head_dim=False, more=solar)),
    "step1": ("Step1ForCausalLM", kin.dense(*kin.BIASES, head_dim=False, scaled=False, more=step1)),
    "telechat2": ("TeleChat2ForCausalLM", kin.dense(head_dim=False, scaled=False, epsilon="layer_norm_epsilon", more=telechat2)),
    "telechat3": ("TeleChat3ForCausalLM", kin.dense(*kin.BIASES, head_dim=False)),
    "teleflm": ("TeleFLMForCausalLM", kin.dense(head_dim=False, more=teleflm)),
    "xverse": ("XverseForCausalLM", kin.dense(head_dim=False)),
}


TWINS = {
    "aquila": (kin.as_llama, *SAME),
    "exaone": (exaone_as_llama, *with_names(EXAONE)),
    "internlm": (internlm1_as_llama, *SAME),
    "internlm3": (internlm3_as_seed, *SAME),
    "iquestcoder": (iquest_as_cwm, *SAME),
    "iquestloopcoder": (loop_coder_as_llama, shapes_of_loops, of_loops),
    "kormo": (kin.as_llama, *with_names(KORMO)),
    "nanbeige": (nanbeige_as_llama, shapes_of_loops, of_loops),
    "orion": (orion_as_stablelm, *SAME),
    "pangu_embedded": (pangu_as_llama, *SAME),
    "plamo3": (plamo3_as_gemma3, shapes_of_plamo3, of_plamo3),
    "rnj1": (rnj1_as_gemma3, *SAME),
    "solar": (kin.as_llama, *SAME),
    "step1": (step1_as_llama, *SAME),
    "telechat2": (telechat2_as_llama, shapes_of_telechat2, of_telechat2),
    "telechat3": (lambda config: kin.as_llama(config, rms_norm_eps=config.get("rms_norm_eps", 1e-5)), *SAME),
    "teleflm": (teleflm_as_granite, *SAME),
    "xverse": (kin.as_llama, *SAME),
}
