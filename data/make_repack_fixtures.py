"""FP4 checkpoints of a tiny Llama and what llama.cpp's converter makes of their codes and scales.

    python data/make_repack_fixtures.py LLAMA_CPP    writes data/fixtures/convert/repack/*/ and REPACK.tsv beside them

LLAMA_CPP is a checkout at commit 0c1e57098: conversion/base.py has repack_mxfp4_blocks and _nvfp4_pack, conversion/llama.py the order of
a head's rows. REPACK.tsv: folder, tensor of the GGUF, sha256 of its bytes.
"""
import hashlib
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file

sys.path[:0] = [sys.argv[1], sys.argv[1] + "/gguf-py"]
from conversion.base import ModelBase  # noqa: E402
from conversion.llama import LlamaModel  # noqa: E402

OUT = pathlib.Path(__file__).resolve().parent / "fixtures" / "convert" / "repack"
HIDDEN, INNER, HEADS, KV_HEADS, VOCABULARY = 64, 128, 4, 2, 16
SHAPES = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (HIDDEN // 2, HIDDEN), "self_attn.v_proj": (HIDDEN // 2, HIDDEN),
          "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER)}
NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
WHOLE = {}  # NVFP4's tensor-wide scales: one for what engines fuse
lines = ["# folder\ttensor\tsha256 of its bytes; made by data/make_repack_fixtures.py"]


def in_order(name, x):
    heads = {"self_attn.q_proj": HEADS, "self_attn.k_proj": KV_HEADS}.get(name)
    return x if heads is None else LlamaModel.permute(x, heads, heads)


def tell(folder, name, data):
    lines.append("\t".join((folder, name, hashlib.sha256(data.tobytes()).hexdigest())))


def write(folder, g, layer, quantization):
    tensors = {"model.embed_tokens.weight": torch.randn((VOCABULARY, HIDDEN), generator=g).to(torch.bfloat16),
               "lm_head.weight": torch.randn((VOCABULARY, HIDDEN), generator=g).to(torch.bfloat16),
               "model.norm.weight": torch.ones(HIDDEN).to(torch.bfloat16)}
    for norm in ("input_layernorm", "post_attention_layernorm"):
        tensors[f"model.layers.0.{norm}.weight"] = torch.ones(HIDDEN).to(torch.bfloat16)
    for name, shape in SHAPES.items():
        tensors |= {f"model.layers.0.{name}.{k}": v for k, v in layer(g, folder, name, shape).items()}
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER,
              "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "vocab_size": VOCABULARY,
              "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "rope_theta": 10000.0, "hidden_act": "silu",
              "tie_word_embeddings": False, "torch_dtype": "bfloat16", "quantization_config": quantization}
    (OUT / folder).mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in tensors.items()}, OUT / folder / "model.safetensors", metadata={"format": "pt"})
    (OUT / folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")


def bytes_of(g, low, high, shape):
    return torch.randint(low, high + 1, shape, generator=g, dtype=torch.int32).to(torch.uint8)


def mxfp4(g, folder, name, shape):
    codes, scales = bytes_of(g, 0, 255, (shape[0], shape[1] // 2)), bytes_of(g, 112, 122, (shape[0], shape[1] // 32))
    tell(folder, f"blk.0.{NAMES[name]}.weight", ModelBase.repack_mxfp4_blocks(in_order(name, codes), in_order(name, scales)))
    return {"weight_packed": codes, "weight_scale": scales}


def nvfp4(g, folder, name, shape):
    codes = bytes_of(g, 0, 255, (shape[0], shape[1] // 2))
    scales = bytes_of(g, 0x20, 0x7E, (shape[0], shape[1] // 16)).view(torch.float8_e4m3fn)
    fused = {"self_attn.k_proj": "self_attn.q_proj", "self_attn.v_proj": "self_attn.q_proj", "mlp.up_proj": "mlp.gate_proj"}
    whole = WHOLE.setdefault(fused.get(name, name), torch.rand((), generator=g) * 1e-4 + 1e-5).clone()
    raw, _ = ModelBase._nvfp4_pack(in_order(name, codes), in_order(name, scales.view(torch.uint8)).view(torch.float8_e4m3fn))
    tell(folder, f"blk.0.{NAMES[name]}.weight", raw)
    tell(folder, f"blk.0.{NAMES[name]}.scale", whole.float().numpy().flatten())
    return {"weight": codes, "weight_scale": scales, "weight_scale_2": whole, "input_scale": torch.tensor(0.01)}


def main():
    g = torch.Generator().manual_seed(20261122)
    weights = {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32, "symmetric": True}
    write("mxfp4", g, mxfp4, {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized",
                              "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}, "ignore": ["lm_head"]})
    write("nvfp4", g, nvfp4, {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]})
    (OUT.parent / "REPACK.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
