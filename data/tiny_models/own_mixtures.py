"""Mixtures among the families of own_code.py: DeepSeekMoE, Param2, Sarvam, openPangu Ultra MoE, K2 Horizon, Ling 2.5, Ring linear 2.0."""

import math
import re
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers.models.deepseek_v3 import modeling_deepseek_v3

from . import kin
from .own_code import SAME, back, heads_of, stated

draw, chance = kin.draw, kin.chance


# DeepSeekMoE: Qwen2-MoE, whose gate of shared experts is 1/2 here, and they twice as large.


def deepseek_v1(config):
    if chance(0.25):
        return {key: value for key, value in config.items() if key not in ("n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")}
    config = {**config, "attention_bias": False, "n_shared_experts": draw.randint(1, 2), "first_k_dense_replace": draw.randint(0, 2)}
    return {**config, "moe_layer_freq": draw.choice([1, 2])} if chance() else config


def sparse_layers(config):
    first, every = config.get("first_k_dense_replace", 0), config.get("moe_layer_freq", 1)
    return [i >= first and i % every == 0 for i in range(config["num_hidden_layers"])]


def deepseek_as_qwen2_moe(config):
    if "n_routed_experts" not in config:
        return kin.as_llama(config)
    dense = [i for i, sparse in enumerate(sparse_layers(config)) if not sparse]
    return {
        **config, "model_type": "qwen2_moe", "architectures": ["Qwen2MoeForCausalLM"], "num_experts": config["n_routed_experts"],
        "shared_expert_intermediate_size": config["n_shared_experts"] * config["moe_intermediate_size"], "mlp_only_layers": dense,
        "decoder_sparse_step": 1, "qkv_bias": False, "use_sliding_window": False, "norm_topk_prob": config.get("norm_topk_prob", False),
        "rms_norm_eps": config.get("rms_norm_eps", 1e-6),
    }


def shapes_of_deepseek_v1(config, shapes):
    return {name.replace("shared_expert.", "shared_experts."): shape for name, shape in shapes.items() if "shared_expert_gate" not in name}


def of_deepseek_v1(config, tensors):
    made = {}
    for name, tensor in tensors.items():
        made[name.replace("shared_experts.", "shared_expert.")] = 2 * tensor if "shared_experts.down" in name else tensor
        if "shared_experts.down" in name:
            made[name.replace("shared_experts.down_proj", "shared_expert_gate")] = torch.zeros(1, config["hidden_size"])
    return made


# Param2 and Sarvam: Ling 2 under other sizes.


def ling_kin(whole_heads):
    def make(config):
        config = kin.ling2(config)
        if whole_heads:
            config.pop("partial_rotary_factor")
        if chance():
            config["moe_shared_expert_intermediate_size"] = config["moe_intermediate_size"] * (1 if whole_heads else config["num_shared_experts"])
        if config.get("n_group", 1) == 1:
            config |= {"n_group": 1, "topk_group": 1}
        return config

    return make


def ling_as_glm4_moe(config):
    return kin.as_glm4_moe({"partial_rotary_factor": 1.0, **config})


# Sarvam's latent attention is DeepSeek-V3's, but for an epsilon.


def latent_sizes(config):
    config = {key: value for key, value in config.items() if key not in ("head_dim", "rope_parameters", "rope_theta")}
    return {
        **config, "kv_lora_rank": draw.choice([5, 8]), "q_lora_rank": draw.choice([None, 6]), "qk_nope_head_dim": draw.choice([3, 8]),
        "qk_rope_head_dim": draw.choice([4, 6]), "v_head_dim": draw.choice([5, 8]), "num_key_value_heads": config["num_attention_heads"],
        "rope_theta": draw.choice([1e2, 1e4]), "max_position_embeddings": 64, "hidden_act": "silu",
    }


def sarvam_mla(config):
    config = latent_sizes(kin.grouped(config))
    for theirs, ours in {"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts"}.items():
        config[ours] = config.pop(theirs, 1)
    config["q_lora_rank"] = None
    scaling = {"type": "deepseek_yarn", "factor": 4.0, "original_max_position_embeddings": 8, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0}
    config["rope_scaling"] = {**scaling, "mscale_all_dim": draw.choice([0.5, 1.0])}
    return config


