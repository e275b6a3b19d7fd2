"""Writes tests' GGUF files with gguf-py, and what gguf-py's own reader says of them.

    python data/make_gguf_fixtures.py        # into data/fixtures/gguf

EXPECTED.tsv has a row per file, per tensor and per key:
    file    NAME  VERSION  KEYS  TENSORS  ALIGNMENT  DATA_OFFSET
    tensor  FILE  NAME  TYPE  NE,NE,…  ABSOLUTE_OFFSET  BYTES
    key     FILE  NAME  TYPE[,ELEMENT_TYPE]  VALUE
Arrays print their values joined by '|', floats with repr().
"""

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Q
from gguf import GGUFEndian, GGUFReader, GGUFValueType, GGUFWriter
from gguf.constants import GGML_QUANT_SIZES

OUT = Path(__file__).parent / "fixtures" / "gguf"

# Every block type gets a tensor, except Q8_1: gguf-py counts 40 bytes a block where ggml's block_q8_1 has 36
# (two halves and 32 codes). It is a type of intermediate results and is found in no file.
BLOCK_TYPES = [t for t in GGML_QUANT_SIZES if GGML_QUANT_SIZES[t][0] > 1 and t != Q.Q8_1]


def counting_bytes(count):
    return np.arange(count, dtype=np.uint32).astype(np.uint8)


def every_value(path):
    w = GGUFWriter(path, "fixture")
    w.add_uint8("test.u8", 250)
    w.add_int8("test.i8", -5)
    w.add_uint16("test.u16", 65000)
    w.add_int16("test.i16", -3000)
    w.add_uint32("test.u32", 4_000_000_000)
    w.add_int32("test.i32", -2_000_000_000)
    w.add_uint64("test.u64", 2**64 - 1)
    w.add_int64("test.i64", -(2**63))
    w.add_float32("test.f32", 0.1)
    w.add_float64("test.f64", 0.1)
    w.add_bool("test.yes", True)
    w.add_bool("test.no", False)
    w.add_string("test.string", "Größe 模型")
    w.add_array("test.strings", ["", "a", "▁the"])
    w.add_array("test.integers", [1, -2, 3])
    w.add_array("test.floats", [0.5, -1.25])
    w.add_array("test.bools", [True, False, True])
    for shape in [(), (1,), (3,), (2, 3), (2, 3, 5), (2, 3, 5, 7)]:
        count = int(np.prod(shape, dtype=np.int64))
        w.add_tensor(f"f32.{len(shape)}d.{count}", np.arange(count, dtype=np.float32).reshape(shape))
    for dtype in (np.float16, np.float64, np.int8, np.int16, np.int32, np.int64):
        w.add_tensor(f"plain.{np.dtype(dtype).name}", np.arange(5).astype(dtype))
    return w


def every_block_type(path):
    w = GGUFWriter(path, "fixture")
    w.add_quantization_version(2)
    for quant in BLOCK_TYPES:
        row_bytes = 2 * GGML_QUANT_SIZES[quant][1]
        w.add_tensor(f"blocks.{quant.name}", counting_bytes(3 * row_bytes).reshape(3, row_bytes), raw_dtype=quant)
    return w


def aligned_to_64(path):
    w = GGUFWriter(path, "fixture")
    w.add_custom_alignment(64)
    for count in (1, 16, 17):
        w.add_tensor(f"t{count}", np.arange(count, dtype=np.float32))
    return w


def vocabulary_only(path):
    w = GGUFWriter(path, "fixture")
    w.add_token_list([f"token{i}" for i in range(100)])
    w.add_token_scores([float(-i) for i in range(100)])
    return w


def big_endian(path):
    w = GGUFWriter(path, "fixture", endianess=GGUFEndian.BIG)
    w.add_tensor("t", np.arange(4, dtype=np.float32))
    return w


def in_three_splits(path):
    w = GGUFWriter(path, "fixture", split_max_tensors=2)
    for i in range(5):
        w.add_tensor(f"t{i}", np.full(8, i, dtype=np.float32))
    return w


def save(make, name):
    w = make(OUT / name)
    w.write_header_to_file(OUT / name)
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def printed(value):
    if isinstance(value, list):
        return "|".join(printed(v) for v in value)
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)


def describe(path):
    r = GGUFReader(path)
    version = r.fields["GGUF.version"].contents()
    keys = {k: f for k, f in r.fields.items() if not k.startswith("GGUF.")}
    yield ["file", path.name, version, len(keys), len(r.tensors), r.alignment, r.data_offset]
    for t in r.tensors:
        ne = ",".join(str(int(n)) for n in t.shape)
        yield ["tensor", path.name, t.name, t.tensor_type.name, ne, t.data_offset, t.n_bytes]
    for key, field in keys.items():
        types = ",".join(str(GGUFValueType(t).value) for t in field.types[:2])
        yield ["key", path.name, key, types, printed(field.contents())]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.gguf"):
        old.unlink()
    save(every_value, "values.gguf")
    save(every_block_type, "blocks.gguf")
    save(aligned_to_64, "aligned.gguf")
    save(vocabulary_only, "vocabulary.gguf")
    save(in_three_splits, "split.gguf")
    rows = [row for path in sorted(OUT.glob("*.gguf")) for row in describe(path)]
    save(big_endian, "big_endian.gguf")  # no row: readers of this byte order refuse it
    text = "".join("\t".join(str(cell) for cell in row) + "\n" for row in rows)
    (OUT / "EXPECTED.tsv").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
