"""Small checkpoints of packed integers as AMD Quark and torchao write them, and of scales for query, keys and values apart; and the
values they stand for.

    python data/make_packed_forms_fixtures.py    writes data/fixtures/convert/packed_forms/*/ and PACKED_FORMS.tsv beside them

PACKED_FORMS.tsv: folder, tensor, sha256 of its values as float32. Quark 0.13 packs and unpacks its integers (quark.torch.utils.pack);
its dequantization is (q - z) * s in float32 (dequantize_int_per_group_affine). torchao 0.18 makes and dequantizes
IntxUnpackedToInt8Tensor, Int8Tensor, MXTensor and NVFP4Tensor, and flattens all of them. Its Int4Tensor and
Int4TilePackedTo4dTensor are made on GPUs alone: here they are put together as FBGEMM's pack_int4 and ATen's int4mm.cu
(matrix_to_m16n8k16_Bint4_layout) write them, lane by lane.
"""
import hashlib
import json
import pathlib
import sys

import torch
from quark.torch.utils.pack import create_pack_method
from safetensors.torch import save_file
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict
from torchao.quantization import Int4Tensor, Int4TilePackedTo4dTensor, Int8Tensor, IntxUnpackedToInt8Tensor, MappingType, PerRow, PerTensor

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "fixtures" / "convert" / "packed_forms"
ROWS, COLUMNS, GROUP = 48, 128, 32
lines = ["# folder\ttensor\tsha256 of the float32 values; made by data/make_packed_forms_fixtures.py"]


