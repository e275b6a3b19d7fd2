"""What DeepSeek's own `inference/model.py` computes of tiny models, beside what `transformers` does.

The file is run as it is. Its kernels are written for a GPU; `kernel` is replaced by the same arithmetic in plain torch:
activations quantized 1 x 128 to E4M3, products summed in float32 over 128 of them, scaled, and then added up.
"""

import importlib.util
import json
import sys
import types
from contextlib import contextmanager

import torch
from safetensors.torch import load_file, save_file

from .precision import everything_double

BLOCK = 128


def act_quant(x, block_size=BLOCK, scale_fmt=None):
    assert block_size == BLOCK and scale_fmt is None
    width = x.size(-1)
    blocks = torch.nn.functional.pad(x.to(torch.float32), (0, -width % BLOCK)).unflatten(-1, (-1, BLOCK))
    scale = blocks.abs().amax(-1).clamp(min=1e-4) / 448
    codes = (blocks / scale.unsqueeze(-1)).to(torch.float8_e4m3fn).flatten(-2)[..., :width]
    return codes, scale


def weight_dequant(weight, scale, block_size=BLOCK):
    spread = scale.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[: weight.size(0), : weight.size(1)]
    return (weight.to(torch.float32) * spread).to(torch.get_default_dtype())


def fp8_gemm(a, a_scale, b, b_scale):
    width = a.size(-1)
    total = torch.zeros(*a.shape[:-1], b.size(0), dtype=torch.float32)
    columns = b_scale.repeat_interleave(BLOCK, 0)[: b.size(0)]  # [out, blocks]
    for index, first in enumerate(range(0, width, BLOCK)):
        part = slice(first, min(first + BLOCK, width))
        sums = a[..., part].to(torch.float32) @ b[:, part].to(torch.float32).T
        total += sums * a_scale[..., index, None] * columns[:, index]
    return total.to(torch.get_default_dtype())


