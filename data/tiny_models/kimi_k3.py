"""Kimi K3's text model in torch, after the formulas of vLLM 0.30 (models/kimi_k3: linear.py, kda.py, ops/attn_res.py; the
activation of layers/activation.py), written anew and plainly: `transformers` has no class for it. Token by token where vLLM has
a scan. Matrices are of the type asked for; norms, gates, softmax and states in float32, or double throughout."""

import torch
from torch.nn.functional import linear, softmax

import check_family_variants as variants

draw, chance = variants.draw, variants.chance


def config():
    heads, layers = draw.choice([2, 3]), draw.choice([4, 5])
    kinds = draw.sample(["kda", "full", *(draw.choice(["kda", "full"]) for _ in range(layers - 2))], layers)
    count, head_dim = draw.choice([4, 6]), draw.choice([4, 6])
    made = {
        "architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "vocab_size": draw.randint(40, 70),
        "hidden_size": draw.choice([16, 20]), "intermediate_size": draw.choice([11, 24]), "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": heads, "tie_word_embeddings": False, "rms_norm_eps": draw.choice([1e-5, 1e-3]),
        "max_position_embeddings": 64, "kv_lora_rank": draw.choice([5, 8]), "q_lora_rank": draw.choice([6, 9]),
        "qk_nope_head_dim": draw.choice([3, 8]), "qk_rope_head_dim": draw.choice([2, 4]), "v_head_dim": draw.choice([5, 8]),
        "mla_use_nope": True, "mla_use_output_gate": True, "first_k_dense_replace": draw.choice([1, 2, 3]),
        "num_experts": count, "num_experts_per_token": draw.randint(1, 3), "num_shared_experts": draw.choice([1, 2]),
        "moe_intermediate_size": draw.choice([5, 9]), "moe_renormalize": chance(0.7), "routed_scaling_factor": draw.choice([1.0, 2.5]),
        "moe_router_activation_func": "sigmoid", "topk_method": "noaux_tc", "num_expert_group": 1, "topk_group": 1,
        "routed_expert_hidden_size": draw.choice([7, 12]), "latent_moe_use_norm": chance(0.7), "attn_res_block_size": draw.choice([1, 2, 3]),
        "hidden_act": "situ", "activation_situ_beta": draw.choice([0.5, 4.0]), "activation_situ_linear_beta": draw.choice([0.7, 25.0]),
        "linear_attn_config": {
            "full_attn_layers": [i + 1 for i, kind in enumerate(kinds) if kind == "full"],
            "kda_layers": [i + 1 for i, kind in enumerate(kinds) if kind == "kda"], "num_heads": draw.choice([1, 2, 3]),
            "head_dim": head_dim, "short_conv_kernel_size": draw.choice([2, 4]), "gate_lower_bound": draw.choice([-5.0, -1.0]),
            "use_full_rank_gate": True,
        },
    }
    return made


def shapes(c):
    hidden, linear_attn = c["hidden_size"], c["linear_attn_config"]
    heads, nope, rope, value = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    width, latent = linear_attn["num_heads"] * linear_attn["head_dim"], c["routed_expert_hidden_size"]
    made = {
        "model.embed_tokens.weight": (c["vocab_size"], hidden), "model.norm.weight": (hidden,), "lm_head.weight": (c["vocab_size"], hidden),
        "model.output_attn_res_norm.weight": (hidden,), "model.output_attn_res_proj.weight": (1, hidden),
    }
    for i in range(c["num_hidden_layers"]):
        of = {name: (hidden,) for name in ("input_layernorm", "post_attention_layernorm", "self_attention_res_norm", "mlp_res_norm")}
        of |= {"self_attention_res_proj": (1, hidden), "mlp_res_proj": (1, hidden)}
        if i + 1 in linear_attn["full_attn_layers"]:
            of |= {
                "self_attn.q_a_proj": (c["q_lora_rank"], hidden), "self_attn.q_a_layernorm": (c["q_lora_rank"],),
                "self_attn.q_b_proj": (heads * (nope + rope), c["q_lora_rank"]),
                "self_attn.kv_a_proj_with_mqa": (c["kv_lora_rank"] + rope, hidden), "self_attn.kv_a_layernorm": (c["kv_lora_rank"],),
                "self_attn.kv_b_proj": (heads * (nope + value), c["kv_lora_rank"]), "self_attn.g_proj": (heads * value, hidden),
                "self_attn.o_proj": (hidden, heads * value),
            }
        else:
            of |= {f"self_attn.{letter}_proj": (width, hidden) for letter in "qkvg"}
            of |= {f"self_attn.{letter}_conv1d": (width, 1, linear_attn["short_conv_kernel_size"]) for letter in "qkv"}
            of |= {
                "self_attn.f_a_proj": (linear_attn["head_dim"], hidden), "self_attn.f_b_proj": (width, linear_attn["head_dim"]),
                "self_attn.b_proj": (linear_attn["num_heads"], hidden), "self_attn.o_norm": (linear_attn["head_dim"],),
                "self_attn.o_proj": (hidden, width),
            }
            made[f"model.layers.{i}.self_attn.A_log"] = (linear_attn["head_dim"],)
            made[f"model.layers.{i}.self_attn.dt_bias"] = (width,)
        if i < c["first_k_dense_replace"]:
            wide = c["intermediate_size"]
            of |= {"mlp.gate_proj": (wide, hidden), "mlp.up_proj": (wide, hidden), "mlp.down_proj": (hidden, wide)}
        else:
            shared, own = c["num_shared_experts"] * c["moe_intermediate_size"], c["moe_intermediate_size"]
            at = "block_sparse_moe."
            made[f"model.layers.{i}.{at}gate.e_score_correction_bias"] = (c["num_experts"],)
            of |= {
                at + "gate": (c["num_experts"], hidden), at + "routed_expert_down_proj": (latent, hidden),
                at + "routed_expert_up_proj": (hidden, latent), at + "shared_experts.gate_proj": (shared, hidden),
                at + "shared_experts.up_proj": (shared, hidden), at + "shared_experts.down_proj": (hidden, shared),
            }
            if c["latent_moe_use_norm"]:
                of[at + "routed_expert_norm"] = (latent,)
            for e in range(c["num_experts"]):
                of |= {f"{at}experts.{e}.w{n}": (own, latent) for n in (1, 3)} | {f"{at}experts.{e}.w2": (latent, own)}
        made |= {f"model.layers.{i}.{name}.weight": shape for name, shape in of.items()}
    return made