def as_deepseek_v3(config, **more):
    return {
        **config, "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "rope_interleave": True, "attention_bias": False,
        "n_group": config.get("n_group", 1), "topk_group": config.get("topk_group", 1), "norm_topk_prob": config.get("norm_topk_prob", True),
        "rms_norm_eps": config.get("rms_norm_eps", 1e-6), "epsilon_of_latents": config.get("rms_norm_eps", 1e-6),
        "num_nextn_predict_layers": 0, **more,
    }


def sarvam_as_deepseek_v3(config):
    rope = {key: value for key, value in config["rope_scaling"].items() if key != "type"}
    return as_deepseek_v3(
        {key: value for key, value in config.items() if key != "rope_scaling"}, n_routed_experts=config["num_experts"],
        n_shared_experts=config["num_shared_experts"], first_k_dense_replace=config.get("first_k_dense_replace", 1),
        rope_parameters={"rope_type": "yarn", "rope_theta": config["rope_theta"], **rope}, routed_scaling_factor=config.get("routed_scaling_factor", 2.5),
    )


# openPangu Ultra MoE: DeepSeek-V3 with norms behind attention and MLP, too, and as many groups as one.


def pangu_ultra(config):
    config = latent_sizes(kin.grouped(stated(config)))
    return {
        **config, "n_group": 1, "topk_group": 1, "sandwich_norm": chance(0.7), "router_enable_expert_bias": chance(), "norm_topk_prob": chance(),
        "routed_scaling_factor": draw.choice([1.0, 2.5]), "first_k_dense_replace": draw.randint(0, 2), "num_nextn_predict_layers": 0,
        "n_shared_experts": draw.randint(1, 2), "num_experts_per_tok": draw.randint(1, config["n_routed_experts"]),
    }


PANGU_BIAS = "mlp.gate.e_score_correction_bias"


def shapes_of_pangu_ultra(config, shapes):
    biased = config["router_enable_expert_bias"]
    return {name.replace(PANGU_BIAS, "mlp.e_score_correction_bias"): shape for name, shape in shapes.items() if biased or PANGU_BIAS not in name}


def of_pangu_ultra(config, tensors):
    made = {name.replace("mlp.e_score_correction_bias", PANGU_BIAS): tensor for name, tensor in tensors.items()}
    for name in [name for name in made if name.endswith("mlp.gate.weight")]:
        made.setdefault(name.replace("gate.weight", "gate.e_score_correction_bias"), torch.zeros(len(made[name])))
    return made


class SandwichLayer(modeling_deepseek_v3.DeepseekV3DecoderLayer):
    """Of a config with sandwich_norm; of others the class's own."""

    def __init__(self, config, layer_idx):
        super().__init__(config, layer_idx)
        self.sandwich = getattr(config, "sandwich_norm", False)
        if self.sandwich:
            for name in ("pre_mlp_layernorm", "post_mlp_layernorm"):
                setattr(self, name, type(self.input_layernorm)(config.hidden_size, eps=config.rms_norm_eps))

    def forward(self, hidden_states, **kwargs):
        if not self.sandwich:
            return super().forward(hidden_states, **kwargs)
        attended, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **kwargs)
        hidden_states = hidden_states + self.post_attention_layernorm(attended)
        return hidden_states + self.post_mlp_layernorm(self.mlp(self.pre_mlp_layernorm(hidden_states)))


modeling_deepseek_v3.DeepseekV3DecoderLayer = SandwichLayer


def taps_of(layer):
    if not getattr(layer, "sandwich", False):
        return {}
    return {"post_attention_layernorm": "attn_post_norm", "pre_mlp_layernorm": "mlp_norm", "post_mlp_layernorm": "mlp_post_norm"}


# K2 Horizon: GLM-4.5 with other norms of heads, gates of what attention gives, and experts of values. The rows of a head that rotate
# lie elsewhere.


def k2_horizon(config):
    layers, count = config["num_hidden_layers"], config["num_experts"]
    config["head_dim"] = draw.choice([8, 12])
    config.pop("rope_parameters", None)
    config |= {
        "attention_gate_func": draw.choice(["", "silu", "softplus"]), "rope_head_dim": draw.choice([4, config["head_dim"]]), "rope_theta": 1e4,
        "query_key_norm": chance(0.8), "max_position_embeddings": 64, "decoder_sparse_step": 1, "mlp_only_layers": list(range(draw.randint(0, layers))),
        "num_shared_experts": draw.randint(1, 2), "moe_gate_bias": chance(), "norm_topk_prob": chance(), "router_score_func": "sigmoid",
        "router_scaling_factor": draw.choice([1.0, 2.5]), "mova_num_experts": draw.choice([0, 3, 4]), "rms_norm_eps": config.get("rms_norm_eps", 1e-6),
        "num_experts": max(count, 2), "hidden_act": "silu",
    }
    return {**config, "mova_num_experts_per_tok": draw.randint(1, config["mova_num_experts"]) if config["mova_num_experts"] else 0}


