"""DeepSeek-V3 in small: transformers' own class for the main model, and the MTP layer it does not train."""

import copy
import math
from contextlib import contextmanager

import torch
from torch import nn
from transformers import DeepseekV3Config, DeepseekV3ForCausalLM
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek

# The keys and the order of the real config.json; every size here is one that 128 does not divide.
CONFIG = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "ep_size": 1,
    "first_k_dense_replace": 1,
    "hidden_act": "silu",
    "hidden_size": 160,
    "initializer_range": 0.02,
    "intermediate_size": 200,
    "kv_lora_rank": 56,
    "max_position_embeddings": 256,
    "model_type": "deepseek_v3",
    "moe_intermediate_size": 72,
    "moe_layer_freq": 1,
    "n_group": 3,
    "n_routed_experts": 9,
    "n_shared_experts": 1,
    "norm_topk_prob": True,
    "num_attention_heads": 4,
    "num_experts_per_tok": 3,
    "num_hidden_layers": 3,
    "num_key_value_heads": 4,
    "num_nextn_predict_layers": 1,
    "q_lora_rank": 96,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "rms_norm_eps": 1e-06,
    "rope_scaling": {
        "beta_fast": 32,
        "beta_slow": 1,
        "factor": 4,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 64,
        "type": "yarn",
    },
    "rope_theta": 10000,
    "routed_scaling_factor": 2.5,
    "scoring_func": "sigmoid",
    "tie_word_embeddings": False,
    "topk_group": 2,
    "topk_method": "noaux_tc",
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "v_head_dim": 24,
    "vocab_size": 448,
}


class MtpLayer(nn.Module):
    """h'_i = layer(eh_proj[enorm(embed(t_{i+1})), hnorm(h_i)]), which predicts t_{i+2}.

    h_i is the main model's hidden state after its final norm, and the embedding comes first in the concatenation:
    what the inference engines that serve DeepSeek-V3 do, though the paper writes the two the other way round.
    """

    def __init__(self, config):
        super().__init__()
        self.enorm = deepseek.DeepseekV3RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.hnorm = deepseek.DeepseekV3RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.eh_proj = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.layer = deepseek.DeepseekV3DecoderLayer(config, layer_idx=config.num_hidden_layers)
        self.norm = deepseek.DeepseekV3RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, hidden, next_embedding, position_embeddings):
        joined = torch.cat([self.enorm(next_embedding), self.hnorm(hidden)], dim=-1)  # [batch, tokens, 2 hidden]
        return self.norm(self.layer(self.eh_proj(joined), position_embeddings=position_embeddings))


class TinyLM(nn.Module):
    """The main model and its MTP layer; embedding and head are shared."""

    def __init__(self):
        super().__init__()
        config = DeepseekV3Config(**copy.deepcopy(CONFIG))  # it adds keys to the dictionaries it is given
        config._attn_implementation = "sdpa"
        config._experts_implementation = "eager"
        self.main = DeepseekV3ForCausalLM(config)
        self.mtp = MtpLayer(config)
        self.mtp.apply(self.main._init_weights)

    @property
    def config(self):
        return self.main.config

    def forward(self, tokens):
        """Logits of t_{i+1} at every i, and of t_{i+2} at every i but the last."""
        hidden = self.main.model(tokens, use_cache=False).last_hidden_state  # [batch, tokens, hidden]
        positions = torch.arange(tokens.shape[1] - 1).unsqueeze(0)
        next_embedding = self.main.model.embed_tokens(tokens[:, 1:])
        mtp_hidden = self.mtp(hidden[:, :-1], next_embedding, self.main.model.rotary_emb(next_embedding, positions))
        return self.main.lm_head(hidden), self.main.lm_head(mtp_hidden)

    def routers(self):
        return [module for module in self.modules() if isinstance(module, deepseek.DeepseekV3TopkRouter)]

    def checkpoint_tensors(self):
        """Every tensor under the name and in the order a DeepSeek-V3 checkpoint has it.

        Layer N is the MTP layer, and with it stand stored copies of the embedding and the head, as in the real one.
        """
        base, count = self.main.model, self.config.num_hidden_layers
        yield "model.embed_tokens.weight", base.embed_tokens.weight
        for index in range(count):
            yield from _layer_tensors(f"model.layers.{index}", base.layers[index])
        prefix = f"model.layers.{count}"
        yield f"{prefix}.embed_tokens.weight", base.embed_tokens.weight
        yield f"{prefix}.enorm.weight", self.mtp.enorm.weight
        yield f"{prefix}.hnorm.weight", self.mtp.hnorm.weight
        yield f"{prefix}.eh_proj.weight", self.mtp.eh_proj.weight
        yield from _layer_tensors(prefix, self.mtp.layer)
        yield f"{prefix}.shared_head.norm.weight", self.mtp.norm.weight
        yield f"{prefix}.shared_head.head.weight", self.main.lm_head.weight
        yield "model.norm.weight", base.norm.weight
        yield "lm_head.weight", self.main.lm_head.weight

    @torch.no_grad()
    def load_checkpoint_tensors(self, values):
        """Takes `values` (a name of checkpoint_tensors() to a tensor) in place of the weights."""
        for name, parameter in self.checkpoint_tensors():
            parameter.copy_(values[name])