class Model:
    def __init__(self, c, tensors, dtype):
        self.c, self.dtype = c, dtype
        self.exact = torch.float64 if dtype == torch.float64 else torch.float32
        self.tensors = {name: value.to(dtype) for name, value in tensors.items()}
        self.taps = {}
        self.margin = float("inf")  # between the last expert chosen and the first that is not

    def at(self, layer, name):
        return self.tensors[f"model.layers.{layer}.{name}"]

    def norm(self, x, weight, gate=None):
        y = x.to(self.exact)
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.c["rms_norm_eps"])
        if gate is None:  # rounded as transformers' Kimi Linear does
            return weight * y.to(self.dtype)
        return (y * weight.to(self.exact) * torch.sigmoid(gate.to(self.exact))).to(self.dtype)

    def mixed(self, kept, now, name):
        """ops/attn_res.py: scores are normed rows times norm and projection; their softmax mixes the rows."""
        if not kept:
            return now
        rows = torch.stack([*kept, now]).to(self.exact)  # [rows, tokens, hidden]
        key = (self.tensors[f"{name}_norm.weight"].to(self.exact) * self.tensors[f"{name}_proj.weight"][0].to(self.exact))
        scores = (rows * key).sum(-1) * torch.rsqrt(rows.pow(2).mean(-1) + self.c["rms_norm_eps"])
        return (softmax(scores, 0).unsqueeze(-1) * rows).sum(0).to(self.dtype)

    def mlp(self, x, gate, up, down):
        g, u = linear(x, gate).to(self.exact), linear(x, up).to(self.exact)
        beta, linear_beta = self.c["activation_situ_beta"], self.c["activation_situ_linear_beta"]
        y = beta * torch.tanh(g / beta) * torch.sigmoid(g) * linear_beta * torch.tanh(u / linear_beta)
        return linear(y.to(self.dtype), down)

    def mixture(self, x, i):
        w = lambda name: self.at(i, f"block_sparse_moe.{name}.weight")  # noqa: E731
        scores = linear(x.to(self.exact), w("gate").to(self.exact)).sigmoid()
        biased = scores + self.at(i, "block_sparse_moe.gate.e_score_correction_bias").to(self.exact)
        best = biased.topk(self.c["num_experts_per_token"] + 1, -1)
        self.margin = min(self.margin, (best.values[:, -2] - best.values[:, -1]).min().item())
        chosen = best.indices[:, :-1]
        weights = scores.gather(1, chosen)
        if self.c["moe_renormalize"]:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        weights = weights * self.c["routed_scaling_factor"]
        given = linear(x, w("routed_expert_down_proj"))
        routed = torch.zeros(given.shape, dtype=self.exact)
        for t in range(len(x)):
            for e, weight in zip(chosen[t].tolist(), weights[t]):
                y = self.mlp(given[t], w(f"experts.{e}.w1"), w(f"experts.{e}.w3"), w(f"experts.{e}.w2"))
                routed[t] += y.to(self.exact) * weight
        routed = routed.to(self.dtype)
        if self.c["latent_moe_use_norm"]:
            routed = self.norm(routed, w("routed_expert_norm"))
        shared = (w(f"shared_experts.{part}_proj") for part in ("gate", "up", "down"))
        return linear(routed, w("routed_expert_up_proj")) + self.mlp(x, *shared)

    def latent_attention(self, x, i):
        c, w = self.c, lambda name: self.at(i, f"self_attn.{name}.weight")  # noqa: E731
        heads, nope, rope, value = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        q = linear(self.norm(linear(x, w("q_a_proj")), w("q_a_layernorm")), w("q_b_proj")).unflatten(-1, (heads, nope + rope))
        down = linear(x, w("kv_a_proj_with_mqa"))
        latent, shared = self.norm(down[:, : c["kv_lora_rank"]], w("kv_a_layernorm")), down[:, c["kv_lora_rank"] :]
        k, v = linear(latent, w("kv_b_proj")).unflatten(-1, (heads, nope + value)).split([nope, value], -1)
        k = torch.cat([k, shared.unsqueeze(1).expand(-1, heads, -1)], -1)
        scores = torch.einsum("qhd,khd->hqk", q, k).to(self.exact) * (nope + rope) ** -0.5
        scores = scores + torch.full((len(x), len(x)), float("-inf"), dtype=self.exact).triu(1)
        context = torch.einsum("hqk,khd->qhd", softmax(scores, -1).to(self.dtype), v).flatten(1)
        self.taps |= {f"layers.{i}.latent": latent, f"layers.{i}.attn_context": context}
        gated = context * torch.sigmoid(linear(x, w("g_proj")))
        self.taps[f"layers.{i}.attn_gated"] = gated
        return linear(gated, w("o_proj"))

    def delta_attention(self, x, i):
        own, w = self.c["linear_attn_config"], lambda name: self.at(i, f"self_attn.{name}.weight")  # noqa: E731
        heads, width, kernel = own["num_heads"], own["head_dim"], own["short_conv_kernel_size"]

        def convolved(letter):
            y = linear(x, w(f"{letter}_proj"))
            y = torch.nn.functional.pad(y.T.unsqueeze(0), (kernel - 1, 0))
            y = torch.nn.functional.conv1d(y, w(f"{letter}_conv1d"), groups=heads * width)[0].T
            return torch.nn.functional.silu(y).unflatten(-1, (heads, width)).to(self.exact)

        unit = lambda y: y / torch.sqrt((y * y).sum(-1, keepdim=True) + 1e-6)  # noqa: E731
        q, k, v = unit(convolved("q")) * width**-0.5, unit(convolved("k")), convolved("v")
        raw = linear(linear(x, w("f_a_proj")), w("f_b_proj")).to(self.exact) + self.at(i, "self_attn.dt_bias").to(self.exact)
        rate = self.at(i, "self_attn.A_log").to(self.exact)[:heads].exp().view(1, heads, 1)
        decay = (own["gate_lower_bound"] * torch.sigmoid(rate * raw.unflatten(-1, (heads, width)))).exp()
        beta = linear(x, w("b_proj")).to(self.exact).sigmoid()
        state, out = torch.zeros(heads, width, width, dtype=self.exact), []
        for t in range(len(x)):
            state = state * decay[t].unsqueeze(-1)
            missing = (v[t] - torch.einsum("hkv,hk->hv", state, k[t])) * beta[t].unsqueeze(-1)
            state = state + torch.einsum("hk,hv->hkv", k[t], missing)
            out.append(torch.einsum("hkv,hk->hv", state, q[t]))
        scan = torch.stack(out).to(self.dtype)
        gate = linear(x, w("g_proj")).unflatten(-1, (heads, width))
        normed = self.norm(scan, w("o_norm"), gate).flatten(1)
        self.taps |= {f"layers.{i}.scan": scan, f"layers.{i}.scan_norm": normed}
        return linear(normed, w("o_proj"))

    @torch.no_grad()
    def run(self, tokens):
        c, full = self.c, self.c["linear_attn_config"]["full_attn_layers"]
        stream, kept = self.tensors["model.embed_tokens.weight"][torch.tensor(tokens)], []
        self.taps["embed"] = stream
        for i in range(c["num_hidden_layers"]):
            at, name = f"layers.{i}", f"model.layers.{i}"
            seen = self.mixed(kept, stream, f"{name}.self_attention_res")
            keeps = i % c["attn_res_block_size"] == 0
            if keeps:
                kept.append(stream)
            normed = self.norm(seen, self.at(i, "input_layernorm.weight"))
            out = self.latent_attention(normed, i) if i + 1 in full else self.delta_attention(normed, i)
            stream = out if keeps else stream + out
            fed = self.mixed(kept, stream, f"{name}.mlp_res")
            mlp_norm = self.norm(fed, self.at(i, "post_attention_layernorm.weight"))
            if i < c["first_k_dense_replace"]:
                given = self.mlp(mlp_norm, *(self.at(i, f"mlp.{part}_proj.weight") for part in ("gate", "up", "down")))
            else:
                given = self.mixture(mlp_norm, i)
            stream = stream + given
            self.taps |= {
                f"{at}.attn_in": seen, f"{at}.attn_norm": normed, f"{at}.attn_out": out, f"{at}.mlp_in": fed,
                f"{at}.mlp_norm": mlp_norm, f"{at}.mlp_out": given, f"{at}.out": stream,
            }
        mixed = self.mixed(kept, stream, "model.output_attn_res")
        final = self.norm(mixed, self.tensors["model.norm.weight"])
        self.taps |= {"mixed": mixed, "final_norm": final, "logits": linear(final, self.tensors["lm_head.weight"])}
        return {name: value.double().flatten() for name, value in self.taps.items()}