def horizon_as_glm4_moe(config):
    part = config["rope_head_dim"] / config["head_dim"]
    return {
        **config, "model_type": "glm4_moe", "architectures": ["Glm4MoeForCausalLM"], "n_routed_experts": config["num_experts"],
        "n_shared_experts": config["num_shared_experts"], "first_k_dense_replace": len(config["mlp_only_layers"]), "n_group": 1, "topk_group": 1,
        "routed_scaling_factor": config["router_scaling_factor"], "attention_bias": False, "use_qk_norm": False, "num_nextn_predict_layers": 0,
        "rope_parameters": {"rope_type": "default", "rope_theta": config["rope_theta"], "partial_rotary_factor": part},
    }


def values_of(config, layer):
    return config["mova_num_experts"] if layer not in config["mlp_only_layers"] else 0


def shapes_of_horizon(config, shapes):
    heads, kv_heads, width = heads_of(config)
    made = {}
    for name, shape in shapes.items():
        layer = int(m[1]) if (m := re.search(r"layers\.(\d+)\.", name)) else -1
        if name.endswith("e_score_correction_bias"):
            if config["moe_gate_bias"]:
                made[name.replace("e_score_correction_bias", "bias")] = shape
        elif "v_proj" in name and values_of(config, layer):
            made[name.replace("v_proj", "v_router")] = (config["mova_num_experts"], shape[1])
            if config["moe_gate_bias"]:
                made[name.replace("v_proj.weight", "v_router.bias")] = (config["mova_num_experts"],)
            made |= {name.replace("v_proj", f"v_experts.{e}"): shape for e in range(config["mova_num_experts"])}
        else:
            made[name] = shape
        if name.endswith("q_proj.weight") and config["query_key_norm"]:
            made |= {name.replace("q_proj", f"{letter}_norm"): (count * width,) for letter, count in (("q", heads), ("k", kv_heads))}
        if name.endswith("q_proj.weight") and config["attention_gate_func"]:
            made[name.replace("q_proj", "gate_proj")] = shape
    return made


def rotating_first(config, tensor):
    """Rows of q or k as GLM rotates them: of each head those that rotate come first."""
    width, part = config["head_dim"], config["rope_head_dim"]
    half = width // 2
    order = [*range(part // 2), *range(half, half + part // 2), *range(part // 2, half), *range(half + part // 2, width)]
    return tensor.unflatten(0, (-1, width))[:, order].flatten(0, 1)


def of_horizon(config, tensors):
    made = {}
    for name, tensor in tensors.items():
        if re.search(r"gate_proj", name) and "self_attn" in name or re.search(r"v_router|v_experts", name):
            made[f"horizon.{name}"] = tensor
        elif re.search(r"[qk]_norm", name):
            made[f"horizon.{name}"] = rotating_first(config, tensor)
        elif re.search(r"[qk]_proj", name):
            made[name] = rotating_first(config, tensor)
        else:
            made[name.replace("mlp.gate.bias", "mlp.gate.e_score_correction_bias")] = tensor
    for name in [name for name in made if name.endswith("mlp.gate.weight")]:
        made.setdefault(name.replace("gate.weight", "gate.e_score_correction_bias"), torch.zeros(len(made[name])))
    for i in range(config["num_hidden_layers"]):
        made.setdefault(f"model.layers.{i}.self_attn.v_proj.weight", torch.zeros(heads_of(config)[1] * config["head_dim"], config["hidden_size"]))
    return made


class RowNorm(torch.nn.Module):
    def __init__(self, weight, heads, epsilon):
        super().__init__()
        self.weight, self.epsilon = torch.nn.Parameter(weight.view(heads, -1)), epsilon

    def forward(self, x):
        y = x.to(torch.promote_types(x.dtype, torch.float32))
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.epsilon)).to(x.dtype) * self.weight.to(x.dtype)


