"""Odd tiny models of decoders of the hub (refimpl/models/hub_kin.cpp), for kin.py, as own_code.py has others: BAGEL's half that understands,
JAIS, Phi-3-small, Motif. Sources: the code beside the weights, as vLLM 0.10 and SGLang 0.5.23 took it over."""

import math
import re
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers.models.llama import modeling_llama

from . import kin
from .own_code import back, heads_of

draw, chance = kin.draw, kin.chance


# BAGEL: a Qwen2 with norms of queries and keys, beside what draws.


def bagel(config):
    config = {**config, "qk_norm": chance(0.7), "layer_module": draw.choice(["Qwen2MoTDecoderLayer", "Qwen2DecoderLayer"])}
    return {"llm_config": config, "visual_gen": False, "visual_und": False}


def bagel_as_qwen(config):
    text = {**config["llm_config"], "head_dim": heads_of(config["llm_config"])[2]}
    if not text["qk_norm"]:
        return {**text, "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}
    return {**text, "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "attention_bias": True}


DRAWING = {".weight": "_moe_gen.weight", ".bias": "_moe_gen.bias"}


def shapes_of_bagel(config, shapes):
    made = {f"language_model.{name}": shape for name, shape in shapes.items() if "o_proj.bias" not in name}
    if config["llm_config"]["layer_module"] == "Qwen2MoTDecoderLayer":
        for name, shape in list(made.items()):
            if ".mlp." in name:
                made[name.replace(".mlp.", ".mlp_moe_gen.")] = shape
            elif ".layers." in name or name.endswith("model.norm.weight"):
                made[kin.renamed(name, DRAWING)] = shape
    return made


def of_bagel(config, tensors):
    made = {name.removeprefix("language_model."): tensor for name, tensor in tensors.items() if "moe_gen" not in name}
    if config["llm_config"]["qk_norm"]:
        for name in [name for name in made if name.endswith("o_proj.weight")]:
            made[name.replace("weight", "bias")] = torch.zeros(len(made[name]))
    return made


# JAIS: a GPT-2 whose positions are linear biases, and whose unit is gated.


def jais():
    heads = draw.choice([1, 2, 3, 4, 6])
    config = {
        "vocab_size": draw.randint(40, 70), "n_embd": heads * draw.choice([4, 6]), "n_head": heads, "n_layer": draw.randint(1, 4), "n_positions": 64,
        "tie_word_embeddings": chance(), "position_embedding_type": "alibi", "activation_function": draw.choice(["swiglu", "swiglu", "gelu_new"]),
        "mup_scale_qk_dot_by_d": chance(), "mup_output_alpha": draw.choice([1.0, 2.0]), "mup_width_scale": draw.choice([0.25, 0.7]),
        "mup_embeddings_scale": draw.choice([1.0, 14.6]),
    }
    if chance():
        config["n_inner"] = draw.randint(5, 40)
    if chance(0.3):
        config |= {"embeddings_scale": 3.3, "width_scale": 0.4, "scale_qk_dot_by_d": chance()}
    return kin.with_epsilon(config, "layer_norm_epsilon")


def jais_as_gpt2(config):
    plain = config["activation_function"].replace("swiglu", "silu")
    return {**config, "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "activation_function": plain, "gated": plain == "silu"}


def shapes_of_jais(config, shapes):
    made = {name: shape for name, shape in shapes.items() if "wpe" not in name}
    if config["activation_function"] == "swiglu":
        made |= {name.replace("c_fc", "c_fc2"): shape for name, shape in made.items() if "c_fc" in name}
    return made


def of_jais(config, tensors):
    made = {f"gate.{name}" if "c_fc2" in name else name: tensor for name, tensor in tensors.items()}
    return made | {"transformer.wpe.weight": torch.zeros(config["n_positions"], config["n_embd"])}


def slopes(heads):
    whole = 2 ** int(math.log2(heads))
    return [2 ** (-8 * (i + 1) / whole) for i in range(whole)] + [2 ** (-8 * (2 * i + 1) / (2 * whole)) for i in range(heads - whole)]


class GatedConv(torch.nn.Module):
    """c_fc(x) under silu(c_fc2(x))."""

    def __init__(self, mlp, weight, bias):
        super().__init__()
        self.c_fc, self.c_proj, self.weight, self.bias = mlp.c_fc, mlp.c_proj, weight, bias

    def forward(self, x):
        gate = x @ self.weight.to(x.dtype) + self.bias.to(x.dtype)
        return self.c_proj(self.c_fc(x) * torch.nn.functional.silu(gate))


def factor(config, name, otherwise):
    return config.get(name, config.get(otherwise))


def make_jais(model, config, tensors):
    heads, base = config["n_head"], model.transformer
    scale, logits = factor(config, "embeddings_scale", "mup_embeddings_scale"), config.get("width_scale", config["mup_output_alpha"] * config["mup_width_scale"])
    base.wte.register_forward_hook(lambda _module, _inputs, x: x * torch.tensor(float(scale), dtype=x.dtype))
    model.lm_head.register_forward_hook(lambda _module, _inputs, x: x * logits)

    def biased(_module, inputs, options):
        mask = options["attention_mask"]
        count = mask.shape[-1]
        distance = torch.arange(count)[None, :] - torch.arange(count)[:, None]
        bias = torch.tensor(slopes(heads), dtype=torch.float64)[:, None, None] * distance
        return inputs, {**options, "attention_mask": mask + bias[None].to(mask.dtype)}

    for i, layer in enumerate(base.h):
        layer.attn.register_forward_pre_hook(biased, with_kwargs=True)
        if factor(config, "scale_qk_dot_by_d", "mup_scale_qk_dot_by_d"):
            layer.attn.scaling = 1 / layer.attn.head_dim
        if config["gated"]:
            layer.mlp = GatedConv(layer.mlp, *(tensors[f"gate.transformer.h.{i}.mlp.c_fc2.{part}"] for part in ("weight", "bias")))


# Phi-3-small: StarCoder 2 with a gated unit of its own, factors, and blocks of the text in place of all of it.


PHI3_SMALL = {"model.final_layernorm": "model.norm", ".self_attn.dense": ".self_attn.o_proj"}


def phi3_small():
    kv_heads = draw.choice([1, 2])
    heads = kv_heads * draw.choice([1, 2, 3])
    config = {
        "vocab_size": draw.randint(40, 70), "hidden_size": heads * draw.choice([6, 8]), "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "num_hidden_layers": draw.randint(2, 3), "ff_intermediate_size": draw.randint(6, 30), "hidden_act": "gegelu", "gegelu_limit": draw.choice([0.5, 20.0]),
        "rope_embedding_base": draw.choice([100, 1000000]), "mup_use_scaling": chance(0.7), "mup_attn_multiplier": draw.choice([1.0, 2.0]),
        "mup_embedding_multiplier": draw.choice([1.0, 10.0]), "mup_width_multiplier": draw.choice([1.0, 8.0]), "max_position_embeddings": 64,
        "dense_attention_every_n_layers": draw.choice([2, 3]), "blocksparse_block_size": draw.choice([1, 2]), "blocksparse_num_local_blocks": draw.choice([1, 2]),
        "blocksparse_vert_stride": draw.choice([2, 3, 4]), "blocksparse_homo_head_pattern": chance(0.3), "tie_word_embeddings": chance(),
    }
    return kin.with_epsilon(config, "layer_norm_epsilon")


def phi3_small_as_starcoder2(config):
    rope = {"rope_type": "default", "rope_theta": float(config["rope_embedding_base"])}
    return {
        **config, "model_type": "starcoder2", "architectures": ["Starcoder2ForCausalLM"], "use_bias": True, "norm_epsilon": config.get("layer_norm_epsilon", 1e-5),
        "hidden_act": "gelu", "intermediate_size": config["ff_intermediate_size"], "rope_parameters": rope, "embedding_dropout": 0.0, "residual_dropout": 0.0,
        "sliding_window": None,
    }


def shapes_of_phi3_small(config, shapes):
    heads, kv_heads, width = heads_of(config)
    made = {}
    for name, shape in shapes.items():
        ours = kin.renamed(name, back(PHI3_SMALL)).replace("mlp.c_proj", "mlp.down_proj")
        if re.search(r"[kv]_proj", name):
            continue
        if "q_proj" in name:
            made[ours.replace("q_proj", "query_key_value")] = ((heads + 2 * kv_heads) * width, *shape[1:])
        elif "c_fc" in name:
            made[ours.replace("c_fc", "up_proj")] = (2 * shape[0], *shape[1:])
        else:
            made[ours] = shape
    return made


def of_phi3_small(config, tensors):
    heads, kv_heads, width = heads_of(config)
    made = {}
    for name, tensor in tensors.items():
        theirs = kin.renamed(name, PHI3_SMALL)
        if "query_key_value" in name:
            rows = tensor.unflatten(0, (kv_heads, heads // kv_heads + 2, width))
            for letter, part in (("q", rows[:, :-2].flatten(1, 2)), ("k", rows[:, -2]), ("v", rows[:, -1])):
                made[theirs.replace("query_key_value", f"{letter}_proj")] = part.flatten(0, 1)
        elif "up_proj" in name:
            made[f"gated.{name}"] = tensor
            made[theirs.replace("up_proj", "c_fc")] = tensor[::2]
        else:
            made[theirs.replace("mlp.down_proj", "mlp.c_proj")] = tensor
    return made


class Gegelu(torch.nn.Module):
    """Gates and ups in turn: the sigmoid form of GELU of a gate, cut off above, by 1 more than an up, cut off on both sides."""

    def __init__(self, mlp, weight, bias, limit):
        super().__init__()
        self.c_proj, self.weight, self.bias, self.limit = mlp.c_proj, weight, bias, limit

    def forward(self, x):
        both = torch.nn.functional.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype))
        gate, up = both[..., ::2].clamp(max=self.limit), both[..., 1::2].clamp(-self.limit, self.limit)
        return self.c_proj(gate * torch.sigmoid(1.702 * gate) * (up + 1))


def seen_blocks(config, count):
    """[heads, count, count], as get_sparse_attn_mask makes it of blocks."""
    heads, stride = config["num_attention_heads"], config["blocksparse_vert_stride"]
    step = 0 if config["blocksparse_homo_head_pattern"] else max(1, stride // heads)
    of = torch.arange(count) // config["blocksparse_block_size"]
    near = (of[:, None] - of[None, :]) < config["blocksparse_num_local_blocks"]
    return torch.stack([near | ((of[None, :] + head * step + 1) % stride == 0) for head in range(heads)])


def make_phi3_small(model, config, tensors):
    model.model.embed_tokens.register_forward_hook(lambda _module, _inputs, x: x * config["mup_embedding_multiplier"])
    model.lm_head.register_forward_hook(lambda _module, _inputs, x: x / config["mup_width_multiplier"])

    def sparse(_module, inputs, options):
        mask = options["attention_mask"]
        hidden = ~seen_blocks(config, mask.shape[-1])
        return inputs, {**options, "attention_mask": mask.expand(-1, len(hidden), -1, -1).masked_fill(hidden, torch.finfo(mask.dtype).min)}

    for i, layer in enumerate(model.model.layers):
        at = f"gated.model.layers.{i}.mlp.up_proj."
        layer.mlp = Gegelu(layer.mlp, tensors[at + "weight"], tensors[at + "bias"], config["gegelu_limit"])
        if config["mup_use_scaling"]:
            layer.self_attn.scaling = config["mup_attn_multiplier"] / layer.self_attn.head_dim
        if (i + 1) % config["dense_attention_every_n_layers"] != 0:
            layer.self_attn.register_forward_pre_hook(sparse, with_kwargs=True)


# Motif: a Llama whose heads attend in pairs, of which the second is taken from the first, and whose gates PolyNorm bends.


def motif(config):
    heads = draw.choice([2, 4])
    rope = {"rope_theta": config.get("rope_theta", 1e4), "max_position_embeddings": 64, "rms_norm_eps": config.get("rms_norm_eps", 1e-5)}
    for key in ("rope_parameters", "hidden_act"):
        config.pop(key, None)
    return {
        **config, **rope, "num_attention_heads": heads, "num_key_value_heads": heads, "hidden_size": heads * draw.choice([6, 8]),
        "hidden_act": "poly_norm", "attn_rms_norm_eps": draw.choice([1e-5, 0.01]),
    }


def motif_as_llama(config):
    return kin.as_llama(config, hidden_act="silu", attention_bias=False, mlp_bias=False)


def shapes_of_motif(config, shapes):
    width, made = heads_of(config)[2], dict(shapes)
    for i in range(config["num_hidden_layers"]):
        at = f"model.layers.{i}."
        made |= {f"{at}self_attn.lambda_{letter}{n}": (width,) for letter in "qk" for n in (1, 2)} | {f"{at}self_attn.subln.weight": (2 * width,)}
        made |= {f"{at}mlp.act_fn.weight": (3,), f"{at}mlp.act_fn.bias": (1,)}
    return made


def of_motif(_config, tensors):
    return tensors


class PairedAttention(torch.nn.Module):
    """Around the projections of a Llama's."""

    def __init__(self, attention, config, layer, tensors):
        super().__init__()
        self.inner, self.heads, self.epsilon = attention, config["num_attention_heads"], config["attn_rms_norm_eps"]
        self.start = 0.8 - 0.6 * math.exp(-0.3 * (layer - 1))
        self.vectors = {name: tensors[f"model.layers.{layer}.self_attn.{name}"] for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2", "subln.weight")}

    def forward(self, hidden_states, position_embeddings, **_):
        x = hidden_states
        exact = torch.promote_types(x.dtype, torch.float32)
        q, k, v = (getattr(self.inner, f"{letter}_proj")(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for letter in "qkv")
        q, k = modeling_llama.apply_rotary_pos_emb(q, k, *position_embeddings)

        def attended(n, m):
            scores = (q[:, n::2] @ k[:, n::2].transpose(-1, -2)).to(exact) * q.shape[-1] ** -0.5
            scores = scores + torch.full(scores.shape[-2:], float("-inf"), dtype=exact).triu(1)
            return scores.softmax(-1).to(x.dtype) @ v[:, m::2]

        both = [torch.cat([attended(n, 0), attended(n, 1)], -1) for n in (0, 1)]
        of = {name: tensor.to(exact) for name, tensor in self.vectors.items()}
        share = torch.exp((of["lambda_q1"] * of["lambda_k1"]).sum()) - torch.exp((of["lambda_q2"] * of["lambda_k2"]).sum()) + self.start
        y = (both[0] - share.to(x.dtype) * both[1]).to(exact)
        y = (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.epsilon)).to(x.dtype) * of["subln.weight"].to(x.dtype)
        return self.inner.o_proj((y * (1 - self.start)).transpose(1, 2).flatten(-2)), None


class PolyNorm(torch.nn.Module):
    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(self, x):
        def normed(y):
            y = y.to(torch.promote_types(y.dtype, torch.float32))
            return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)

        w = self.weight.to(x.dtype)
        return w[0] * normed(x**3) + w[1] * normed(x**2) + w[2] * normed(x) + self.bias.to(x.dtype)


def make_motif(model, config, tensors):
    for i, layer in enumerate(model.model.layers):
        layer.self_attn = PairedAttention(layer.self_attn, config, i, tensors)
        layer.mlp.act_fn = PolyNorm(*(tensors[f"model.layers.{i}.mlp.act_fn.{part}"] for part in ("weight", "bias")))


def mend(model, config, folder):
    """As own_code.mend()."""
    if "mup_width_scale" in config:
        make_jais(model, config, load_file(Path(folder) / "model.safetensors"))
    if "attn_rms_norm_eps" in config:
        make_motif(model, config, load_file(Path(folder) / "model.safetensors"))
    if "gegelu_limit" in config:
        make_phi3_small(model, config, load_file(Path(folder) / "model.safetensors"))


FAMILIES = {
    "bagel": ("BagelForConditionalGeneration", kin.dense(head_dim=False, scaled=False, more=bagel)),
    "jais": ("JAISLMHeadModel", jais),
    "motif": ("MotifForCausalLM", kin.dense(head_dim=False, kv_heads=False, scaled=False, more=motif)),
    "phi3small": ("Phi3SmallForCausalLM", phi3_small),
}
TWINS = {
    "bagel": (bagel_as_qwen, shapes_of_bagel, of_bagel),
    "jais": (jais_as_gpt2, shapes_of_jais, of_jais),
    "motif": (motif_as_llama, shapes_of_motif, of_motif),
    "phi3small": (phi3_small_as_starcoder2, shapes_of_phi3_small, of_phi3_small),
}
