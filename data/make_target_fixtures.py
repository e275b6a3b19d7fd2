"""What the packages that own the small formats make of some weights: sha256 of the bytes `assay convert` must produce.

    python data/make_target_fixtures.py       writes data/fixtures/convert/corners/ and TARGETS.tsv beside it

TARGETS.tsv: source folder, SPEC, tensor, sha256. compressed-tensors computes scales, codes and their packing for its own
layouts, fed with float32 weights (in BF16 it would round between its steps); torchao the scales of the other MX rules; ModelOpt
its NVFP4. What rounds ties down has no package that runs here: the codes are counted off, a code a boundary passed.
"""
import hashlib
import json
import pathlib

import torch
from compressed_tensors.compressors.mxfp4 import MXFP4PackedCompressor
from compressed_tensors.compressors.mxfp8 import MXFP8QuantizationCompressor
from compressed_tensors.compressors.nvfp4 import NVFP4PackedCompressor
from compressed_tensors.compressors.pack_quantized import PackedQuantizationCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from modelopt.torch.quantization.qtensor import NVFP4QTensor
from safetensors.torch import load_file, save_file
from torchao.prototype.mx_formats.config import ScaleCalculationMode
from torchao.prototype.mx_formats.mx_tensor import to_mx

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "fixtures" / "convert"
lines = ["# source\tSPEC\ttensor\tsha256; made by data/make_target_fixtures.py"]


def corners():
    """Every tie and boundary of E2M1, zeros of both signs, blocks of zeros, large and tiny blocks."""
    g = torch.Generator().manual_seed(7)
    weight = torch.randn((24, 256), generator=g) * 0.05
    ties = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0])
    weight[0] = torch.cat([ties, -ties, ties * 0.5, torch.zeros(4), -torch.zeros(4)]).repeat(8)
    weight[1] = 0.0
    weight[2, :64] = 0.0
    weight[3] = weight[3] * 1e-30
    weight[4] = weight[4] * 1e3
    weight[5, ::16] = 1.75
    weight[6, ::32] = torch.tensor([1.0, 1.5, 1.75, 1.8, 1.9375, 1.99, 2.0, 3.0])
    weight[7] = weight[7].abs()
    weight[8] = -weight[8].abs()
    weight[9] = 1e-32  # torchao divides by 2^-126 where the scale is 2^-127: nothing that small
    weight[10, ::32] = 448.0 * 2.0 ** torch.arange(8)
    return weight


def add(source, spec, name, tensors):
    for suffix, tensor in tensors.items():
        data = tensor.reshape(-1).clone().view(torch.uint8).numpy().tobytes()
        lines.append("\t".join((source, spec, name + suffix, hashlib.sha256(data).hexdigest())))


def group_ranges(weight, group):
    blocks = weight.unflatten(-1, (-1, group))
    return blocks.amin(-1), blocks.amax(-1)


def arguments(bits, kind, group, **more):
    strategy = {"strategy": "channel"} if group is None else {"strategy": "group", "group_size": group}
    return QuantizationArgs(num_bits=bits, type=kind, **{**strategy, **more})


def rename(state):
    return {"_" + key.removeprefix("weight_") if key != "weight" else "": value for key, value in state.items()}


def mx(source, name, weight):
    for spec, bits, compressor in (("mxfp4", 4, MXFP4PackedCompressor), ("mxfp8", 8, MXFP8QuantizationCompressor)):
        args = arguments(bits, "float", 32, scale_dtype=torch.uint8)
        scale, _ = calculate_qparams(*group_ranges(weight, 32), args)
        scheme = QuantizationScheme(targets=["Linear"], weights=args)
        state = compressor.compress({"weight": weight, "weight_scale": scale}, scheme)
        add(source, spec, name, rename(state))
    for mode in ("floor", "ceil", "rceil"):
        calculation = ScaleCalculationMode(mode)
        scale, codes = to_mx(weight, torch.float8_e4m3fn, 32, calculation)
        add(source, f"mxfp8,scale={mode}", name, {"": codes, "_scale": scale})
        scale, codes = to_mx(weight + 0.0, torch.float4_e2m1fn_x2, 32, calculation)  # no -0: it alone keeps its sign
        add(source, f"mxfp4,scale={mode}", name, {"_packed": codes, "_scale": scale})
        if mode == "floor":
            add(source, "mxfp4,scale=floor,ties=down", name, {"_packed": ties_down(weight, scale)})