class Values(torch.nn.Module):
    def __init__(self, router, bias, experts, config):
        super().__init__()
        self.router, self.bias, self.experts, self.config = router, bias, experts, config

    def forward(self, x):
        exact = torch.promote_types(x.dtype, torch.float32)
        scores = (x @ self.router.to(x.dtype).T).to(exact).sigmoid()
        chosen = (scores + self.bias.to(exact)).topk(self.config["mova_num_experts_per_tok"], -1).indices
        weights = scores.gather(-1, chosen)
        if chosen.shape[-1] > 1:
            weights = weights / weights.sum(-1, keepdim=True)
        weights = (weights * self.config["router_scaling_factor"]).to(x.dtype)
        made = torch.nn.functional.silu(torch.einsum("bth,evh->btev", x, self.experts.to(x.dtype)))
        return (made.gather(2, chosen.unsqueeze(-1).expand(-1, -1, -1, made.shape[-1])) * weights.unsqueeze(-1)).to(exact).sum(2).to(x.dtype)


def make_horizon(layers, config, tensors):
    heads, kv_heads, _ = heads_of(config)
    for i, layer in enumerate(layers):
        attention, at = layer.self_attn, f"horizon.model.layers.{i}.self_attn."
        if config["query_key_norm"]:
            attention.use_qk_norm = True
            attention.q_norm, attention.k_norm = (
                RowNorm(tensors[f"{at}{letter}_norm.weight"], count, config["rms_norm_eps"]) for letter, count in (("q", heads), ("k", kv_heads))
            )
        if values_of(config, i):
            experts = torch.stack([tensors[f"{at}v_experts.{e}.weight"] for e in range(config["mova_num_experts"])])
            bias = tensors.get(at + "v_router.bias", torch.zeros(len(experts)))
            attention.v_proj = Values(tensors[at + "v_router.weight"], bias, experts, config)
        if config["attention_gate_func"]:
            gate_heads(attention, tensors[at + "gate_proj.weight"], config["attention_gate_func"])


def gate_heads(attention, weight, function):
    def bent(x):
        return torch.nn.functional.silu(x) if function == "silu" else torch.nn.functional.softplus(x, beta=math.log(2))

    def see(module, _inputs, options):
        module.seen = options["hidden_states"]

    attention.register_forward_pre_hook(see, with_kwargs=True)
    attention.o_proj.register_forward_pre_hook(lambda _module, inputs: (inputs[0] * bent(attention.seen @ weight.to(inputs[0].dtype).T),))


# Ling 2.5: DeepSeek-V3, of which most layers have lightning attention.


LING25 = {
    "model.word_embeddings": "model.embed_tokens", ".attention.dense": ".self_attn.o_proj", ".attention.": ".self_attn.",
    "gate.expert_bias": "gate.e_score_correction_bias",
}


def ling25(config):
    config = latent_sizes(kin.grouped(config))
    for theirs, ours in {"n_routed_experts": "num_experts", "n_shared_experts": "num_shared_experts"}.items():
        config[ours] = config.pop(theirs, 1)
    config.setdefault("first_k_dense_replace", 1)
    config["num_attention_heads"] = config["num_key_value_heads"] = draw.choice([2, 3, 4])
    return {
        **config, "num_hidden_layers": draw.choice([3, 4]), "layer_group_size": draw.choice([2, 3]), "head_dim": draw.choice([8, 12]),
        "partial_rotary_factor": draw.choice([0.5, 1.0]), "group_norm_size": draw.choice([1, config["num_attention_heads"]]), "use_qk_norm": chance(0.7),
        "use_qkv_bias": chance(), "routed_scaling_factor": config.get("routed_scaling_factor", 2.5), "score_function": "sigmoid", "num_nextn_predict_layers": 0,
    }


def is_linear(config, layer):
    group = config["layer_group_size"]
    return (layer + 1) % group != 0 and layer < config["num_hidden_layers"] // group * group


def ling25_as_deepseek_v3(config):
    rope = {"rope_type": "default", "rope_theta": config["rope_theta"]}
    return as_deepseek_v3(
        {key: value for key, value in config.items() if key not in ("head_dim", "partial_rotary_factor")}, n_routed_experts=config["num_experts"],
        n_shared_experts=config["num_shared_experts"], rope_parameters=rope, rotating=config["partial_rotary_factor"], linear_width=config["head_dim"],
    )


