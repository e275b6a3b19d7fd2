"""Makes data/fixtures/op_truths.safetensors: every operation of refimpl/ops by torch and by the classes of transformers.

The inputs are bfloat16 numbers, so that float64 and bfloat16 compute of the same ones: CASE.f64 and CASE.bf16 are what
each makes of them. bfloat16 is PyTorch's eager code on the CPU, and shows where it rounds.
"""

from pathlib import Path
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers.activations import ACT2FN
from transformers.generation import logits_process
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2TopkRouter
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter, apply_rotary_pos_emb_interleave
from transformers.models.gemma2 import modeling_gemma2 as gemma2
from transformers.models.gpt_oss import modeling_gpt_oss as gpt_oss
from transformers.models.llama.modeling_llama import LlamaRMSNorm, apply_rotary_pos_emb
from transformers.models.mixtral.modeling_mixtral import MixtralExperts, MixtralTopKRouter
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeTopKRouter

from tiny_models.precision import everything_double

OUT = Path(__file__).parent / "fixtures" / "op_truths.safetensors"
GENERATOR = torch.Generator().manual_seed(12)
RESULTS = {}


def normal(*shape, std=1.0, mean=0.0):
    return (torch.randn(shape, generator=GENERATOR) * std + mean).to(torch.bfloat16)


def case(name, inputs, compute):
    """Keeps the inputs, and what compute(**inputs) makes of them in float64 and in bfloat16."""
    RESULTS.update({f"{name}.{key}": value for key, value in inputs.items()})
    results = []
    for dtype in (torch.float64, torch.bfloat16):
        given = {key: value.to(dtype) if value.is_floating_point() else value for key, value in inputs.items()}
        if dtype == torch.float64:
            with everything_double():
                results.append(compute(**given))
        else:
            results.append(compute(**given))
    for suffix, result in zip(("f64", "bf16"), results):
        for key, value in (result if isinstance(result, dict) else {"": result}).items():
            RESULTS[".".join(filter(None, (name, key, suffix)))] = value


def with_weights(module, **weights):
    for key, value in weights.items():
        owner = module._buffers if key in module._buffers else module._parameters
        owner[key] = torch.nn.Parameter(value, requires_grad=False) if owner is module._parameters else value
    return module.eval()


def linear():
    case("linear", {"x": normal(5, 37), "w": normal(23, 37), "b": normal(23)}, lambda x, w, b: F.linear(x, w, b))


def norms():
    x, w = normal(4, 48, std=3, mean=0.5), normal(48, std=0.4, mean=1.2)
    case("norm.weight_last", {"x": x, "w": w}, lambda x, w: with_weights(LlamaRMSNorm(48, 1e-2), weight=w)(x))
    case("norm.weight_inside", {"x": x, "w": w},
         lambda x, w: with_weights(gpt_oss.GptOssRMSNorm(48, 1e-2), weight=w)(x))
    case("norm.one_plus_weight", {"x": x, "w": w},
         lambda x, w: with_weights(gemma2.Gemma2RMSNorm(48, 1e-2), weight=w)(x))
    case("norm.heads", {"x": x, "w": normal(16, std=0.4, mean=1.2)},
         lambda x, w: with_weights(LlamaRMSNorm(16, 1e-2), weight=w)(x.view(4, 3, 16)).view(4, 48))
    case("norm.layer", {"x": x, "w": w, "b": normal(48)}, lambda x, w, b: F.layer_norm(x, (48,), w, b, 1e-2))
    case("norm.layer_without_bias", {"x": x, "w": w}, lambda x, w: F.layer_norm(x, (48,), w, None, 1e-2))


def rope():
    """[tokens, heads · 8]; cos and sin as the bfloat16 numbers they are given as, one a pair."""
    angle = torch.arange(5).unsqueeze(1) * torch.tensor([1.0, 0.4, 0.1, 0.02])
    inputs = {"x": normal(5, 24), "cos": angle.cos().bfloat16(), "sin": angle.sin().bfloat16()}

    def by(turn):
        def compute(x, cos, sin):
            heads = x.view(1, 5, 3, 8).transpose(1, 2)
            y = turn(heads, heads, torch.cat((cos, cos), -1)[None], torch.cat((sin, sin), -1)[None])[0]
            return y.transpose(1, 2).reshape(5, 24)
        return compute

    case("rope.half_split", inputs, by(apply_rotary_pos_emb))
    case("rope.interleaved_to_halves", inputs, by(apply_rotary_pos_emb_interleave))


