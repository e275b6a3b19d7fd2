"""Makes data/fixtures/ops.safetensors: what no tiny model reaches, by torch: activations quantized in every block shape,
and products of 8-bit operands.

Codes are rounded by torch; sums of products are exact but for one rounding to float32.
"""

from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

OUT = Path(__file__).parent / "fixtures" / "ops.safetensors"
LIMITS = {"F8_E4M3": (torch.float8_e4m3fn, 448.0), "F8_E5M2": (torch.float8_e5m2, 57344.0), "I8": (torch.int8, 127.0)}


def amax_of(x, rows, columns):
    """Largest magnitude of each block, and the same spread over the elements."""
    down, across = -(-x.shape[0] // rows), -(-x.shape[1] // columns)
    padded = torch.zeros(down * rows, across * columns)
    padded[: x.shape[0], : x.shape[1]] = x
    amax = padded.view(down, rows, across, columns).abs().amax(dim=(1, 3))
    spread = lambda s: s.repeat_interleave(rows, 0).repeat_interleave(columns, 1)[: x.shape[0], : x.shape[1]]  # noqa: E731
    return amax, spread


def quantize(x, kind, rows, columns, power_of_two=False):
    dtype, limit = LIMITS[kind]
    amax, spread = amax_of(x, rows or x.shape[0], columns or x.shape[1])
    if kind != "I8":
        amax = amax.clamp(min=1e-4)  # DeepSeek-V3, inference/kernel.py
    scale = torch.where(amax == 0, torch.ones_like(amax), amax / limit)
    if power_of_two:
        scale = torch.exp2(torch.ceil(torch.log2(scale)))
    quotient = x / spread(scale)
    codes = quotient.round().clamp(-128, 127).to(dtype) if kind == "I8" else quotient.clamp(-limit, limit).to(dtype)
    return codes, scale, spread


def fp8_product(x, weight, scale):
    """Sums of 128 products in float32, scaled, then added up (inference/kernel.py); x and weight float32 of codes."""
    codes, x_scale, _ = quantize(x, "F8_E4M3", 1, 128)
    a, w = codes.float().numpy(), weight.float().numpy()
    total = np.zeros((x.shape[0], weight.shape[0]), np.float32)
    spread = scale.repeat_interleave(128, 0)[: weight.shape[0]].numpy()
    for block, first in enumerate(range(0, x.shape[1], 128)):
        part = slice(first, min(first + 128, x.shape[1]))
        sums = (a[:, None, part] * w[None, :, part]).astype(np.float64).sum(-1).astype(np.float32)
        total += sums * x_scale[:, block, None].numpy() * spread[None, :, block]
    return torch.from_numpy(total)


def int8_product(x, weight, scale):
    codes, x_scale, _ = quantize(x, "I8", 1, 0)
    sums = codes.to(torch.int32) @ weight.to(torch.int32).T
    return sums.float() * x_scale * scale.T


def main():
    generator = torch.Generator().manual_seed(20)
    normal = lambda *shape: torch.randn(shape, generator=generator)  # noqa: E731
    out = {}
    x = (normal(5, 300) * torch.exp2(torch.randint(-6, 7, (5, 300), generator=generator).float())).to(torch.bfloat16).float()
    x[2] = 0
    x[3, :128] *= 1e-9  # below DeepSeek's least magnitude
    out["x"] = x
    cases = [("F8_E4M3", 1, 128, False), ("F8_E4M3", 1, 128, True), ("F8_E5M2", 1, 128, False), ("I8", 1, 0, False),
             ("I8", 0, 1, False), ("F8_E4M3", 0, 0, False), ("I8", 2, 64, False)]
    for index, (kind, rows, columns, power) in enumerate(cases):
        codes, scale, spread = quantize(x, kind, rows, columns, power)
        out[f"quantize.{index}.codes"] = codes.view(torch.uint8).contiguous()
        out[f"quantize.{index}.scales"] = scale.contiguous()
        out[f"quantize.{index}.values"] = (codes.float() * spread(scale)).contiguous()

    y = normal(4, 300).to(torch.bfloat16).float()
    weight = normal(200, 300)
    amax, spread = amax_of(weight, 128, 128)
    out["linear.x"] = y
    out["fp8.weight"] = (weight / spread(amax / 448)).to(torch.float8_e4m3fn)
    out["fp8.weight_scale_inv"] = amax / 448
    out["fp8.y"] = fp8_product(y, out["fp8.weight"], out["fp8.weight_scale_inv"])
    channel = weight.abs().amax(1, keepdim=True) / 127
    out["int8.weight"] = (weight / channel).round().to(torch.int8)
    out["int8.weight_scale"] = channel
    out["int8.y"] = int8_product(y, out["int8.weight"], channel)
    # A product is bfloat16 before a bias is added (DeepSeek's inference/model.py, linear(); transformers' FP8Linear).
    out["linear.bias"] = (normal(200) * 3).to(torch.bfloat16)
    for kind in ("fp8", "int8"):
        out[f"{kind}.y_with_bias"] = out[f"{kind}.y"].to(torch.bfloat16) + out["linear.bias"]
    save_file({n: t.contiguous() for n, t in out.items()}, OUT)
    print({n: tuple(t.shape) for n, t in out.items()})


if __name__ == "__main__":
    main()
