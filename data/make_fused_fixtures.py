"""What compressed-tensors, ModelOpt and torch make of matrices that engines fuse: sha256 of the bytes `assay convert` must produce.

    python data/make_fused_fixtures.py        writes data/fixtures/convert/FUSED.tsv

q, k and v (gate and up, q_a and kv_a) are put into one matrix, as vLLM and SGLang do when they load them, quantized as that one
matrix, and cut apart again: each part then holds the codes, and the one scale for the whole, that the fused matrix has. Each line:
source folder, SPEC, tensor, sha256 of its stored bytes.
"""
import hashlib
import json
import pathlib

import torch
from compressed_tensors.compressors.nvfp4 import NVFP4PackedCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from modelopt.torch.quantization.qtensor import NVFP4QTensor
from safetensors.torch import load_file

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "fixtures" / "convert" / "FUSED.tsv"
LLAMA, TINYLM = "models/llama", "tinylm-bf16"
SETS = [
    (LLAMA, "model.layers.0.self_attn.", ("q_proj", "k_proj", "v_proj")),
    (LLAMA, "model.layers.2.self_attn.", ("q_proj", "k_proj", "v_proj")),
    (LLAMA, "model.layers.1.mlp.", ("gate_proj", "up_proj")),
    (TINYLM, "model.layers.1.self_attn.", ("q_a_proj", "kv_a_proj_with_mqa")),
    (TINYLM, "model.layers.0.mlp.", ("gate_proj", "up_proj")),
    (TINYLM, "model.layers.2.mlp.experts.3.", ("gate_proj", "up_proj")),
]
lines = ["# source\tSPEC\ttensor\tsha256; made by data/make_fused_fixtures.py"]


def load(folder):
    tensors = {}
    for file in sorted((HERE / folder).glob("model*.safetensors")):
        tensors.update(load_file(file))
    return tensors


def add(source, spec, names, rows, tensors):
    """`tensors` of the fused matrix: those with its rows are cut, the others are the same for all."""
    for suffix, tensor in tensors.items():
        whole = tensor.ndim < 2 or tensor.shape[0] != sum(rows)
        parts = [tensor] * len(rows) if whole else torch.split(tensor, rows)
        for name, part in zip(names, parts):
            data = part.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
            lines.append("\t".join((source, spec, name + suffix, hashlib.sha256(data).hexdigest())))


def compressed(weight):
    args = QuantizationArgs(num_bits=4, type="float", strategy="tensor_group", group_size=16, scale_dtype=torch.float8_e4m3fn)
    overall = generate_gparam(weight.amin(), weight.amax())
    blocks = weight.unflatten(-1, (-1, 16))
    scale, _ = calculate_qparams(blocks.amin(-1), blocks.amax(-1), args, global_scale=overall)
    state = {"weight": weight, "weight_scale": scale, "weight_global_scale": overall}
    state = NVFP4PackedCompressor.compress(state, QuantizationScheme(targets=["Linear"], weights=args))
    return {"_" + key.removeprefix("weight_"): value for key, value in state.items()}


def main():
    for source, module, members in SETS:
        weights = load(source)
        names = [module + member + ".weight" for member in members]
        rows = [weights[name].shape[0] for name in names]
        fused = torch.cat([weights[name].float() for name in names])
        scale = fused.abs().amax() / 448.0
        codes = (fused / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
        add(source, "fp8:tensor", names, rows, {"": codes, "_scale": scale.reshape(1)})
        if fused.shape[1] % 16 == 0:
            add(source, "nvfp4", names, rows, compressed(fused))
            quantized, scale, scale_2 = NVFP4QTensor.quantize(fused.clone(), 16)
            tensors = {"": quantized._quantized_data, "_scale": scale, "_scale_2": scale_2}
            add(source, "nvfp4,layout=modelopt", names, rows, tensors)
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
