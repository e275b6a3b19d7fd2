#!/usr/bin/env python3
"""Which safetensors headers the reference reader accepts: asks the `safetensors` package and writes cases.tsv.

Columns: case, header (percent-encoded), bytes of buffer, verdict of the package ("ok", or the name of its error),
and `spec`: whether the README's "Format" section allows it too ("yes"/"no", judged by hand below).

    pip install -r data/requirements.txt && python data/safetensors_acceptance/make.py
"""
import pathlib
import re
import struct

import safetensors


def tensor(name="a", dtype="U8", shape="[4]", offsets="[0,4]", extra=""):
    return f'"{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}{extra}}}'


def header(*entries):
    return "{" + ",".join(entries) + "}"


def nested(levels):
    return header(tensor(extra=',"x":' + "[" * levels + "]" * levels))


NO, YES = "no", "yes"
B = tensor("b", offsets="[4,8]")
CASES = [  # name, header, buffer bytes, allowed by the README
    ("plain", header(tensor()), 4, YES),
    ("empty", "{}", 0, YES),
    ("trailing_spaces", header(tensor()) + "   ", 4, YES),
    ("trailing_newline", header(tensor()) + "\n", 4, NO),
    ("leading_space", " " + header(tensor()), 4, NO),
    ("leading_newline", "\n\t" + header(tensor()), 4, NO),
    ("byte_order_mark", "\ufeff" + header(tensor()), 4, NO),
    ("trailing_nul", header(tensor()) + "\0", 4, NO),
    ("nul_then_garbage", header(tensor()) + "\0garbage", 4, NO),
    ("inner_nul", header(tensor("a\0b")), 4, NO),
    ("trailing_garbage", header(tensor()) + "x", 4, NO),
    ("second_document", header(tensor()) + "{}", 4, NO),
    ("no_json", "", 0, NO),
    ("only_spaces", "    ", 0, NO),
    ("array_document", "[]", 0, NO),
    ("null_document", "null", 0, NO),
    ("comment", "{/**/" + tensor() + "}", 4, NO),
    ("trailing_comma", "{" + tensor() + ",}", 4, NO),
    ("single_quotes", header(tensor()).replace('"', "'"), 4, NO),
    ("invalid_utf8_in_name", b'{"a\xff":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4, NO),
    ("overlong_utf8", b'{"\xc0\xaf":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4, NO),
    ("utf8_surrogate", b'{"\xed\xa0\x80":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', 4, NO),
    ("utf8_name", header(tensor("模型.权重")), 4, YES),
    ("escaped_pair", header(tensor("\\ud83d\\ude00")), 4, YES),
    ("lone_high_surrogate", header(tensor("\\ud83d")), 4, NO),
    ("lone_low_surrogate", header(tensor("\\ude00")), 4, NO),
    ("lone_surrogate_in_extra", header(tensor(extra=',"x":"\\ud800"')), 4, NO),
    ("control_in_name", header(tensor("a\nb")), 4, NO),
    ("escaped_controls_in_name", header(tensor("../../x\\n\\u0000")), 4, YES),
    ("bad_escape", header(tensor("\\x41")), 4, NO),
    ("empty_name", header(tensor("")), 4, YES),
    # duplicates
    ("same_name_same_range", header(tensor(), tensor()), 4, NO),
    ("same_name_other_dtype", header(tensor(), tensor(dtype="I8")), 4, NO),
    ("same_name_escaped", header(tensor("a"), tensor("\\u0061")), 4, NO),
    ("same_name_hole", header(tensor(), tensor(offsets="[4,8]")), 8, NO),
    ("same_name_last_fits", header(tensor(shape="[8]", offsets="[0,8]"), tensor(), B), 8, NO),
    ("same_name_first_fits", header(tensor(), B, tensor(shape="[8]", offsets="[0,8]")), 8, NO),
    ("same_name_first_overflows", header(tensor(shape="[9223372036854775807,9]"), tensor()), 4, NO),
    ("same_name_first_unknown_dtype", header(tensor(dtype="U7"), tensor()), 4, NO),
    ("metadata_twice", header('"__metadata__":{}', '"__metadata__":{}', tensor()), 4, NO),
    ("metadata_twice_null", header('"__metadata__":null', '"__metadata__":null', tensor()), 4, NO),
    ("metadata_twice_escaped", header('"__metadata__":{}', '"\\u005f_metadata__":{}', tensor()), 4, NO),
    ("metadata_same_key", header('"__metadata__":{"k":"1","k":"2"}', tensor()), 4, NO),
    ("dtype_twice", header(tensor(extra=',"dtype":"U8"')), 4, NO),
    ("shape_twice", header(tensor(extra=',"shape":[4]')), 4, NO),
    ("offsets_twice", header(tensor(extra=',"data_offsets":[0,4]')), 4, NO),
    ("extra_twice", header(tensor(extra=',"x":1,"x":2')), 4, NO),
    # metadata
    ("metadata", header('"__metadata__":{"format":"pt"}', tensor()), 4, YES),
    ("metadata_escaped_key", header('"\\u005f_metadata__":{"format":"pt"}', tensor()), 4, YES),
    ("metadata_empty", header('"__metadata__":{}', tensor()), 4, YES),
    ("metadata_last", header(tensor(), '"__metadata__":{"format":"pt"}'), 4, YES),
    ("metadata_null", header('"__metadata__":null', tensor()), 4, NO),
    ("metadata_number_value", header('"__metadata__":{"k":1}', tensor()), 4, NO),
    ("metadata_null_value", header('"__metadata__":{"k":null}', tensor()), 4, NO),
    ("metadata_object_value", header('"__metadata__":{"k":{}}', tensor()), 4, NO),
    ("metadata_array", header('"__metadata__":[]', tensor()), 4, NO),
    ("metadata_string", header('"__metadata__":"x"', tensor()), 4, NO),
    ("metadata_like_tensor", header(tensor("__metadata__")), 4, NO),
    # the description of a tensor
    ("fields_reordered", header('"a":{"data_offsets":[0,4],"dtype":"U8","shape":[4]}'), 4, YES),
    ("field_escaped", header('"a":{"\\u0064type":"U8","shape":[4],"data_offsets":[0,4]}'), 4, YES),
    ("dtype_escaped", header(tensor(dtype="\\u00558")), 4, YES),
    ("extra_field", header(tensor(extra=',"x":{"y":[1,2.5,null,true]}')), 4, NO),
    ("extra_huge_integer", header(tensor(extra=',"x":123456789012345678901234567890')), 4, NO),
    ("extra_float_overflow", header(tensor(extra=',"x":1e999')), 4, NO),
    ("extra_float_tiny", header(tensor(extra=',"x":1e-999')), 4, NO),
    ("extra_nested_120", nested(120), 4, NO),
    ("extra_nested_125", nested(125), 4, NO),
    ("extra_nested_126", nested(126), 4, NO),
    ("extra_nested_200", nested(200), 4, NO),
    ("missing_dtype", header('"a":{"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("missing_shape", header('"a":{"dtype":"U8","data_offsets":[0,4]}'), 4, NO),
    ("missing_offsets", header('"a":{"dtype":"U8","shape":[4]}'), 4, NO),
    ("empty_description", header('"a":{}'), 4, NO),
    ("null_description", header('"a":null'), 4, NO),
    ("number_description", header('"a":1'), 4, NO),
    ("array_description", header('"a":["U8",[4],[0,4]]'), 4, NO),
    ("array_description_short", header('"a":["U8",[4]]'), 4, NO),
    ("array_description_long", header('"a":["U8",[4],[0,4],1]'), 4, NO),
    ("array_description_empty", header('"a":[]'), 0, NO),
    ("array_description_nested", header('"a":[["U8",[4],[0,4]]]'), 4, NO),
    ("dtype_unknown", header(tensor(dtype="U7")), 4, NO),
    ("dtype_lower_case", header(tensor(dtype="u8")), 4, NO),
    ("dtype_ggml", header(tensor(dtype="Q4_0")), 4, NO),
    ("dtype_null", header('"a":{"dtype":null,"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("dtype_number", header('"a":{"dtype":4,"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("dtype_object_null", header('"a":{"dtype":{"U8":null},"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("dtype_object_list", header('"a":{"dtype":{"U8":[]},"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("dtype_object_object", header('"a":{"dtype":{"U8":{}},"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("dtype_object_number", header('"a":{"dtype":{"U8":1},"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("dtype_object_two", header('"a":{"dtype":{"U8":null,"I8":null},"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("dtype_object_empty", header('"a":{"dtype":{},"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("array_dtype_object", header('"a":[{"U8":null},[4],[0,4]]'), 4, NO),
    ("dtype_array", header('"a":{"dtype":["U8"],"shape":[4],"data_offsets":[0,4]}'), 4, NO),
    ("shape_null", header(tensor(shape="null")), 4, NO),
    ("shape_number", header(tensor(shape="4")), 4, NO),
    ("shape_object", header(tensor(shape="{}")), 4, NO),
    ("shape_nested", header(tensor(shape="[[4]]")), 4, NO),
    ("shape_string_number", header(tensor(shape='["4"]')), 4, NO),
    ("shape_float", header(tensor(shape="[4.0]")), 4, NO),
    ("shape_exponent", header(tensor(shape="[4e0]")), 4, NO),
    ("shape_negative", header(tensor(shape="[-4]")), 4, NO),
    ("shape_minus_zero", header(tensor(shape="[-0]", offsets="[0,0]")), 0, NO),
    ("shape_leading_zero", header(tensor(shape="[04]")), 4, NO),
    ("shape_plus", header(tensor(shape="[+4]")), 4, NO),
    ("shape_true", header(tensor(shape="[true]", offsets="[0,1]")), 1, NO),
    ("shape_scalar", header(tensor(shape="[]", offsets="[0,1]")), 1, YES),
    ("shape_rank_40", header(tensor(shape="[" + ",".join(["1"] * 40) + "]", offsets="[0,1]")), 1, YES),
    ("shape_zero", header(tensor(shape="[4,0]", offsets="[0,0]")), 0, YES),
    ("shape_zero_times_2_63", header(tensor(shape="[0,9223372036854775808]", offsets="[0,0]")), 0, YES),
    ("shape_2_63_times_zero", header(tensor(shape="[9223372036854775808,0]", offsets="[0,0]")), 0, YES),
    ("shape_product_overflow", header(tensor(shape="[9223372036854775808,2,0]", offsets="[0,0]")), 0, NO),
    ("shape_bits_overflow", header(tensor(dtype="F64", shape="[2305843009213693952]", offsets="[0,0]")), 0, NO),
    ("shape_bits_overflow_u8", header(tensor(shape="[2305843009213693952]", offsets="[0,2305843009213693952]")), 0, NO),
    ("shape_2_64", header(tensor(shape="[18446744073709551616]", offsets="[0,0]")), 0, NO),
    ("offsets_empty", header(tensor(offsets="[]")), 4, NO),
    ("offsets_one", header(tensor(offsets="[4]")), 4, NO),
    ("offsets_three", header(tensor(offsets="[0,4,4]")), 4, NO),
    ("offsets_object", header(tensor(offsets='{"0":0,"1":4}')), 4, NO),
    ("offsets_null", header(tensor(offsets="null")), 4, NO),
    ("offsets_float", header(tensor(offsets="[0.0,4]")), 4, NO),
    ("offsets_minus_zero", header(tensor(offsets="[-0,4]")), 4, NO),
    ("offsets_reversed", header(tensor(offsets="[4,0]")), 4, NO),
    ("offsets_too_short", header(tensor(offsets="[0,3]")), 3, NO),
    ("offsets_too_long", header(tensor(offsets="[0,5]")), 5, NO),
    ("offsets_2_64", header(tensor(offsets="[0,18446744073709551616]")), 4, NO),
    # the buffer
    ("hole_at_start", header(tensor(offsets="[4,8]")), 8, NO),
    ("hole_between", header(tensor(), tensor("b", offsets="[8,12]")), 12, NO),
    ("overlap", header(tensor(), tensor("b", offsets="[2,6]")), 6, NO),
    ("shared_range", header(tensor(), tensor("b")), 4, NO),
    ("buffer_short", header(tensor()), 3, NO),
    ("buffer_long", header(tensor()), 5, NO),
    ("empty_with_buffer", "{}", 1, NO),
    ("unordered", header(B, tensor()), 8, YES),
    ("zero_size_between", header(tensor(), tensor("z", shape="[0]", offsets="[4,4]"), B), 8, YES),
    ("zero_size_elsewhere", header(tensor(), tensor("z", shape="[0]", offsets="[2,2]")), 4, NO),
    ("misaligned_f32", header(tensor("a", "U8", "[1]", "[0,1]"), tensor("b", "F32", "[1]", "[1,5]")), 5, YES),
    ("f4_even", header(tensor(dtype="F4", shape="[2]", offsets="[0,1]")), 1, YES),
    ("f4_odd", header(tensor(dtype="F4", shape="[3]", offsets="[0,2]")), 2, NO),
    ("f6_four", header(tensor(dtype="F6_E2M3", shape="[4]", offsets="[0,3]")), 3, YES),
    ("f6_three", header(tensor(dtype="F6_E3M2", shape="[3]", offsets="[0,3]")), 3, NO),
] + [
    (f"dtype_{name}", header(tensor(dtype=name, shape="[8]", offsets=f"[0,{bits}]")), bits, YES)
    for name, bits in [("BOOL", 8), ("F4", 4), ("F6_E2M3", 6), ("F6_E3M2", 6), ("U8", 8), ("I8", 8), ("F8_E5M2", 8),
                       ("F8_E4M3", 8), ("F8_E8M0", 8), ("F8_E4M3FNUZ", 8), ("F8_E5M2FNUZ", 8), ("I16", 16),
                       ("U16", 16), ("F16", 16), ("BF16", 16), ("I32", 32), ("U32", 32), ("F32", 32), ("C64", 64),
                       ("F64", 64), ("I64", 64), ("U64", 64)]
]


def encode(json_bytes):
    return "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x25 else f"%{b:02X}" for b in json_bytes)


def verdict(json_bytes, buffer_bytes):
    try:
        safetensors.deserialize(struct.pack("<Q", len(json_bytes)) + json_bytes + bytes(buffer_bytes))
        return "ok"
    except safetensors.SafetensorError as error:
        match = re.match(r"Error while deserializing: (.*)", str(error))
        return match.group(1) if match else str(error)


def main():
    lines = [f"# case\theader\tbuffer\tsafetensors {safetensors.__version__}\tspec"]
    for name, json_text, buffer_bytes, spec in CASES:
        json_bytes = json_text if isinstance(json_text, bytes) else json_text.encode()
        answer = verdict(json_bytes, buffer_bytes)
        lines.append(f"{name}\t{encode(json_bytes)}\t{buffer_bytes}\t{answer}\t{spec}")
    pathlib.Path(__file__).with_name("cases.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