def ties_down(weight, scale):
    quotient = weight / (2.0 ** (scale.view(torch.uint8).to(torch.int32) - 127).float()).repeat_interleave(32, -1)
    bounds = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    codes = (quotient.abs().unsqueeze(-1) > bounds).sum(-1) + 8 * (quotient < 0)
    return (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)


def nvfp4(source, name, weight):
    args = QuantizationArgs(num_bits=4, type="float", strategy="tensor_group", group_size=16,
                            scale_dtype=torch.float8_e4m3fn)
    overall = generate_gparam(weight.amin(), weight.amax())
    scale, _ = calculate_qparams(*group_ranges(weight, 16), args, global_scale=overall)
    state = {"weight": weight, "weight_scale": scale, "weight_global_scale": overall}
    state = NVFP4PackedCompressor.compress(state, QuantizationScheme(targets=["Linear"], weights=args))
    add(source, "nvfp4", name, rename(state))
    quantized, scale, scale_2 = NVFP4QTensor.quantize(weight.clone(), 16)
    add(source, "nvfp4,layout=modelopt", name, {"": quantized._quantized_data, "_scale": scale, "_scale_2": scale_2})


def int4(source, name, weight, kind):
    for symmetric in (True, False):
        for group in (32, 64, 128, None):
            if group is not None and weight.shape[1] % group:
                continue
            args = arguments(4, "int", group, symmetric=symmetric)
            low, high = group_ranges(weight, group or weight.shape[1])
            scale, zero = calculate_qparams(low, high, args)
            scale = torch.where(scale.to(kind) == 0, torch.finfo(kind).eps, scale.to(kind).float())
            if not symmetric:  # under the scale that is stored, which calculate_qparams had not rounded yet
                low = low.clamp(max=0)
                zero = torch.round(torch.clamp(-8 - low / scale, -8, 7)).to(torch.int8)
            state = {"weight": weight, "weight_scale": scale, "weight_zero_point": zero}
            scheme = QuantizationScheme(targets=["Linear"], weights=args)
            state = PackedQuantizationCompressor.compress(state, scheme)
            state.pop("weight_zero_point" if symmetric else "", None)
            state["weight_scale"] = scale.to(kind)
            grain = f"group={group}" if group else "channel"
            add(source, f"int4:{grain}" + ("" if symmetric else ",asym"), name, rename(state))


def fnuz(source, name, weight):
    """AMD's FP8 from floats, by torch: amax over a row or 32 x 32 blocks, divided by the largest code."""
    for spec, limit, kind in (("fnuz", 240.0, torch.float8_e4m3fnuz), ("e5m2,fnuz", 57344.0, torch.float8_e5m2fnuz)):
        amax = weight.abs().amax(-1, keepdim=True)
        scale = torch.where(amax == 0, 1.0, amax / limit)
        codes = (weight / scale).clamp(-limit, limit).to(kind)
        add(source, f"fp8:channel,{spec}", name, {"": codes, "_scale": scale})
        height, width = -(-weight.shape[0] // 32), -(-weight.shape[1] // 32)
        padded = torch.zeros(height * 32, width * 32)
        padded[: weight.shape[0], : weight.shape[1]] = weight
        amax = padded.view(height, 32, width, 32).abs().amax((1, 3))
        scale = torch.where(amax == 0, 1.0, amax / limit)
        wide = scale.repeat_interleave(32, 0).repeat_interleave(32, 1)[: weight.shape[0], : weight.shape[1]]
        codes = (weight / wide).clamp(-limit, limit).to(kind)
        add(source, f"fp8:block=32x32,{spec}", name, {"": codes, "_scale_inv": scale})


def main():
    weight = corners()
    (OUT / "corners").mkdir(exist_ok=True)
    save_file({"corners.weight": weight}, OUT / "corners" / "model.safetensors", metadata={"format": "pt"})
    mx("fixtures/convert/corners", "corners.weight", weight)
    nvfp4("fixtures/convert/corners", "corners.weight", weight)
    int4("fixtures/convert/corners", "corners.weight", weight, torch.float32)
    fnuz("fixtures/convert/corners", "corners.weight", weight)

    index = json.loads((HERE / "tinylm-bf16" / "model.safetensors.index.json").read_text())["weight_map"]
    for name in ("model.layers.0.self_attn.o_proj.weight", "model.layers.3.mlp.experts.8.gate_proj.weight"):
        weight = load_file(HERE / "tinylm-bf16" / index[name])[name].float()
        mx("tinylm-bf16", name, weight)
        nvfp4("tinylm-bf16", name, weight)
        int4("tinylm-bf16", name, weight, torch.bfloat16)
        fnuz("tinylm-bf16", name, weight)
    (OUT / "TARGETS.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
