"""Small checkpoints as quantization tools write them, beyond those of make_forms_fixtures.py, and what those tools make of them.

    python data/make_tool_forms_fixtures.py    writes data/fixtures/convert/tool_forms/*/ and TOOL_FORMS.tsv beside them

TOOL_FORMS.tsv: folder, tensor, sha256 of its values as float32. ModelOpt packs its INT4 and computes its NVFP4 and INT8; MLX and
torchao quantize and dequantize. auto-round packs as GPTQ does, and says in packing_format how zero points are meant (its
backend.py). FBGEMM, Quark and Mistral store a code a value, whose product with the scale is the value.
"""
import hashlib
import json
import pathlib
import sys

import mlx.core as mx
import numpy as np
import torch
from modelopt.torch.export.quant_utils import QUANTIZATION_INT8_SQ, from_quantized_weight, pack_int4_in_uint8
from modelopt.torch.quantization.qtensor import NVFP4QTensor
from safetensors.torch import save_file
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import Float8Tensor, PerRow, PerTensor

from make_forms_fixtures import bit_words, integers

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "fixtures" / "convert" / "tool_forms"
ROWS, COLUMNS, GROUP = 48, 96, 32
E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
lines = ["# folder\ttensor\tsha256 of the float32 values; made by data/make_tool_forms_fixtures.py"]


