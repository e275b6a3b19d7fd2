"""What people run today: the conversions of bench/convert with PyTorch on the CPU, shard by shard.

    python bench/peers/convert_torch.py bf16|fp8|int8 IN OUT

FP8 128x128 blocks to BF16 as DeepSeek's fp8_cast_bf16.py computes it (float32 product, rounded once), BF16 to FP8 128x128
blocks with amax/448, BF16 to INT8 by row with amax/127. All cores.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

BLOCK = 128


def grid(scale, shape):
    """A scale for every element."""
    return scale.repeat_interleave(BLOCK, 0)[: shape[0]].repeat_interleave(BLOCK, 1)[:, : shape[1]]


def to_bf16(name, tensor, tensors):
    scale = tensors[name + "_scale_inv"]
    return {name: (tensor.float() * grid(scale, tensor.shape)).bfloat16()}


def to_fp8(name, tensor, _):
    rows, columns = tensor.shape
    x = tensor.float()
    padded = torch.nn.functional.pad(x, (0, -columns % BLOCK, 0, -rows % BLOCK))
    blocks = padded.view(padded.shape[0] // BLOCK, BLOCK, padded.shape[1] // BLOCK, BLOCK)
    scale = blocks.abs().amax((1, 3)) / 448
    codes = (x / grid(scale, tensor.shape)).to(torch.float8_e4m3fn)
    return {name: codes, name + "_scale_inv": scale}


def to_int8(name, tensor, _):
    x = tensor.float()
    scale = x.abs().amax(1, keepdim=True) / 127
    return {name: (x / scale).round().clamp(-127, 127).to(torch.int8), name + "_scale": scale}


def main():
    kind, source, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    convert = {"bf16": to_bf16, "fp8": to_fp8, "int8": to_int8}[kind]
    target.mkdir()
    for path in sorted(source.glob("*.safetensors")):
        tensors = load_file(path)
        made = {}
        for name, tensor in tensors.items():
            if name.endswith("_scale_inv"):
                continue
            made |= convert(name, tensor, tensors)
        save_file(made, target / path.name, {"format": "pt"})


if __name__ == "__main__":
    main()
