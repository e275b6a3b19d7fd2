#!/usr/bin/env python3
"""Writes data/fixtures/quantize/{inputs.bin,<TYPE>.bin}: float32 values and the blocks ggml quantizes them to; and, of the same
values with an importance matrix, importance.bin and WEIGHTED.tsv (type, sha256 of the blocks).

The peer is llama.cpp at commit 0c1e57098 (ggml 0.25.3), built for x86-64 with GCC 12:

    cmake -S llama.cpp -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --target ggml-base
    PYTHONPATH=llama.cpp/gguf-py python data/make_gguf_quantize_fixtures.py build/bin/libggml-base.so

Each type's file holds ggml_quantize_chunk's bytes for the whole of inputs.bin, without an importance matrix. An
input is 256 values, so that one input is one super-block, or eight blocks of 32. Inputs that make a scale
infinite have no right answer and are not among them; MXFP4, whose exponent wraps around below 2^-125, and the ternary types go
without the last inputs. NVFP4's are inputs.bin times 2^-5.
"""
import ctypes
import hashlib
import pathlib
import sys

import numpy as np
from gguf import GGMLQuantizationType as T

OUT = pathlib.Path(__file__).parent / "fixtures" / "quantize"
TYPES = [T.F16, T.BF16, T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q8_0, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K,
         T.IQ4_NL, T.IQ4_XS, T.MXFP4, T.NVFP4, T.TQ1_0, T.TQ2_0, T.Q1_0, T.Q2_0]
TINY = [1e-38, 1e-40, 1e-44]
WITHOUT_TINY = [T.MXFP4, T.TQ1_0, T.TQ2_0, T.Q2_0]  # the inverse of such a scale is infinite
OF_NVFP4 = 2.0**-5  # its inputs, of inputs.bin: beyond 6 * 448 there is no scale
WEIGHED = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K, T.IQ4_NL, T.IQ4_XS, T.Q8_0]
COLUMNS = 512  # with an importance matrix: a row is two inputs


def inputs():
    rng = np.random.default_rng(20)
    ramp = np.linspace(-1, 1, 256)
    normal = lambda scale: rng.normal(0, scale, 256)
    yield from (normal(scale) for scale in (0.02, 0.02, 0.02, 1, 1, 1e-5, 100))
    yield from (rng.standard_t(3, 256) * 0.02 for _ in range(3))  # heavy tails
    yield from (rng.uniform(0, 1, 256), -rng.uniform(0, 1, 256), 5 + normal(0.1), -5 + normal(0.1))
    yield np.zeros(256)
    yield -np.zeros(256)
    yield np.where(rng.integers(0, 2, 256), 0.0, -0.0)
    yield np.abs(normal(1)) * rng.integers(0, 2, 256) * np.where(rng.integers(0, 2, 256), 1, -1.0).clip(-0.0)
    yield np.full(256, 0.7)
    yield np.full(256, -0.7)
    yield ramp
    yield -ramp
    yield np.arange(256) % 16 - 8.0  # ties between codes
    yield (np.arange(256) % 64 - 32) / 4
    yield np.where(rng.integers(0, 2, 256), 1.5, -1.5)  # two extremes of equal size, either first
    for at in (0, 100, 255):
        outlier = normal(0.02)
        outlier[at] = 30 if at else -30
        yield outlier
    yield np.where(np.arange(256) < 32, 0, normal(1))  # groups of nothing among others
    yield np.where(np.arange(256) % 32 < 16, normal(1), 0)
    yield normal(1) * np.repeat(10.0 ** -np.arange(8), 32)  # scales that round to zero steps
    yield normal(1) * np.repeat(10.0 ** -np.arange(16), 16)
    yield -1000 + normal(1e-4)  # minimum far beyond the scale: what is rounded leaves nearest_int's range
    yield -1000 + normal(1) * np.repeat(10.0 ** -np.arange(8), 32)
    yield np.repeat(-(10.0 ** np.arange(8)) / 2e4, 32) + normal(1e-6)
    yield from (normal(scale) for scale in (1e-8, 1e-12, 1e-15, 1e-16, 1e-30))
    yield normal(1000)
    yield 60000 * rng.uniform(-1, 1, 256)
    yield 2.0 ** rng.integers(-20, 15, 256)  # the logarithm of powers of two, and of their neighbours
    yield np.nextafter(np.float32(2.0) ** np.repeat(np.arange(8, 16), 32), np.float32(0)) * rng.choice([1, -0.3], 256)
    yield rng.choice([0.5, 1.5, 2.5, -3.5, 127], 256)  # ties of Q8_0
    yield from (normal(scale) for scale in TINY)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with np.errstate(under="ignore"):
        values = np.ascontiguousarray(np.stack([np.asarray(x, np.float32) for x in inputs()]))
    (OUT / "inputs.bin").write_bytes(values.tobytes())
    ggml = ctypes.CDLL(sys.argv[1])
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                         ctypes.c_int64, ctypes.c_void_p]
    for kind in TYPES:
        rows = len(values) - (len(TINY) if kind in WITHOUT_TINY else 0)
        out = np.zeros(values.size * 4, np.uint8)
        with np.errstate(under="ignore"):
            given = np.ascontiguousarray(values * np.float32(OF_NVFP4)) if kind == T.NVFP4 else values
        size = ggml.ggml_quantize_chunk(int(kind), given.ctypes.data, out.ctypes.data, 0, rows, 256, None)
        (OUT / f"{kind.name}.bin").write_bytes(out[:size].tobytes())
    weighted(ggml, values)


def weighted(ggml, values):
    rng = np.random.default_rng(21)
    importance = rng.gamma(0.5, 2, COLUMNS).astype(np.float32)  # a few columns matter most
    importance[rng.integers(0, COLUMNS, 20)] = 0
    (OUT / "importance.bin").write_bytes(importance.tobytes())
    rows = values.size // COLUMNS
    lines = ["# type\tsha256 of ggml_quantize_chunk's bytes for inputs.bin in rows of 512, with importance.bin"]
    for kind in WEIGHED:
        out = np.zeros(values.size * 4, np.uint8)
        size = ggml.ggml_quantize_chunk(int(kind), values.ctypes.data, out.ctypes.data, 0, rows, COLUMNS, importance.ctypes.data)
        lines.append(f"{kind.name}\t{hashlib.sha256(out[:size].tobytes()).hexdigest()}")
    (OUT / "WEIGHTED.tsv").write_text("\n".join(lines) + "\n")


main()
