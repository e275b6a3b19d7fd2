#!/usr/bin/env python3
"""Writes data/fixtures/codec/: what ml_dtypes, numpy, torch and gguf-py say small floats mean.

  decode_<TYPE>.bin   float32 of every code 0, 1, ... of an 8-, 6- or 4-bit type
  encode_<TYPE>.bin   pairs of uint32: the bits of a float32, and its code (overflow to Inf or NaN where there is one)
  tables.txt          zlib.crc32 of whole tables too large to keep; what each holds is said where it is made below

    python data/make_codec_fixtures.py
"""
import pathlib
import zlib

import gguf
import ml_dtypes
import numpy as np
import torch

OUT = pathlib.Path(__file__).parent / "fixtures" / "codec"
SMALL = {"F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
         "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
         "F8_E8M0": ml_dtypes.float8_e8m0fnu, "F6_E2M3": ml_dtypes.float6_e2m3fn,
         "F6_E3M2": ml_dtypes.float6_e3m2fn, "F4": ml_dtypes.float4_e2m1fn}
BITS = {"F6_E2M3": 6, "F6_E3M2": 6, "F4": 4}
NANS = np.array([0x7FC00000, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFA00000], np.uint32)


def samples(values):
    """Bits of every value, of the midpoints between neighbours, and of the floats just beside each; both signs."""
    finite = np.unique(np.abs(values[np.isfinite(values)]).astype(np.float64))
    beyond = finite[-1] + (finite[-1] - finite[-2]) * np.array([0.5, 1, 2, 1000])
    exact = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, beyond]).astype(np.float32)
    bits = exact.view(np.uint32)
    bits = np.concatenate([bits, bits + 1, bits[bits > 0] - 1, np.array([0x7F800000, 0x7F7FFFFF, 1], np.uint32)])
    bits = np.unique(bits[bits <= 0x7F800000])
    return np.concatenate([bits, bits | 0x80000000]).astype(np.uint32)


def write_small(name, dtype):
    codes = np.arange(1 << BITS.get(name, 8), dtype=np.uint8)
    values = codes.view(dtype).astype(np.float32)
    values.tofile(OUT / f"decode_{name}.bin")
    inputs = samples(values)
    if name not in BITS:  # what ml_dtypes makes of NaN where no NaN exists is an accident, not a rule
        inputs = np.concatenate([inputs, NANS])
    encoded = inputs.view(np.float32).astype(dtype).view(np.uint8).astype(np.uint32)
    np.stack([inputs, encoded], 1).astype(np.uint32).tofile(OUT / f"encode_{name}.bin")


def patterns():
    """65,536 x 12 float32: every upper half with lower halves around the ties of both 16-bit types."""
    low = np.array([0, 1, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
    return (np.arange(65536, dtype=np.uint32)[:, None] << 16 | low).ravel()


def write_16(lines):
    codes = np.arange(65536, dtype=np.uint16)
    f16 = codes.view(np.float16).astype(np.float32).view(np.uint32)
    f16 = np.where((codes & 0x7FFF) > 0x7C00, f16 | 0x00400000, f16)  # numpy may leave a NaN signaling
    bf16 = codes.view(ml_dtypes.bfloat16).astype(np.float32).view(np.uint32)
    lines.append(("decode_F16", f16.astype(np.uint32)))
    lines.append(("decode_BF16", bf16.astype(np.uint32)))
    bits = patterns()
    floats = bits.view(np.float32)
    to_f16 = torch.from_numpy(floats.copy()).to(torch.float16).view(torch.int16).numpy().view(np.uint16)
    to_bf16 = gguf.quants.quantize(floats.reshape(-1, 16), gguf.GGMLQuantizationType.BF16).view(np.uint16).ravel()
    number = ~np.isnan(floats)  # torch and gguf-py keep NaN payloads; ml_dtypes only agrees on numbers
    assert np.array_equal(to_bf16[number], floats[number].astype(ml_dtypes.bfloat16).view(np.uint16))
    assert np.array_equal(to_f16[number], floats[number].astype(np.float16).view(np.uint16))
    lines.append(("encode_F16", to_f16))
    lines.append(("encode_BF16", to_bf16))
    with np.errstate(all="ignore"):
        for name in ("F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F8_E8M0"):
            lines.append((f"encode_{name}", floats.astype(SMALL[name]).view(np.uint8)))
        for name in BITS:  # without the NaNs
            lines.append((f"encode_{name}", floats[number].astype(SMALL[name]).view(np.uint8)))


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with np.errstate(all="ignore"):
        for name, dtype in SMALL.items():
            write_small(name, dtype)
        lines = []
        write_16(lines)
    (OUT / "tables.txt").write_text(
        "".join(f"{name} {zlib.crc32(np.ascontiguousarray(table).tobytes()):08x}\n" for name, table in lines))


main()