def shapes_of_ling25(config, shapes):
    inner, hidden = config["num_attention_heads"] * config["head_dim"], config["hidden_size"]
    made = {}
    for name, shape in shapes.items():
        layer = int(m[1]) if (m := re.search(r"layers\.(\d+)\.", name)) else None
        if layer is None or "self_attn" not in name or not is_linear(config, layer):
            made[kin.renamed(name, back(LING25))] = shape
            continue
        at = f"model.layers.{layer}.attention."
        made |= {at + "query_key_value.weight": (3 * inner, hidden), at + "g_proj.weight": (inner, hidden), at + "g_norm.weight": (inner,)}
        made[at + "dense.weight"] = (hidden, inner)
        if config["use_qkv_bias"]:
            made[at + "query_key_value.bias"] = (3 * inner,)
        if config["use_qk_norm"]:
            made |= {f"{at}{letter}_layernorm.weight": (config["head_dim"],) for letter in ("query", "key")}
    return made


def of_ling25(config, tensors):
    made = {}
    for name, tensor in tensors.items():
        layer = int(m[1]) if (m := re.search(r"layers\.(\d+)\.attention", name)) else None
        linear = layer is not None and is_linear(config, layer)
        made[f"lightning.{name}" if linear else kin.renamed(name, LING25)] = tensor
    return made


class Lightning(torch.nn.Module):
    """Token by token, in float32 at least, as vLLM's kernels."""

    def __init__(self, config, layer, tensors):
        super().__init__()
        self.config, self.layer = config, layer
        at = f"lightning.model.layers.{layer}.attention."
        self.tensors = {name.removeprefix(at): tensor for name, tensor in tensors.items() if name.startswith(at)}
        self.tap = {}
        self.scan, self.scan_norm = torch.nn.Identity(), torch.nn.Identity()  # that hooks can see

    def normed(self, x, weight):
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        return y * weight.to(x.dtype)

    def rotated(self, x):
        part = int(self.config["linear_width"] * self.config["rotating"])
        inverse = self.config["rope_parameters"]["rope_theta"] ** (-torch.arange(0, part, 2, dtype=torch.float64) / part)
        angles = torch.arange(len(x), dtype=torch.float64)[:, None, None] * inverse
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x[..., : part // 2], x[..., part // 2 : part]
        return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., part:]], -1)

    def decays(self, exact):
        heads, layers = self.config["num_attention_heads"], self.config["num_hidden_layers"]
        whole = 2 ** int(math.log2(heads))
        slopes = [2 ** (-8 * (i + 1) / whole) for i in range(whole)] + [2 ** (-8 * (2 * i + 1) / (2 * whole)) for i in range(heads - whole)]
        return torch.exp(-torch.tensor(slopes, dtype=exact) * (1 - self.layer / (layers - 1) + 1e-5))

    def forward(self, hidden_states, **_):
        x, t = hidden_states[0], self.tensors
        exact = torch.promote_types(x.dtype, torch.float32)
        heads, width = self.config["num_attention_heads"], self.config["linear_width"]
        bias = t["query_key_value.bias"].to(x.dtype) if "query_key_value.bias" in t else None
        q, k, v = torch.nn.functional.linear(x, t["query_key_value.weight"].to(x.dtype), bias).to(exact).unflatten(-1, (3, heads, width)).unbind(1)
        if self.config["use_qk_norm"]:
            q, k = self.normed(q, t["query_layernorm.weight"]), self.normed(k, t["key_layernorm.weight"])
        q, k = self.rotated(q) * width**-0.5, self.rotated(k)
        state, made = torch.zeros(heads, width, width, dtype=exact), []
        for i in range(len(x)):
            state = state * self.decays(exact)[:, None, None] + k[i].unsqueeze(-1) * v[i].unsqueeze(-2)
            made.append((q[i].unsqueeze(-1) * state).sum(-2).flatten())
        y = self.scan(torch.stack(made))
        gate = torch.nn.functional.linear(x, t["g_proj.weight"].to(x.dtype)).to(exact)
        groups = y.unflatten(-1, (self.config["group_norm_size"], -1))
        groups = groups * torch.rsqrt(groups.pow(2).mean(-1, keepdim=True) + self.config["rms_norm_eps"])
        y = self.scan_norm((groups.flatten(-2) * t["g_norm.weight"].to(exact) * gate.sigmoid()).to(x.dtype))
        return torch.nn.functional.linear(y, t["dense.weight"].to(x.dtype)).unsqueeze(0), None


def put_lightning(layers, config, tensors):
    for index, layer in enumerate(layers):
        if is_linear(config, index):
            layer.self_attn = Lightning(config, index, tensors)


def keep_within(layer, keep):
    if isinstance(layer.self_attn, Lightning):
        keep("scan", layer.self_attn.scan)
        keep("scan_norm", layer.self_attn.scan_norm)


# Ring and Ling linear 2.0: GLM-4.5, of which most layers have lightning attention.