def write(folder, tensors, config, values, metadata=None):
    path = OUT / folder
    path.mkdir(parents=True, exist_ok=True)
    metadata = {"format": "pt", **(metadata or {})}
    save_file({k: v.contiguous() for k, v in tensors.items()}, path / "model.safetensors", metadata=metadata)
    (path / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    for name, value in values.items():
        digest = hashlib.sha256(value.float().contiguous().numpy().tobytes()).hexdigest()
        lines.append("\t".join((folder, name, digest)))


def matrix(g, rows=ROWS, columns=COLUMNS):
    return torch.randn((rows, columns), generator=g) * 0.02


def factors(g, columns=COLUMNS):
    return torch.rand(columns, generator=g) + 0.5


# --- ModelOpt --------------------------------------------------------------------------------------------------------


def modelopt_int4(g):
    for folder, algorithm in (("modelopt-w4a16-awq", "W4A16_AWQ"), ("modelopt-w4a8-awq", "W4A8_AWQ")):
        weight, smooth = matrix(g), factors(g).to(torch.bfloat16)
        scale = weight.unflatten(-1, (-1, GROUP)).abs().amax(-1) / 7
        tensors = {"a.weight": pack_int4_in_uint8(weight, scale, GROUP), "a.weight_scale": scale, "a.pre_quant_scale": smooth}
        wide = scale.repeat_interleave(GROUP, 1)
        value = (weight / wide).round().clamp(-8, 7).to(torch.int8) * wide * smooth.float()
        if algorithm == "W4A8_AWQ":
            tensors["a.weight_scale_2"] = torch.tensor(weight.abs().max().item() / 448)
            tensors["a.input_scale"] = torch.tensor(0.01)
        config = {"quant_method": "modelopt", "quant_algo": algorithm, "group_size": GROUP, "pre_quant_scale": True}
        write(folder, tensors, {"quantization_config": config}, {"a.weight": value})


def modelopt_smooth(g):
    weight, smooth = matrix(g), factors(g)
    quantized, scale, scale_2 = NVFP4QTensor.quantize(weight.clone(), 16)
    codes = quantized._quantized_data
    nibbles = torch.stack((codes & 15, codes >> 4), -1).flatten(-2).long()
    values = E2M1[nibbles & 7] * torch.where(nibbles > 7, -1.0, 1.0)
    value = values * (scale.float() * scale_2).repeat_interleave(16, 1) * smooth
    tensors = {"a.weight": codes, "a.weight_scale": scale, "a.weight_scale_2": scale_2, "a.pre_quant_scale": smooth}
    config = {"quant_method": "modelopt", "quant_algo": "NVFP4_AWQ", "group_size": 16, "pre_quant_scale": True}
    write("modelopt-nvfp4-awq", tensors, {"quantization_config": config}, {"a.weight": value})

    row_scale = weight.abs().amax(-1) / 127
    codes = (weight / row_scale[:, None]).round().clamp(-128, 127).to(torch.int8)
    value = from_quantized_weight(codes, row_scale, QUANTIZATION_INT8_SQ, torch.float32) * smooth
    tensors = {"a.weight": codes, "a.weight_scale": row_scale, "a.pre_quant_scale": smooth, "a.bias": torch.zeros(ROWS)}
    config = {"quant_method": "modelopt", "quant_algo": "W8A8_SQ_PER_CHANNEL"}
    write("modelopt-int8-sq", tensors, {"quantization_config": config}, {"a.weight": value})


# --- auto-round ------------------------------------------------------------------------------------------------------


def auto_round(g):
    for folder, packing, less in (("auto-round", "auto_round", 0), ("auto-round-gptq", "auto_round:auto_gptq", 1)):
        tensors, values = {}, {}
        for name, bits in (("four", 4), ("eight", 8)):
            q, z = integers(g, bits, (COLUMNS, ROWS)), integers(g, bits, (COLUMNS // GROUP, ROWS)).clamp(min=1)
            s = (torch.rand((COLUMNS // GROUP, ROWS), generator=g) * 0.01 + 0.001).to(torch.float16)
            tensors[f"{name}.qweight"] = bit_words(q.T, bits).T
            tensors[f"{name}.qzeros"] = bit_words(z - less, bits)
            tensors[f"{name}.scales"] = s
            index = torch.arange(COLUMNS) // GROUP
            values[f"{name}.weight"] = (s.float()[index] * (q - z[index])).T
        config = {"quant_method": "auto-round", "bits": 4, "group_size": GROUP, "sym": False, "data_type": "int",
                  "packing_format": packing, "extra_config": {"eight": {"bits": 8}}}
        write(folder, tensors, {"quantization_config": config}, values)


# --- torchao, MLX ----------------------------------------------------------------------------------------------------


def torchao(g):
    state = {"row.weight": Float8Tensor.from_hp(matrix(g), granularity=PerRow()),
             "whole.weight": Float8Tensor.from_hp(matrix(g), granularity=PerTensor())}
    values = {name: tensor.dequantize(torch.float32) for name, tensor in state.items()}
    tensors, metadata = flatten_tensor_state_dict(state)
    write("torchao", tensors, {"quantization_config": {"quant_method": "torchao", "quant_type": {"default": {}}}}, values,
          metadata)


def mlx(g):
    tensors, values = {}, {}
    for mode, group, bits in (("mxfp4", 32, 4), ("nvfp4", 16, 4), ("mxfp8", 32, 8)):
        q, s = mx.quantize(mx.array(matrix(g).numpy()), group_size=group, bits=bits, mode=mode)
        tensors[f"{mode}.weight"] = torch.from_numpy(np.array(q)).view(torch.uint32)
        tensors[f"{mode}.scales"] = torch.from_numpy(np.array(s))
        value = mx.dequantize(q, s, group_size=group, bits=bits, mode=mode, dtype=mx.float32)
        values[f"{mode}.weight"] = torch.from_numpy(np.array(value))
    write("mlx-floats", tensors, {"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}}, values)


# --- a code a value --------------------------------------------------------------------------------------------------


def fp8(weight, scale):
    codes = (weight / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    return codes, codes.float() * scale


def plain_codes(g):
    weight = matrix(g)
    scale = weight.abs().amax(-1, keepdim=True) / 448
    codes, value = fp8(weight, scale)
    tensors = {"a.weight": codes, "a.weight_scale": scale, "a.input_scale_ub": torch.tensor([1200.0])}
    write("fbgemm", tensors, {"quantization_config": {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0}},
          {"a.weight": value})

    one = weight.abs().max() / 448
    codes, value = fp8(weight, one)
    tensors = {"a.weight": codes, "a.weight_scale": one, "a.input_scale": torch.tensor(0.1)}
    write("quark", tensors, {"quantization_config": {"quant_method": "quark", "export": {"weight_format": "real_quantized"}}},
          {"a.weight": value})
    tensors = {"layers.0.attention.wq.weight": codes, "layers.0.attention.wq.qscale_weight": one.clone(),
               "layers.0.attention.wq.qscale_act": torch.tensor(0.1)}
    write("mistral", tensors, {}, {"layers.0.attention.wq.weight": value})

    scales = torch.tensor([[0.01, 0.02], [0.03, 0.005]])
    experts = torch.randn((2, ROWS, COLUMNS), generator=g) * 0.5
    codes, value = fp8(experts, scales.repeat_interleave(ROWS // 2, 1)[:, :, None])
    tensors = {"experts.w13_weight": codes, "experts.w13_weight_scale": scales,
               "mlp.gate_up_proj.weight": codes[0].clone(), "mlp.gate_up_proj.weight_scale": scales[0].clone()}
    write("per-part", tensors, {"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized"}},
          {"experts.w13_weight": value, "mlp.gate_up_proj.weight": value[0]})


def main():
    g = torch.Generator().manual_seed(20261122)
    for make in (modelopt_int4, modelopt_smooth, auto_round, torchao, mlx, plain_codes):
        make(g)
    (OUT.parent / "TOOL_FORMS.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
