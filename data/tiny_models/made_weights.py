"""Weights that anybody can make from a tensor's name and shape. tests/refimpl/models/made_weights.h makes the same."""

import re

import numpy as np


def _hash(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def numbers(name, count):
    """Steps of 1/64 from -1 on, by SplitMix64 of the name's FNV-1a."""
    with np.errstate(over="ignore"):
        z = np.uint64(_hash(name)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(57)).astype(np.float64) / 64 - 1


def weight(name, shape):
    """Exact in bfloat16, whatever part it plays."""
    values = numbers(name, int(np.prod(shape)))
    if name.endswith("bias"):
        values = values / 4
    elif re.search(r"sinks?(_bias)?$", name) or re.search(r"embed|wte|wpe|tok_embeddings", name):
        pass
    elif len(shape) < 2:
        values = 1 + values / 2
    else:
        values = values * 2.0 ** (1 - (shape[-1].bit_length() - 1) // 2)
    return values.reshape(tuple(shape))