def write(folder, tensors, config, values, metadata=None):
    path = OUT / folder
    path.mkdir(parents=True, exist_ok=True)
    tensors = {k: v.contiguous() for k, v in tensors.items()}
    save_file(tensors, path / "model.safetensors", metadata={"format": "pt", **(metadata or {})})
    (path / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    for name, value in values.items():
        digest = hashlib.sha256(value.float().contiguous().numpy().tobytes()).hexdigest()
        lines.append("\t".join((folder, name, digest)))


def matrix(g, rows=ROWS, columns=COLUMNS):
    return torch.randn((rows, columns), generator=g) * 0.02


def integers(g, low, high, shape):
    return torch.randint(low, high + 1, shape, generator=g, dtype=torch.int32)


# --- Quark -----------------------------------------------------------------------------------------------------------


def quark_layer(g, dtype, scheme, reorder):
    low, high = {"int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255)}[dtype]
    pack = create_pack_method(scheme, dtype)
    groups = COLUMNS // GROUP if scheme == "per_group" else 1
    q, z = integers(g, low, high, (ROWS, COLUMNS)), integers(g, low, high, (ROWS, groups))
    s = (torch.rand((ROWS, groups), generator=g) * 0.001 + 0.0001).to(torch.bfloat16)
    width = COLUMNS // groups
    value = (q.float() - z.repeat_interleave(width, 1).float()) * s.float().repeat_interleave(width, 1)
    codes = pack.pack(q, reorder)
    if scheme == "per_group":
        scale, zeros = s.t(), pack.pack(z, reorder)
    else:
        scale, zeros = s[:, 0], pack.pack(z[:, 0], reorder)
    assert torch.equal(pack.unpack(codes, reorder).to(torch.int32), q)
    return {"weight": codes, "weight_scale": scale, "weight_zero_point": zeros}, value


def quark_config(dtype, scheme, method, layers=None):
    spec = lambda kind, how: {"weight": {"dtype": kind, "qscheme": how, "ch_axis": 1 if how == "per_group" else 0,
                                         "group_size": GROUP if how == "per_group" else None, "is_dynamic": False,
                                         "symmetric": kind.startswith("int")}, "input_tensors": None}
    return {"quantization_config": {
        "quant_method": "quark", "quant_mode": "eager_mode", "exclude": ["lm_head"],
        "export": {"kv_cache_group": [], "pack_method": method, "weight_format": "real_quantized"},
        "global_quant_config": spec(dtype, scheme), "layer_type_quant_config": {},
        "layer_quant_config": {name: spec(*what) for name, what in (layers or {}).items()}}}


def quark(g):
    for folder, dtype, scheme, method in (("quark-int4", "int4", "per_group", "reorder"), ("quark-uint4", "uint4", "per_group", "order"),
                                          ("quark-int4-channel", "int4", "per_channel", "reorder"),
                                          ("quark-int8-group", "int8", "per_group", "order")):
        tensors, values = {}, {}
        parts, values["a.weight"] = quark_layer(g, dtype, scheme, method == "reorder")
        tensors.update({f"a.{k}": v for k, v in parts.items()})
        layers = None
        if folder == "quark-int4":  # a layer with settings of its own
            layers = {"*.down": ("uint4", "per_group")}
            parts, values["x.down.weight"] = quark_layer(g, "uint4", "per_group", True)
            tensors.update({f"x.down.{k}": v for k, v in parts.items()})
        write(folder, tensors, quark_config(dtype, scheme, method, layers), values)

    q = integers(g, -127, 127, (ROWS, COLUMNS)).to(torch.int8)  # per channel, zero points of 0
    s = torch.rand(ROWS, generator=g) * 0.001
    tensors = {"a.weight": q, "a.weight_scale": s, "a.weight_zero_point": torch.zeros(ROWS, dtype=torch.int8)}
    write("quark-int8", tensors, quark_config("int8", "per_channel", "reorder"), {"a.weight": q.float() * s[:, None]})

    codes = integers(g, 0, 255, (ROWS, COLUMNS // 2)).to(torch.uint8)  # MXFP4
    powers = integers(g, 115, 125, (ROWS, COLUMNS // 32)).to(torch.uint8)
    value = create_pack_method("per_group", "fp4").unpack(codes, True)
    value = value * torch.exp2(powers.float() - 127).repeat_interleave(32, 1)
    write("quark-mxfp4", {"a.weight": codes, "a.weight_scale": powers}, quark_config("fp4", "per_group", "reorder"), {"a.weight": value})


# --- torchao ---------------------------------------------------------------------------------------------------------


def tiles(q, inner=8):
    """[n, k] codes as matrix_to_m16n8k16_Bint4_layout packs them, from its uint8 input: the even column in the high nibble."""
    n, k = q.shape
    pairs = (q[:, ::2] << 4 | q[:, 1::2]).to(torch.int64)
    out = torch.zeros((n // 8, k // (inner * 16), 32, inner // 2), dtype=torch.int64)
    for tile in range(out.shape[0]):
        for outer in range(out.shape[1]):
            for t in range(32):
                for inner_tile in range(0, inner, 2):
                    first = (outer * inner + inner_tile) * 8 + t % 4
                    v = [int(pairs[tile * 8 + t // 4, at]) for at in (first, first + 4, first + 8, first + 12)]
                    word = 0
                    for i in range(4):
                        word |= (v[i] & 0xF) << (16 + 4 * i) | (v[i] >> 4) << (4 * i)
                    out[tile, outer, t, inner_tile // 2] = word - (1 << 32) if word >= 1 << 31 else word
    return out.to(torch.int32)


def tiled(g, rows, columns, group, unit=1024):
    padded_rows, padded = -(-rows // 8) * 8, -(-columns // unit) * unit
    q = integers(g, 0, 15, (padded_rows, padded))
    pairs = torch.stack((torch.rand((padded // group, padded_rows), generator=g) * 0.01,
                         torch.randn((padded // group, padded_rows), generator=g) * 0.01), -1).to(torch.bfloat16)
    scale, zero = (pairs[..., i].float().t().repeat_interleave(group, 1) for i in (0, 1))
    value = (q.float() - 8) * scale + zero
    tensor = Int4TilePackedTo4dTensor(tiles(q), pairs, [1, group], torch.Size((rows, columns)))
    return tensor, value[:rows, :columns]


def halves(g, rows=ROWS, columns=COLUMNS):
    q = integers(g, -8, 7, (rows, columns))
    scale, zero = (torch.rand((columns // GROUP, rows), generator=g).to(torch.bfloat16) * 0.01 for _ in range(2))
    packed = (q[:, 1::2] << 4 | q[:, ::2] & 0xF).to(torch.int8)
    wide = lambda x: x.float().t().repeat_interleave(GROUP, 1)
    return Int4Tensor(packed, scale, zero, [1, GROUP], torch.Size((rows, columns))), q.float() * wide(scale) + wide(zero)


def torchao(g):
    state, values = {}, {}
    state["tiles.weight"], values["tiles.weight"] = tiled(g, 20, 1100, 64)
    state["halves.weight"], values["halves.weight"] = halves(g)
    for name, target, group in (("four", torch.int4, GROUP), ("five", torch.int5, 64), ("eight", torch.int8, COLUMNS)):
        for kind in (MappingType.SYMMETRIC, MappingType.ASYMMETRIC):
            tensor = IntxUnpackedToInt8Tensor.from_hp(matrix(g) + 0.01, (1, group), target, mapping_type=kind)
            key = f"{name}.{kind.name.lower()}.weight"
            state[key], values[key] = tensor, tensor.dequantize()
    for name, kind, granularity in (("row", MappingType.ASYMMETRIC, PerRow()), ("symmetric", MappingType.SYMMETRIC, PerRow()),
                                    ("whole", MappingType.SYMMETRIC, PerTensor())):
        tensor = Int8Tensor.from_hp(matrix(g) + 0.01, granularity, kind)
        state[f"{name}.weight"], values[f"{name}.weight"] = tensor, tensor.dequantize(torch.float32)
    for name, kind in (("mx8", torch.float8_e4m3fn), ("mx4", torch.float4_e2m1fn_x2)):
        state[f"{name}.weight"] = MXTensor.to_mx(matrix(g), kind, 32)
        values[f"{name}.weight"] = state[f"{name}.weight"].dequantize(torch.float32)
    state["nv.weight"] = NVFP4Tensor.to_nvfp4(matrix(g), per_tensor_scale=torch.tensor(0.0001))
    values["nv.weight"] = state["nv.weight"].dequantize(torch.float32)
    tensors, metadata = flatten_tensor_state_dict(state)
    write("torchao-packed", tensors, {"quantization_config": {"quant_method": "torchao", "quant_type": {"default": {}}}}, values, metadata)
    swizzled = {"a.weight": NVFP4Tensor.to_nvfp4(matrix(g), per_tensor_scale=torch.tensor(0.0001), is_swizzled_scales=True),
                "b.weight": MXTensor.to_mx(matrix(g, 160, 160), torch.float8_e4m3fn, 32, is_swizzled_scales=True)}
    values = {name: tensor.dequantize(torch.float32) for name, tensor in swizzled.items()}
    tensors, metadata = flatten_tensor_state_dict(swizzled)
    write("torchao-swizzled", tensors, {"quantization_config": {"quant_method": "torchao", "quant_type": {"default": {}}}}, values, metadata)


# --- a scale a part --------------------------------------------------------------------------------------------------


def fused(g):
    heads, kv_heads, size = 4, 2, 8
    rows = [heads * size, kv_heads * size, kv_heads * size]
    config = {"hidden_size": heads * size, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
              "quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}}
    tensors, values = {}, {}
    for name, kind in (("a.qkv_proj", torch.float8_e4m3fn), ("b.qkv_proj", torch.int8)):
        weight, scale = torch.randn((sum(rows), 40), generator=g), torch.tensor([0.01, 0.002, 0.03])
        codes = (weight * 20).to(kind)
        tensors |= {f"{name}.weight": codes, f"{name}.weight_scale": scale, f"{name}.input_scale": torch.tensor([0.1, 0.1, 0.1])}
        values[f"{name}.weight"] = codes.float() * torch.repeat_interleave(scale, torch.tensor(rows))[:, None]
    write("fused-qkv", tensors, config, values)
    dbrx = {"d_model": 32, "n_heads": 4, "attn_config": {"kv_n_heads": 2}, "quantization_config": config["quantization_config"]}
    write("fused-wqkv", {f"a.Wqkv.{k}": tensors[f"a.qkv_proj.{k}"] for k in ("weight", "weight_scale")}, dbrx,
          {"a.Wqkv.weight": values["a.qkv_proj.weight"]})


# --- whole models ----------------------------------------------------------------------------------------------------


def models(g):
    hidden, inner, vocabulary = 64, 128, 16
    shapes = {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (hidden // 2, hidden), "self_attn.v_proj": (hidden // 2, hidden),
              "self_attn.o_proj": (hidden, hidden), "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden),
              "mlp.down_proj": (hidden, inner)}
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "intermediate_size": inner,
              "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": vocabulary, "rms_norm_eps": 1e-5,
              "max_position_embeddings": 64, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": False,
              "torch_dtype": "bfloat16"}
    plain = {f"{name}.weight": torch.randn((vocabulary, hidden), generator=g).to(torch.bfloat16) for name in ("model.embed_tokens", "lm_head")}
    plain |= {name: torch.ones(hidden).to(torch.bfloat16) for name in
              ("model.norm.weight", "model.layers.0.input_layernorm.weight", "model.layers.0.post_attention_layernorm.weight")}
    tensors, values, state = dict(plain), {}, dict(plain)
    pack = create_pack_method("per_group", "int4")
    for at, (name, (rows, columns)) in enumerate(shapes.items()):
        key = f"model.layers.0.{name}"
        q, s = integers(g, -8, 7, (rows, columns)), (torch.rand((rows, columns // GROUP), generator=g) * 0.03).to(torch.bfloat16)
        tensors |= {f"{key}.weight": pack.pack(q, True), f"{key}.weight_scale": s.t(),
                    f"{key}.weight_zero_point": pack.pack(torch.zeros_like(s).to(torch.int32), True)}
        values[f"{key}.weight"] = q.float() * s.float().repeat_interleave(GROUP, 1)
    write("model-quark", tensors, config | quark_config("int4", "per_group", "reorder"), values)
    values = {}
    for at, (name, (rows, columns)) in enumerate(shapes.items()):
        key = f"model.layers.0.{name}.weight"
        state[key], values[key] = tiled(g, rows, columns, 32, 128) if at % 2 else halves(g, rows, columns)
    tensors, metadata = flatten_tensor_state_dict(state)
    write("model-torchao", tensors, config | {"quantization_config": {"quant_method": "torchao", "quant_type": {"default": {}}}}, values, metadata)


def main():
    g = torch.Generator().manual_seed(20261122)
    for make in (quark, torchao, fused, models):
        make(g)
    (OUT.parent / "PACKED_FORMS.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
