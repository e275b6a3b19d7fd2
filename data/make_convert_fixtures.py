"""What torch makes of tinylm's weights: sha256 of the bytes that `assay convert` must produce.

    python data/make_convert_fixtures.py        writes data/fixtures/convert/EXPECTED.tsv

Each line: source folder, SPEC, tensor, sha256 of its stored bytes. All arithmetic is float32; integers and FP8 are rounded to
nearest, ties to even.
"""
import hashlib
import json
import pathlib

import torch
from safetensors.torch import load_file

HERE = pathlib.Path(__file__).resolve().parent
WEIGHTS = [
    "model.layers.0.mlp.down_proj.weight",
    "model.layers.1.self_attn.kv_a_proj_with_mqa.weight",
    "model.layers.2.self_attn.kv_b_proj.weight",
    "model.layers.3.mlp.experts.8.down_proj.weight",
]


def load(folder):
    index = json.loads((HERE / folder / "model.safetensors.index.json").read_text())
    tensors = {}
    for file in sorted(set(index["weight_map"].values())):
        tensors.update(load_file(HERE / folder / file))
    return tensors


def per_element(scale, shape, rows, columns):
    return scale.repeat_interleave(rows, 0)[: shape[0]].repeat_interleave(columns, 1)[:, : shape[1]]


def block_amax(weight, rows, columns):
    height, width = -(-weight.shape[0] // rows), -(-weight.shape[1] // columns)
    padded = torch.zeros(height * rows, width * columns)
    padded[: weight.shape[0], : weight.shape[1]] = weight
    return padded.view(height, rows, width, columns).abs().amax(dim=(1, 3))


def next_power_of_two(scale):
    mantissa, exponent = torch.frexp(scale)  # scale = mantissa * 2^exponent, mantissa in [0.5, 1)
    return torch.ldexp(torch.ones_like(scale), torch.where(mantissa == 0.5, exponent - 1, exponent))


def quantize(weight, rows, columns, limit, dtype, power_of_two=False):
    scale = block_amax(weight, rows, columns) / limit
    if power_of_two:
        scale = next_power_of_two(scale)
    quotient = weight / per_element(scale, weight.shape, rows, columns)
    if dtype == torch.int8:
        return quotient.round().clamp(-128, 127).to(dtype), scale
    return quotient.clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max).to(dtype), scale


def fused_amax(name, load_weight):
    """Engines put q_a and kv_a into one matrix, which has room for one scale: the larger amax is that of both."""
    names = [name, name.replace("kv_a_proj_with_mqa", "q_a_proj")]
    return max(load_weight(member).abs().max() for member in names)


def quantize_whole(weight, amax, limit, dtype):
    scale = (amax / limit).reshape(1, 1)
    return (weight / scale).clamp(-limit, limit).to(dtype), scale


def digest(tensor):
    return hashlib.sha256(tensor.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def main():
    out = HERE / "fixtures" / "convert"
    out.mkdir(parents=True, exist_ok=True)
    lines = ["# source\tSPEC\ttensor\tsha256; made by data/make_convert_fixtures.py"]
    fp8, plain = load("tinylm"), load("tinylm-bf16")

    def decoded(name):
        codes, scale = fp8[name], fp8[name + "_scale_inv"]
        return codes.float() * per_element(scale, codes.shape, 128, 128)

    for name in WEIGHTS:
        codes, values = fp8[name], decoded(name)
        for spec, dtype in (("bf16", torch.bfloat16), ("f16", torch.float16), ("f32", torch.float32)):
            lines.append("\t".join(("tinylm", spec, name, digest(values.to(dtype)))))
        columns = codes.shape[1]
        e4m3, e5m2, int8 = torch.float8_e4m3fn, torch.float8_e5m2, torch.int8
        for source, load_weight in (("tinylm", decoded), ("tinylm-bf16", lambda name: plain[name].float())):
            weight = load_weight(name)
            for spec, suffix, result in (
                ("fp8:channel", "_scale", quantize(weight, 1, columns, 448.0, e4m3)),
                ("fp8:tensor", "_scale", quantize_whole(weight, fused_amax(name, load_weight), 448.0, e4m3)),
                ("fp8:block=64x32,scale=ue8m0", "_scale_inv", quantize(weight, 64, 32, 448.0, e4m3, True)),
                ("fp8:block=128x128,e5m2", "_scale_inv", quantize(weight, 128, 128, 57344.0, e5m2)),
                ("int8:channel", "_scale", quantize(weight, 1, columns, 127.0, int8)),
                ("int8:block=128x128", "_scale_inv", quantize(weight, 128, 128, 127.0, int8)),
            ):
                lines.append("\t".join((source, spec, name, digest(result[0]))))
                lines.append("\t".join((source, spec, name + suffix, digest(result[1]))))
    (out / "EXPECTED.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
