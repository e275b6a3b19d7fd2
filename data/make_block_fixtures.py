#!/usr/bin/env python3
"""Writes data/fixtures/blocks/<TYPE>.bin: random GGUF blocks and the float32 values gguf-py dequantizes them to.

A file is 4 blocks, then their values. Bytes are uniform; the halves that scale a block are kept finite and of
ordinary size, except in the last block, which has them as the bytes fell (NaN and Inf among them).

    python data/make_block_fixtures.py
"""
import pathlib

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import quants

OUT = pathlib.Path(__file__).parent / "fixtures" / "blocks"
BLOCKS = 4
# Byte offsets of the halves in a block; gguf-py lacks Q8_1, Q8_K, Q1_0 and Q2_0.
HALVES = {T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108],
          T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ2_XXS: [0], T.IQ2_XS: [0], T.IQ2_S: [0],
          T.IQ3_XXS: [0], T.IQ3_S: [0], T.IQ1_S: [0], T.IQ1_M: [], T.IQ4_NL: [0], T.IQ4_XS: [0],
          T.TQ1_0: [52], T.TQ2_0: [64], T.MXFP4: [], T.NVFP4: []}


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for kind, offsets in HALVES.items():
        rng = np.random.default_rng(int(kind))
        size = quants.GGML_QUANT_SIZES[kind][1]
        blocks = rng.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
        for offset in offsets:
            scale = rng.normal(0, 0.05, BLOCKS - 1).astype(np.float16)
            blocks[:BLOCKS - 1, offset:offset + 2] = scale.view(np.uint8).reshape(-1, 2)
        if kind == T.NVFP4:  # both zeros, both NaN codes
            blocks[0, :4] = [0x00, 0x80, 0x7F, 0xFF]
        if kind == T.MXFP4:  # both scales below the normal range, the greatest, OCP's NaN
            blocks[:, 0] = [0, 1, 254, 255]
        with np.errstate(all="ignore"):
            values = quants.dequantize(blocks.ravel(), kind)
        (OUT / f"{kind.name}.bin").write_bytes(blocks.tobytes() + values.astype(np.float32).tobytes())


main()