def _layer_tensors(prefix, layer):
    attention = layer.self_attn
    for name in ["q_a_proj", "q_a_layernorm", "q_b_proj", "kv_a_proj_with_mqa", "kv_a_layernorm", "kv_b_proj", "o_proj"]:
        yield f"{prefix}.self_attn.{name}.weight", getattr(attention, name).weight
    if isinstance(layer.mlp, deepseek.DeepseekV3MoE):
        yield from _moe_tensors(f"{prefix}.mlp", layer.mlp)
    else:
        yield from _mlp_tensors(f"{prefix}.mlp", layer.mlp)
    yield f"{prefix}.input_layernorm.weight", layer.input_layernorm.weight
    yield f"{prefix}.post_attention_layernorm.weight", layer.post_attention_layernorm.weight


def _mlp_tensors(prefix, mlp):
    for name in ["gate_proj", "up_proj", "down_proj"]:
        yield f"{prefix}.{name}.weight", getattr(mlp, name).weight


def _moe_tensors(prefix, moe):
    yield f"{prefix}.gate.weight", moe.gate.weight
    yield f"{prefix}.gate.e_score_correction_bias", moe.gate.e_score_correction_bias
    yield from _mlp_tensors(f"{prefix}.shared_experts", moe.shared_experts)
    for index in range(moe.experts.num_experts):
        # transformers keeps all experts in one tensor, gate above up; the checkpoint names each matrix.
        gate, up = moe.experts.gate_up_proj[index].chunk(2, dim=0)
        yield f"{prefix}.experts.{index}.gate_proj.weight", gate
        yield f"{prefix}.experts.{index}.up_proj.weight", up
        yield f"{prefix}.experts.{index}.down_proj.weight", moe.experts.down_proj[index]


@contextmanager
def double_precision(model):
    """Everything in double inside the block, also what transformers computes in float32 whatever the weights are:
    norms, router and rotary angles (whose frequencies are derived anew, as YaRN defines them)."""

    def norm(self, hidden):
        scale = torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * (hidden * scale)

    def rotary(self, hidden, position_ids):
        angles = position_ids[..., None].double() * yarn_frequencies(self.config)
        angles = torch.cat([angles, angles], dim=-1)
        return angles.cos() * self.attention_scaling, angles.sin() * self.attention_scaling

    def router(self, hidden):
        scores = nn.functional.linear(hidden.view(-1, self.hidden_dim), self.weight).sigmoid()
        choice = (scores + self.e_score_correction_bias).view(-1, self.num_group, self.num_experts // self.num_group)
        best = choice.topk(2, dim=-1)[0].sum(-1).topk(self.topk_group, dim=-1)[1]
        allowed = torch.zeros(choice.shape[:2], dtype=torch.bool).scatter_(1, best, True).unsqueeze(-1)
        chosen = choice.masked_fill(~allowed, float("-inf")).flatten(1).topk(self.top_k, dim=-1)[1]
        weights = scores.gather(1, chosen)
        return scores, weights / weights.sum(-1, keepdim=True) * self.routed_scaling_factor, chosen

    replaced = {deepseek.DeepseekV3RMSNorm: norm, deepseek.DeepseekV3RotaryEmbedding: rotary,
                deepseek.DeepseekV3TopkRouter: router}
    kept = {cls: cls.forward for cls in replaced}
    for cls, forward in replaced.items():
        cls.forward = forward
    model.double()
    try:
        yield model
    finally:
        model.float()
        for cls, forward in kept.items():
            cls.forward = forward


def yarn_frequencies(config):
    """YaRN (arXiv 2309.00071, section 3.2): interpolated below beta_slow rotations over the original context,
    untouched above beta_fast, a linear ramp between."""
    rope, dim = config.rope_parameters, config.qk_rope_head_dim
    base, length = rope["rope_theta"], rope["original_max_position_embeddings"]

    def dimension_of(rotations):
        return dim * math.log(length / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(dimension_of(rope["beta_fast"])), 0)
    high = min(math.ceil(dimension_of(rope["beta_slow"])), dim - 1)
    plain = base ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    ramp = ((torch.arange(dim // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    return plain / rope["factor"] * ramp + plain * (1 - ramp)
