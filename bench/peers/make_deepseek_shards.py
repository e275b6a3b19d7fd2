"""Shards shaped as DeepSeek-V3's, with random weights, for bench/convert.

    python bench/peers/make_deepseek_shards.py OUT GIB [SHARDS]

SHARDS: how many files; by default as many as make 2 GiB each. Each shard holds routed experts of one layer, FP8 with 128x128 blocks: codes drawn evenly but for NaN, scales of about
1e-4. Python's standard library only.
"""

import json
import random
import struct
import sys
from pathlib import Path

SHARD_BYTES = 2 << 30
SHAPES = {"gate_proj": (2048, 7168), "up_proj": (2048, 7168), "down_proj": (7168, 2048)}
NO_NAN = bytes(0x7E if b == 0x7F else 0xFE if b == 0xFF else b for b in range(256))
# No code of more than 240, so that decoded values stay what trained weights are.
SMALL = bytes((b & 0x80) | min(b & 0x7F, 0x77) for b in range(256))


def experts(count, layer):
    for expert in range(count):
        for matrix, shape in SHAPES.items():
            yield f"model.layers.{layer}.mlp.experts.{expert}.{matrix}.weight", shape


def write_shard(path, layer, size):
    one = sum(rows * columns for rows, columns in SHAPES.values())
    tensors, end = [], 0
    for name, (rows, columns) in experts(max(1, size // one), layer):
        grid = (-(-rows // 128), -(-columns // 128))
        tensors.append((name + "_scale_inv", "F32", grid, 4 * grid[0] * grid[1]))
        tensors.append((name, "F8_E4M3", (rows, columns), rows * columns))
    tensors.sort(key=lambda t: (t[1] != "F32", t[0]))
    header = {"__metadata__": {"format": "pt"}}
    for name, dtype, shape, size in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, dtype, _, size in tensors:
            if dtype == "F32":
                file.write(struct.pack(f"<{size // 4}f", *(random.uniform(5e-5, 2e-4) for _ in range(size // 4))))
            else:
                file.write(random.randbytes(size).translate(NO_NAN).translate(SMALL))
    return {name: path.name for name, *_ in tensors}, end


def main():
    out, gib = Path(sys.argv[1]), float(sys.argv[2])
    random.seed(1)
    out.mkdir(parents=True)
    count = int(sys.argv[3]) if len(sys.argv) > 3 else max(1, round(gib * (1 << 30) / SHARD_BYTES))
    weight_map, total = {}, 0
    for i in range(count):
        names, size = write_shard(out / f"model-{i + 1:05}-of-{count:05}.safetensors", 3 + i,
                                  int(gib * (1 << 30) / count))
        weight_map |= names
        total += size
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (out / "model.safetensors.index.json").write_text(json.dumps(index))
    quantization = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                    "weight_block_size": [128, 128]}
    (out / "config.json").write_text(json.dumps({"torch_dtype": "bfloat16", "quantization_config": quantization}))


if __name__ == "__main__":
    main()
