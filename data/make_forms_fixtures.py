"""Small checkpoints in the stored forms of the wild, written by the packages that own them, and what those make of them.

    python data/make_forms_fixtures.py        writes data/fixtures/convert/forms/*/ and FORMS.tsv beside them

FORMS.tsv: folder, tensor, sha256 of its values as float32. The values come from the owner's own dequantizer, fed with float32
scales where it would compute in the scales' type: compressed-tensors (its own forms, and AWQ through its converter),
transformers (gpt-oss), bitsandbytes, MLX. GPTQ has no package that runs without a GPU's kernels: packing and values are spelled
out here, bit by bit, after GPTQModel's `pack_original` and `dequantize_weight`.
"""
import hashlib
import json
import math
import pathlib

import bitsandbytes.functional as bnb
import mlx.core as mx
import numpy as np
import torch
from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
from compressed_tensors.compressors.pack_quantized import pack_to_int32
from compressed_tensors.entrypoints.convert.converters.autoawq import AutoAWQConverter
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "fixtures" / "convert" / "forms"
ROWS, COLUMNS, GROUP = 96, 160, 32
lines = ["# folder\ttensor\tsha256 of the float32 values; made by data/make_forms_fixtures.py"]


def write(folder, tensors, config, values):
    path = OUT / folder
    path.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in tensors.items()}, path / "model.safetensors", metadata={"format": "pt"})
    (path / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    for name, value in values.items():
        digest = hashlib.sha256(value.float().contiguous().numpy().tobytes()).hexdigest()
        lines.append("\t".join((folder, name, digest)))


def integers(generator, bits, shape):
    return torch.randint(0, 1 << bits, shape, generator=generator, dtype=torch.int64)


# --- compressed-tensors ----------------------------------------------------------------------------------------------


def compressed(g):
    tensors, values, groups = {}, {}, {}
    for name, bits, group, symmetric, order in (
        ("sym4", 4, GROUP, True, False),
        ("asym4", 4, GROUP, False, False),
        ("order4", 4, GROUP, False, True),
        ("channel4", 4, COLUMNS, True, False),
        ("sym8", 8, GROUP, True, False),
        ("asym3", 3, GROUP, False, False),
        ("asym2", 2, GROUP, False, False),
    ):
        half = 1 << (bits - 1)
        q = (integers(g, bits, (ROWS, COLUMNS)) - half).to(torch.int8)
        z = (integers(g, bits, (ROWS, COLUMNS // group)) - half).to(torch.int8)
        s = (torch.rand((ROWS, COLUMNS // group), generator=g) * 0.01 + 0.001).to(torch.bfloat16)
        tensors[f"{name}.weight_packed"] = pack_to_int32(q, bits)
        tensors[f"{name}.weight_scale"] = s
        tensors[f"{name}.weight_shape"] = torch.tensor([ROWS, COLUMNS])
        if not symmetric:
            tensors[f"{name}.weight_zero_point"] = pack_to_int32(z, bits, packed_dim=0)
        index = torch.arange(COLUMNS) // group
        if order:
            index = index[torch.randperm(COLUMNS, generator=g)]
            tensors[f"{name}.weight_g_idx"] = index.to(torch.int32)
            # What forward() once did before activation order was dropped: the group of every column from the index.
            value = (q.float() - z.float()[:, index]) * s.float()[:, index]
        else:
            strategy = "channel" if group == COLUMNS else "group"
            args = QuantizationArgs(num_bits=bits, strategy=strategy, symmetric=symmetric,
                                    group_size=group if strategy == "group" else None)
            value = dequantize(q, s.float(), None if symmetric else z, args)
        values[f"{name}.weight"] = value
        groups[f"group_{len(groups)}"] = {"targets": [name], "weights": {
            "num_bits": bits, "type": "int", "symmetric": symmetric, "strategy": "group", "group_size": group}}
    config = {"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized",
                                      "config_groups": groups}}
    write("compressed-tensors", tensors, config, values)


# --- AWQ -------------------------------------------------------------------------------------------------------------


def awq(g):
    order = [0, 2, 4, 6, 1, 3, 5, 7]  # AutoAWQ: nibble i of a word holds output order[i] of its eight

    def pack(q):  # [inputs, outputs]
        eights = q.reshape(q.shape[0], -1, 8)
        words = sum(eights[:, :, order[i]] << (4 * i) for i in range(8))
        return torch.from_numpy(words.numpy().astype(np.uint32).view(np.int32))

    q, z = integers(g, 4, (COLUMNS, ROWS)), integers(g, 4, (COLUMNS // GROUP, ROWS))
    s = (torch.rand((COLUMNS // GROUP, ROWS), generator=g) * 0.01 + 0.001).to(torch.float16)
    tensors = {"a.qweight": pack(q), "a.qzeros": pack(z), "a.scales": s}
    converter = AutoAWQConverter(bits=4, group_size=GROUP, zero_point=True, version="gemm", ignore=[], targets=["re:.*"])
    weight, scale, zero = converter._convert_gemm_module(tensors["a.qweight"], s, tensors["a.qzeros"])
    args = QuantizationArgs(num_bits=4, strategy="group", symmetric=False, group_size=GROUP)
    config = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True,
                                      "version": "gemm"}}
    write("awq", tensors, config, {"a.weight": dequantize(weight, scale.float(), zero, args)})


# --- GPTQ ------------------------------------------------------------------------------------------------------------


def bit_words(q, bits):
    """Rows of integers as rows of 32-bit words: the bits of one number after those of another, lowest first."""
    rows = []
    for row in q.tolist():
        whole = sum(value << (bits * i) for i, value in enumerate(row))
        rows.append([whole >> (32 * i) & 0xFFFFFFFF for i in range(math.ceil(len(row) * bits / 32))])
    return torch.from_numpy(np.array(rows, dtype=np.uint32).view(np.int32))


def gptq(g, folder, checkpoint_format):
    tensors, values = {}, {}
    bits = {"gptq-3": 3, "gptq-8": 8, "gptq-2": 2}.get(folder, 4)
    for name, ordered in (("plain", False), ("ordered", True)):
        q, z = integers(g, bits, (COLUMNS, ROWS)), integers(g, bits, (COLUMNS // GROUP, ROWS))
        if checkpoint_format == "gptq":
            z = z.clamp(min=1)  # z - 1 is stored; 0 would borrow from its neighbour
        s = (torch.rand((COLUMNS // GROUP, ROWS), generator=g) * 0.01 + 0.001).to(torch.float16)
        index = torch.arange(COLUMNS) // GROUP
        if ordered:
            index = index[torch.randperm(COLUMNS, generator=g)]
        tensors[f"{name}.qweight"] = bit_words(q.T, bits).T
        tensors[f"{name}.qzeros"] = bit_words(z - int(checkpoint_format == "gptq"), bits)
        tensors[f"{name}.scales"] = s
        tensors[f"{name}.g_idx"] = index.to(torch.int32)
        values[f"{name}.weight"] = (s.float()[index] * (q - z[index])).T
    config = {"quantization_config": {"quant_method": "gptq", "bits": bits, "group_size": GROUP, "desc_act": True,
                                      "sym": False, "checkpoint_format": checkpoint_format}}
    write(folder, tensors, config, values)


# --- gpt-oss, bitsandbytes, MLX --------------------------------------------------------------------------------------


def gpt_oss(g):
    experts, twice, hidden = 2, 40, 96
    blocks = torch.randint(0, 256, (experts, twice, hidden // 32, 16), generator=g, dtype=torch.uint8)
    scales = torch.randint(110, 125, (experts, twice, hidden // 32), generator=g, dtype=torch.uint8)
    value = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    # As first released, and as transformers names and turns it.
    tensors = {"block.0.mlp.mlp1_weight.blocks": blocks, "block.0.mlp.mlp1_weight.scales": scales,
               "experts.gate_up_proj_blocks": blocks.clone(), "experts.gate_up_proj_scales": scales.clone()}
    values = {"block.0.mlp.mlp1_weight": value.transpose(1, 2), "experts.gate_up_proj": value}
    write("gpt-oss", tensors, {"quantization_config": {"quant_method": "mxfp4"}}, values)


def bitsandbytes(g):
    tensors, values = {}, {}
    for name, kind, nested in (("nf4", "nf4", False), ("nf4_nested", "nf4", True), ("fp4", "fp4", False)):
        weight = torch.randn((ROWS, COLUMNS), generator=g) * 0.02
        codes, state = bnb.quantize_4bit(weight, quant_type=kind, compress_statistics=nested)
        tensors[f"{name}.weight"] = codes
        for key, value in state.as_dict(packed=True).items():
            tensors[f"{name}.weight.{key}"] = value
        absmax = state.absmax
        if nested:
            absmax = bnb.dequantize_blockwise(absmax, state.state2) + state.offset
        # Its reference path: the CPU kernel of 0.50.2 takes rows for whole blocks, which 160 columns are not.
        values[f"{name}.weight"] = _dequantize_4bit_compute(codes.reshape(-1), absmax, state.code, state.blocksize,
                                                            state.shape, torch.float32)
    write("bitsandbytes", tensors, {"quantization_config": {"quant_method": "bitsandbytes", "load_in_4bit": True}}, values)


def mlx(g):
    tensors, values, modules = {}, {}, {}
    for bits, group in ((4, 64), (3, 32), (6, 32), (8, 32), (2, 32), (5, 32)):
        weight = torch.randn((ROWS, 192), generator=g) * 0.02
        q, s, b = mx.quantize(mx.array(weight.numpy()), group_size=group, bits=bits)
        s16, b16 = s.astype(mx.float16), b.astype(mx.float16)
        name = f"q{bits}"
        tensors[f"{name}.weight"] = torch.from_numpy(np.array(q)).view(torch.uint32)
        tensors[f"{name}.scales"] = torch.from_numpy(np.array(s16))
        tensors[f"{name}.biases"] = torch.from_numpy(np.array(b16))
        value = mx.dequantize(q, s16.astype(mx.float32), b16.astype(mx.float32), group_size=group, bits=bits)
        values[f"{name}.weight"] = torch.from_numpy(np.array(value))
        modules[name] = {"group_size": group, "bits": bits}
    write("mlx", tensors, {"quantization": {"group_size": 64, "bits": 4, **modules}}, values)


def main():
    g = torch.Generator().manual_seed(20261121)
    compressed(g)
    awq(g)
    for folder, checkpoint_format in (("gptq", "gptq"), ("gptq-v2", "gptq_v2"), ("gptq-3", "gptq"), ("gptq-8", "gptq"),
                                      ("gptq-2", "gptq_v2")):
        gptq(g, folder, checkpoint_format)
    gpt_oss(g)
    bitsandbytes(g)
    mlx(g)
    (OUT.parent / "FORMS.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