def ring_linear(config):
    config = kin.ling2(config)
    heads, width = draw.choice([2, 3, 4]), draw.choice([8, 12])
    return {
        **config, "num_attention_heads": heads, "num_key_value_heads": draw.choice([n for n in (1, heads)]), "head_dim": width, "hidden_size": heads * width,
        "num_hidden_layers": draw.choice([3, 4]), "layer_group_size": draw.choice([2, 3]), "group_norm_size": draw.choice([1, heads]),
        "score_function": "sigmoid", "use_qkv_bias": chance(), "num_nextn_predict_layers": 0, "moe_shared_expert_intermediate_size": config["moe_intermediate_size"],
    }


def ring_as_glm4_moe(config):
    return {**kin.as_glm4_moe(config), "rotating": config["partial_rotary_factor"], "linear_width": config["head_dim"]}


def shapes_of_ring(config, shapes):
    linear = {name: shape for name, shape in shapes.items() if (m := re.search(r"layers\.(\d+)\.self_attn", name)) and is_linear(config, int(m[1]))}
    return kin.shapes_of_ling2(config, {name: shape for name, shape in shapes.items() if name not in linear}) | shapes_of_ling25(config, linear)


def of_ring(config, tensors):
    lightning = {name: tensor for name, tensor in tensors.items() if (m := re.search(r"layers\.(\d+)\.attention", name)) and is_linear(config, int(m[1]))}
    others = {name: tensor for name, tensor in tensors.items() if name not in lightning}
    return kin.of_ling2(config, others) | {f"lightning.{name}": tensor for name, tensor in lightning.items()}


def mend(model, config, folder):
    """What a twin's class lacks; `folder`: with weights that it does not know."""
    if "epsilon_of_latents" in config:
        for name, module in model.named_modules():
            if name.endswith(("q_a_layernorm", "kv_a_layernorm")):
                module.variance_epsilon = config["epsilon_of_latents"]
    if "layer_group_size" in config:
        put_lightning(model.model.layers, config, load_file(Path(folder) / "model.safetensors"))
    if "attention_gate_func" in config:
        make_horizon(model.model.layers, config, load_file(Path(folder) / "model.safetensors"))


FAMILIES = {
    "bailing_moe_linear": ("BailingMoeLinearV2ForCausalLM", kin.experts("use_qkv_bias", count="n_routed_experts", scaled=False, more=ring_linear)),
    "bailing_moe_v2_5": ("BailingMoeV2_5ForCausalLM", kin.experts(head_dim=False, scaled=False, count="n_routed_experts", more=ling25)),
    "deepseek_v1": (
        "DeepseekForCausalLM", kin.experts("attention_bias", "norm_topk_prob", head_dim=False, count="n_routed_experts", more=deepseek_v1),
    ),
    "k2_horizon": ("K2HorizonForCausalLM", kin.experts(scaled=False, more=k2_horizon)),
    "pangu_ultra_moe": ("PanguUltraMoEForCausalLM", kin.experts(head_dim=False, scaled=False, count="n_routed_experts", more=pangu_ultra)),
    "param2moe": ("Param2MoEForCausalLM", kin.experts("use_qkv_bias", count="n_routed_experts", scaled=False, more=ling_kin(False))),
    "sarvam_mla": ("SarvamMLAForCausalLM", kin.experts(head_dim=False, scaled=False, count="n_routed_experts", more=sarvam_mla)),
    "sarvam_moe": ("SarvamMoEForCausalLM", kin.experts("use_qkv_bias", count="n_routed_experts", scaled=False, more=ling_kin(True))),
}


TWINS = {
    "bailing_moe_linear": (ring_as_glm4_moe, shapes_of_ring, of_ring),
    "bailing_moe_v2_5": (ling25_as_deepseek_v3, shapes_of_ling25, of_ling25),
    "deepseek_v1": (deepseek_as_qwen2_moe, shapes_of_deepseek_v1, of_deepseek_v1),
    "k2_horizon": (horizon_as_glm4_moe, shapes_of_horizon, of_horizon),
    "pangu_ultra_moe": (as_deepseek_v3, shapes_of_pangu_ultra, of_pangu_ultra),
    "param2moe": (ling_as_glm4_moe, kin.shapes_of_ling2, kin.of_ling2),
    "sarvam_mla": (sarvam_as_deepseek_v3, *SAME),
    "sarvam_moe": (ling_as_glm4_moe, kin.shapes_of_ling2, kin.of_ling2),
}