def _module(inference):
    kernel = types.ModuleType("kernel")
    kernel.act_quant, kernel.weight_dequant, kernel.fp8_gemm = act_quant, weight_dequant, fp8_gemm
    sys.modules["kernel"] = kernel
    spec = importlib.util.spec_from_file_location("deepseek_inference_model", inference / "model.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _arguments(module, config, fp8):
    rope = config["rope_scaling"]
    assert config["rms_norm_eps"] == 1e-6  # model.py knows no other
    assert config["norm_topk_prob"] == (config["scoring_func"] == "sigmoid")
    return module.ModelArgs(
        max_batch_size=1, max_seq_len=config["max_position_embeddings"], dtype="fp8" if fp8 else "bf16",
        vocab_size=config["vocab_size"], dim=config["hidden_size"], inter_dim=config["intermediate_size"],
        moe_inter_dim=config["moe_intermediate_size"], n_layers=config["num_hidden_layers"],
        n_dense_layers=config["first_k_dense_replace"], n_heads=config["num_attention_heads"],
        n_routed_experts=config["n_routed_experts"], n_shared_experts=config["n_shared_experts"],
        n_activated_experts=config["num_experts_per_tok"], n_expert_groups=config["n_group"],
        n_limited_groups=config["topk_group"], score_func=config["scoring_func"],
        route_scale=config["routed_scaling_factor"], q_lora_rank=config["q_lora_rank"] or 0,
        kv_lora_rank=config["kv_lora_rank"], qk_nope_head_dim=config["qk_nope_head_dim"],
        qk_rope_head_dim=config["qk_rope_head_dim"], v_head_dim=config["v_head_dim"],
        original_seq_len=rope["original_max_position_embeddings"], rope_theta=config["rope_theta"],
        rope_factor=rope["factor"], beta_fast=rope["beta_fast"], beta_slow=rope["beta_slow"], mscale=rope["mscale"])


RENAMED = {
    "embed_tokens": "embed", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn": "attn",
    "mlp": "ffn", "q_proj": "wq", "q_a_proj": "wq_a", "q_a_layernorm": "q_norm", "q_b_proj": "wq_b",
    "kv_a_proj_with_mqa": "wkv_a", "kv_a_layernorm": "kv_norm", "kv_b_proj": "wkv_b", "o_proj": "wo", "gate_proj": "w1",
    "down_proj": "w2", "up_proj": "w3", "lm_head": "head", "e_score_correction_bias": "bias", "weight_scale_inv": "scale",
}


def _name(published):
    return ".".join(RENAMED.get(part, part) for part in published.removeprefix("model.").split("."))


def _build(module, config, tensors, dtype, fp8):
    torch.set_default_dtype(dtype)
    model = module.Transformer(_arguments(module, config, fp8))
    for name, value in list(model.named_modules()):
        if isinstance(value, module.Gate) and config["scoring_func"] == "sigmoid":  # which has its bias in the model of width 7168 only
            value.bias = torch.nn.Parameter(torch.zeros(config["n_routed_experts"], dtype=torch.float32))
    layers = config["num_hidden_layers"]
    state = {_name(n): t for n, t in tensors.items() if not n.startswith(f"model.layers.{layers}.")}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = state.pop(name)
            if value.element_size() > 1 and parameter.dtype != torch.float32:
                parameter.data = parameter.data.to(dtype)  # Linear's weights are BF16 or FP8 as made
            assert parameter.shape == value.shape, name
            parameter.copy_(value)
    assert not state, state
    return model


def _logits(model, tokens):
    """Of every position; forward() itself keeps the last one only."""
    kept = {}
    handle = model.norm.register_forward_hook(lambda _m, _i, output: kept.update(hidden=output))
    last = model(torch.tensor([tokens]))
    handle.remove()
    every = model.head(kept["hidden"])[0]
    assert (every[-1:] - last).abs().max() <= 1e-2 * last.abs().max()
    return every


@contextmanager
def _default_dtype():
    kept = torch.get_default_dtype()
    try:
        yield
    finally:
        torch.set_default_dtype(kept)


@torch.inference_mode()
def make_one(module, folder):
    config = json.loads((folder / "config.json").read_text())
    stored = load_file(folder / "model.safetensors")
    tokens = load_file(folder / "golden" / "transformers.safetensors")["tokens"].tolist()
    fp8 = "quantization_config" in config
    out = {"tokens": torch.tensor(tokens, dtype=torch.int32)}
    plain = {
        n: weight_dequant(t, stored[f"{n}_scale_inv"]).float() if f"{n}_scale_inv" in stored else t
        for n, t in stored.items() if not n.endswith("_scale_inv")
    }
    module.gemm_impl = "bf16"
    with _default_dtype():
        for form in ("naive", "absorb"):
            module.attn_impl = form
            with everything_double():
                out[f"logits.{form}.f64"] = _logits(_build(module, config, plain, torch.float64, False), tokens)
        out["logits.f32"] = _logits(_build(module, config, plain, torch.float32, False), tokens)
        out["logits.bf16"] = _logits(_build(module, config, plain, torch.bfloat16, False), tokens).float()
        if fp8:
            module.gemm_impl = "fp8"
            out["logits.fp8"] = _logits(_build(module, config, stored, torch.bfloat16, True), tokens).float()
    save_file({n: t.clone().contiguous() for n, t in out.items()}, folder / "golden" / "deepseek.safetensors")
    theirs = load_file(folder / "golden" / "transformers.safetensors")["logits.f64"]
    for name, value in out.items():
        if name != "tokens":
            print(f"  {name}: {(value - theirs).abs().max() / theirs.abs().max():.1e} from transformers")


def make(inference, out):
    module = _module(inference)
    for name in ("deepseek-v2", "deepseek-v2-lite", "deepseek-v3", "deepseek-v3-fp8", "kimi-k2"):
        print(name)
        make_one(module, out / name)