def attention(name, heads, kv_heads, queries=4, keys=11, qk=12, v=8, window=0, cap=None, with_sinks=False):
    inputs = {"q": normal(queries, heads * qk, std=1.5), "k": normal(keys, kv_heads * qk), "v": normal(keys, kv_heads * v)}
    if with_sinks:
        inputs["sinks"] = normal(heads)
    position = torch.arange(keys - queries, keys).unsqueeze(1)
    key = torch.arange(keys)
    hidden = (key > position) | (key <= position - window if window else key < 0)

    def compute(q, k, v, sinks=None):
        split = lambda x, n: x.view(1, x.shape[0], n, -1).transpose(1, 2)  # noqa: E731
        mask = torch.zeros(queries, keys, dtype=q.dtype).masked_fill(hidden, torch.finfo(q.dtype).min)[None, None]
        module = SimpleNamespace(num_key_value_groups=heads // kv_heads, training=False, sinks=sinks)
        arguments = (module, split(q, heads), split(k, kv_heads), split(v, kv_heads), mask)
        out = (gpt_oss.eager_attention_forward(*arguments, scaling=0.3) if with_sinks else
               gemma2.eager_attention_forward(*arguments, scaling=0.3, softcap=cap))
        return out[0].reshape(queries, -1)

    case(f"attention.{name}", inputs, compute)


def attentions():
    attention("every_head_its_own", 3, 3)
    attention("groups_of_5", 10, 2)
    attention("groups_of_7", 7, 1)
    attention("window", 4, 2, window=3)
    attention("window_of_one", 2, 2, window=1)
    attention("capped", 4, 2, cap=1.5)
    attention("capped_in_a_window", 4, 2, cap=0.8, window=5)
    attention("sinks", 6, 2, with_sinks=True)
    attention("one_query", 6, 3, queries=1)
    attention("all_at_once", 4, 4, queries=9, keys=9)


ACTIVATIONS = {
    "silu": F.silu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "relu": F.relu,
}
# Under the names of transformers; made last, so that the numbers of what stood there before stay.
NAMED_ACTIVATIONS = ("relu2", "sigmoid", "gelu_fast", "gelu_10", "quick_gelu", "tanh", "linear", "relu6", "leaky_relu", "hardswish",
                     "mish", "laplace", "sqrtsoftplus")


def activations():
    points = torch.tensor([0.0, -0.0, 1e-3, -1e-3, 30.0, -30.0, 100.0, -100.0]).bfloat16()
    x = torch.cat((points, normal(56, std=3))).view(4, 16)
    u = normal(4, 16, std=2)
    for name, function in ACTIVATIONS.items():
        case(f"activation.{name}", {"x": x}, lambda x, f=function: f(x))
        case(f"gated.{name}", {"x": x, "u": u}, lambda x, u, f=function: f(x) * u)
    unit = SimpleNamespace(alpha=1.702, limit=1.75)
    case("gated.gpt_oss", {"x": x, "u": u},
         lambda x, u: gpt_oss.GptOssExperts._apply_gate(unit, torch.stack((x, u), -1).flatten(-2)))


def named_activations():
    points = torch.tensor([0.0, 30.0, -30.0, 6.5, -3.0, 3.0, 12.0, -0.5]).bfloat16()
    x = torch.cat((points, normal(56, std=3))).view(4, 16)
    for name in NAMED_ACTIVATIONS:
        case(f"activation.{name}", {"x": x}, lambda x, f=ACT2FN[name]: f(x))


def elementwise():
    x, y = normal(3, 20, std=5), normal(3, 20)
    case("add", {"x": x, "y": y}, lambda x, y: x + y)
    case("multiply", {"x": x}, lambda x: x * torch.tensor(40**0.5, dtype=x.dtype))  # Gemma's factor, of the type of x
    case("soft_cap", {"x": x}, lambda x: torch.tanh(x / 6.0) * 6.0)
    case("embed", {"x": normal(7, 5), "ids": torch.tensor([3, 0, 6, 3], dtype=torch.int32)},
         lambda x, ids: F.embedding(ids, x))
    nothing = float("-inf")
    rows = torch.cat((normal(2, 9, std=4), torch.tensor([[nothing] * 9, [nothing] * 4 + [2.0] + [nothing] * 4,
                                                         [0.5, nothing, 1.0] * 3]).bfloat16()))
    case("softmax", {"x": rows}, lambda x: torch._safe_softmax(x, -1))


def router(kind, scores, experts, **values):
    """A router whose matrix is the identity: what it is given are its logits."""
    config = SimpleNamespace(num_local_experts=experts, num_experts=experts, hidden_size=experts, **values)
    return with_weights(kind(config), weight=torch.eye(experts, dtype=scores.dtype))


def gate(name, kind, logits, correction=None, **values):
    def compute(x, correction=None):
        module = router(kind, x, x.shape[1], **values)
        if correction is not None:
            module.e_score_correction_bias = correction
        if hasattr(module, "bias"):
            module.bias = torch.nn.Parameter(torch.zeros_like(x[0]), requires_grad=False)
        _, weights, chosen = module(x)
        order = chosen.argsort(dim=-1)
        return {"weights": weights.gather(1, order), "experts": chosen.gather(1, order).int()}

    case(f"gate.{name}", {"x": logits} | ({} if correction is None else {"correction": correction}), compute)


def gates():
    logits, wide = normal(6, 8, std=2), normal(6, 24, std=2)
    correction = normal(24, std=0.3)
    gate("mixtral", MixtralTopKRouter, logits, num_experts_per_tok=2)
    gate("qwen3_moe", Qwen3MoeTopKRouter, wide, num_experts_per_tok=8, norm_topk_prob=True)
    gate("qwen3_moe_unnormalized", Qwen3MoeTopKRouter, wide, num_experts_per_tok=8, norm_topk_prob=False)
    gate("gpt_oss", gpt_oss.GptOssTopKRouter, logits, num_experts_per_tok=4)
    v3 = {"routed_scaling_factor": 2.5, "num_experts_per_tok": 6}
    gate("deepseek_v3", DeepseekV3TopkRouter, wide, correction, **v3, n_group=4, topk_group=2, norm_topk_prob=True)
    gate("deepseek_v3_unnormalized", DeepseekV3TopkRouter, wide, correction, **v3, n_group=4, topk_group=3,
         norm_topk_prob=False)
    gate("deepseek_v3_one_group", DeepseekV3TopkRouter, wide, correction, **v3, n_group=1, topk_group=1,
         norm_topk_prob=False)
    v2 = {"routed_scaling_factor": 16.0, "num_experts_per_tok": 3}
    gate("deepseek_v2", DeepseekV2TopkRouter, wide, **v2, topk_method="group_limited_greedy", n_group=6, topk_group=2)
    gate("deepseek_v2_greedy", DeepseekV2TopkRouter, wide, **v2, topk_method="greedy", n_group=1, topk_group=1)


def mixture(name, top_k, tokens=9, experts=6, hidden=24, width=10):
    weights = torch.rand(tokens, experts, generator=GENERATOR).bfloat16()
    ids = torch.stack([torch.randperm(experts, generator=GENERATOR)[:top_k] for _ in range(tokens)]).int()
    config = SimpleNamespace(num_local_experts=experts, hidden_size=hidden, intermediate_size=width, hidden_act="silu",
                             _experts_implementation="eager")

    def compute(x, weights, ids, gate_up, down):
        module = with_weights(MixtralExperts(config), gate_up_proj=gate_up, down_proj=down)
        return module(x, ids.long(), weights)

    case(f"mixture.{name}", {"x": normal(tokens, hidden), "weights": weights[:, :top_k].contiguous(), "ids": ids,
                             "gate_up": normal(experts, 2 * width, hidden, std=0.3),
                             "down": normal(experts, hidden, width, std=0.6)}, compute)


def mixture_with_biases(tokens=7, experts=4, hidden=20, width=8, top_k=2):
    ids = torch.stack([torch.randperm(experts, generator=GENERATOR)[:top_k] for _ in range(tokens)]).int()
    config = SimpleNamespace(num_local_experts=experts, hidden_size=hidden, intermediate_size=width, swiglu_alpha=1.702,
                             swiglu_limit=1.75, _experts_implementation="eager")

    def compute(x, weights, ids, gate_up, gate_up_bias, down, down_bias):
        module = with_weights(gpt_oss.GptOssExperts(config), gate_up_proj=gate_up.mT.contiguous(), down_proj=down.mT.contiguous(),
                              gate_up_proj_bias=gate_up_bias, down_proj_bias=down_bias)
        return module(x, ids.long(), weights)

    case("mixture.gpt_oss", {"x": normal(tokens, hidden), "ids": ids,
                             "weights": torch.rand(tokens, top_k, generator=GENERATOR).bfloat16(),
                             "gate_up": normal(experts, 2 * width, hidden, std=0.3), "gate_up_bias": normal(experts, 2 * width),
                             "down": normal(experts, hidden, width, std=0.6), "down_bias": normal(experts, hidden)}, compute)


def sampling():
    """The logits processors of generate(), in its order; equal logits, for what stands exactly on a limit."""
    four, eight = torch.zeros(4), torch.tensor([1.0, 1, 0, 0, 0, 0, -1, -1])
    for name, logits, processor in (
        ("top_p_met_exactly", four, logits_process.TopPLogitsWarper(0.5)),
        ("top_p_just_above", four, logits_process.TopPLogitsWarper(0.5625)),
        ("top_p_just_below", four, logits_process.TopPLogitsWarper(0.4375)),
        ("top_p_least", four, logits_process.TopPLogitsWarper(0.0)),
        ("min_p_met_exactly", four, logits_process.MinPLogitsWarper(1.0)),
        ("min_p", eight, logits_process.MinPLogitsWarper(0.3)),
        ("top_k_of_all", four, logits_process.TopKLogitsWarper(4)),
    ):
        kept = processor(None, logits.double()[None])[0].softmax(-1)
        RESULTS.update({f"sample.{name}.logits": logits.double(), f"sample.{name}.p": kept})


@torch.no_grad()
def main():
    torch.set_num_threads(1)
    for make in (linear, norms, rope, attentions, activations, elementwise, gates, sampling, mixture_with_biases):
        make()
    mixture("sparse", 3)
    mixture("soft", 6)
    named_activations()
    kept = {n: t.to(torch.int32) if t.dtype == torch.int64 else t for n, t in RESULTS.items()}
    save_file({n: t.detach().contiguous().clone() for n, t in kept.items()}, OUT)
    OUT.chmod(0o644)
    print(len(RESULTS), "tensors,", OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
