"""Writes the first inputs of the fuzz targets: tests/fuzz/corpus/TARGET, good files and known attacks.

    python data/make_fuzz_seeds.py

What the fuzzer adds later lies beside them under names of 40 hex digits (scripts/fuzz --minimize).
"""

import base64
import json
import struct
from pathlib import Path

from make_gbnf_fixtures import WRITTEN as WRITTEN_GRAMMARS
from schema_cases import SCHEMAS

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def save(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)


def text(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack("<Q", len(s)) + s


def gguf(tensors, keys, body, version=3, data=0):
    header = b"GGUF" + struct.pack("<Iqq", version, tensors, keys) + body
    return header + b"\0" * (-len(header) % 32) + b"\0" * data


def tensor(name, ne, kind, offset):
    return text(name) + struct.pack(f"<I{len(ne)}qIQ", len(ne), *ne, kind, offset)


def key(name, kind, value):
    return text(name) + struct.pack("<I", kind) + value


def array(kind, count, encoded=b""):
    return struct.pack("<IQ", kind, count) + encoded


def gguf_seeds():
    llama = key("general.architecture", 8, text("llama"))
    kinds = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
    scalars = b"".join(key(f"s{k}", k, struct.pack(f, 1)) for k, f in kinds.items())
    arrays = b"".join(key(f"a{k}", 9, array(k, 2, struct.pack(f, 1) * 2)) for k, f in kinds.items())
    strings = key("strings", 9, array(8, 2, text("a") + text("▁the")))
    most = 2**63 - 2
    seeds = {
        "one_tensor": gguf(1, 1, llama + tensor("t", [4], 0, 0), data=32),
        "version_2": gguf(1, 1, llama + tensor("t", [4], 0, 0), version=2, data=32),
        "every_value": gguf(0, 24, llama + scalars + arrays + strings),
        "blocks": gguf(2, 1, llama + tensor("q", [32, 3], 2, 0) + tensor("k", [256], 12, 64), data=64 + 160),
        "alignment_64": gguf(1, 1, key("general.alignment", 4, struct.pack("<I", 64)) + tensor("t", [1], 0, 0), data=96),
        "split": gguf(1, 3, b"".join(key(k, 2, struct.pack("<H", v)) for k, v in
                                     [("split.no", 1), ("split.count", 2), ("split.tensors.count", 2)])
                      + tensor("t", [8], 0, 0), data=32),
        "attack_version_1": gguf(0, 0, b"", version=1),
        "attack_big_endian": b"GGUF" + struct.pack(">Iqq", 3, 0, 0),
        "attack_counts": gguf(2**63 - 1, 2**63 - 1, b""),
        "attack_negative_counts": gguf(-1, -1, b""),
        "attack_string_length": b"GGUF" + struct.pack("<IqqQ", 3, 0, 1, 2**64 - 1),
        "attack_array_2_63": b"GGUF" + struct.pack("<Iqq", 3, 0, 1) + key("k", 9, array(8, 2**63)),
        "attack_array_product": b"GGUF" + struct.pack("<Iqq", 3, 0, 1) + key("k", 9, array(10, 2**61 + 1, b"\0" * 8)),
        "attack_array_of_arrays": gguf(0, 1, key("k", 9, array(9, 1, array(0, 0)))),
        "attack_key_twice": gguf(0, 2, llama + llama),
        "attack_name_twice": gguf(2, 0, tensor("t", [4], 0, 0) + tensor("t", [4], 0, 32), data=64),
        "attack_name_nul": gguf(2, 0, tensor("t\0a", [4], 0, 0) + tensor("t\0b", [4], 0, 32), data=64),
        "attack_alignment_0": gguf(1, 1, key("general.alignment", 4, struct.pack("<I", 0)) + tensor("t", [1], 0, 0)),
        "attack_alignment_2_31": gguf(1, 1, key("general.alignment", 4, struct.pack("<I", 2**31)) + tensor("t", [1], 0, 0)),
        "attack_alignment_type": gguf(0, 1, key("general.alignment", 8, text("32"))),
        "attack_dimensions_5": gguf(1, 0, tensor("t", [1] * 5, 0, 0), data=32),
        "attack_dimension_negative": gguf(1, 0, tensor("t", [4, -1], 0, 0), data=32),
        "attack_dimension_zero": gguf(1, 0, tensor("t", [4, 0, 2**40], 0, 0)),
        "attack_product_wraps": gguf(1, 0, tensor("t", [2**32, 2**32], 0, 0), data=32),
        "attack_pad_wraps": gguf(1, 0, tensor("t", [2**61 - 1], 28, 0), data=32),
        "attack_sum_wraps": gguf(3, 0, tensor("a", [most], 24, 0) + tensor("b", [most], 24, 2**63)
                                 + tensor("c", [4], 24, 0), data=32),
        "attack_removed_type": gguf(1, 0, tensor("t", [256], 4, 0), data=256),
        "attack_ragged_blocks": gguf(1, 0, tensor("t", [16, 2], 2, 0), data=32),
        "attack_overlap": gguf(2, 0, tensor("a", [4], 0, 0) + tensor("b", [4], 0, 0), data=64),
        "attack_truncated": gguf(1, 0, tensor("t", [1000], 0, 0), data=100),
    }
    for name, content in seeds.items():
        save("gguf", name, content)


def safetensors(header, buffer=b""):
    body = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(body)) + body + buffer


def safetensors_seeds():
    def one(dtype, shape, end):
        return '{"t":{"dtype":"%s","shape":%s,"data_offsets":[0,%d]}}' % (dtype, shape, end)

    a = '"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}'
    seeds = {
        "empty": safetensors("{}"),
        "one_tensor": safetensors(one("F32", "[2,2]", 16), b"\0" * 16),
        "two_tensors": safetensors("{" + a + ',"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[4,8]}}', b"\0" * 8),
        "metadata": safetensors('{"__metadata__":{"format":"pt","x":"\\u00e9"},' + a + "}  ", b"\0" * 4),
        "scalar": safetensors(one("F64", "[]", 8), b"\0" * 8),
        "zero_size": safetensors(one("F32", "[0,3]", 0)),
        "f4": safetensors(one("F4", "[4]", 2), b"\0" * 2),
        "f6": safetensors(one("F6_E2M3", "[4]", 3), b"\0" * 3),
        "attack_f4_odd": safetensors(one("F4", "[3]", 2), b"\0" * 2),
        "attack_duplicate_same_range": safetensors("{" + a + "," + a.replace("U8", "I8") + "}", b"\0" * 4),
        "attack_duplicate_escaped": safetensors("{" + a + "," + a.replace('"a"', '"\\u0061"') + "}", b"\0" * 4),
        "attack_duplicate_other_range": safetensors("{" + a + "," + a.replace("[0,4]", "[4,8]") + "}", b"\0" * 8),
        "attack_metadata_twice": safetensors('{"__metadata__":{},"__metadata__":{}}'),
        "attack_metadata_null": safetensors('{"__metadata__":null,' + a + "}", b"\0" * 4),
        "attack_leading_blank": safetensors(" {" + a + "}", b"\0" * 4),
        "attack_extra_field": safetensors("{" + a[:-1] + ',"x":[{}]}}', b"\0" * 4),
        "attack_tensor_as_array": safetensors('{"a":["U8",[4],[0,4]]}', b"\0" * 4),
        "attack_hole": safetensors("{" + a.replace("[0,4]", "[1,5]") + "}", b"\0" * 5),
        "attack_overlap": safetensors("{" + a + "," + a.replace('"a"', '"b"') + "}", b"\0" * 4),
        "attack_tail": safetensors("{" + a + "}", b"\0" * 4 + b"PK\x03\x04"),
        "attack_product_wraps": safetensors(one("U8", "[4294967296,4294967296]", 0)),
        "attack_zero_product_wraps": safetensors(one("U8", "[9223372036854775808,2,0]", 0)),
        "attack_huge_offsets": safetensors('{"t":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0]}}'),
        "attack_length_2_63": struct.pack("<Q", 2**63) + b"{}",
        "attack_length_beyond": struct.pack("<Q", 1000) + b"{}",
        "attack_nested": safetensors('{"t":' + "[" * 2000),
        "attack_surrogate": safetensors('{"\\ud800":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}', b"\0" * 4),
        "attack_pointer": "version https://git-lfs.github.com/spec/v1\noid sha256:" + ABC + "\nsize 3\n",
        "attack_html": "<!DOCTYPE html><html><title>404</title></html>",
        "attack_zeros": b"\0" * 64,
    }
    for name, content in seeds.items():
        save("safetensors", name, content)


def lfs_pointer_seeds():
    version = "version https://git-lfs.github.com/spec/v1\n"
    tail = f"oid sha256:{ABC}\nsize 12345\n"
    ext = f"ext-0-foo sha256:{EMPTY}\n"
    seeds = {
        "canonical": version + tail,
        "extensions": version + ext + ext.replace("0-foo", "1-bar") + tail,
        "extensions_unsorted": version + ext.replace("0-foo", "9-z") + ext + tail,
        "extensions_twice": version + ext + ext + tail,
        "crlf": (version + tail).replace("\n", "\r\n"),
        "alias": version.replace("git-lfs.github", "hawser.github") + tail,
        "alias_old": "version http://git-media.io/v/2\n" + tail,
        "empty": "",
        "size_zero": version + tail.replace("12345", "0"),
        "size_signed": version + tail.replace("12345", "+007"),
        "size_too_big": version + tail.replace("12345", "9223372036854775808"),
        "upper_case": version + tail.upper(),
        "extra_line": version + tail + "x y\n",
        "long": version + tail + "\n" * 1000,
    }
    for name, content in seeds.items():
        save("lfs_pointer", name, content)


def checksum_manifest_seeds():
    chunked = {"schema": "assay.manifest/1", "chunk_bytes": 16,
               "files": [{"name": "a", "size": 17, "sha256": ABC, "chunks": [ABC, EMPTY]},
                         {"name": "b", "size": 0, "sha256": EMPTY, "chunks": []}]}
    seeds = {
        "text": f"{ABC}  a.bin\n{EMPTY} *b c.bin\n",
        "escaped": f"\\{ABC}  a\\nb\\\\c\\r\n",
        "bsd": f"SHA256 (a (1).bin) = {ABC}\n",
        "openssl": f"SHA2-256(a.bin)= {ABC}\nSHA256(b)= {EMPTY}\n",
        "crlf_and_comments": f"# made by hand\r\n\r\n{ABC}  a\r\n",
        "bom": f"\ufeff{ABC}  a\n",
        "twice": f"{ABC}  a\n{ABC}  a\n{EMPTY}  a\n",
        "other_algorithms": f"{ABC}  a\n{'a' * 32}  b\n{'b' * 40}  c\nSHA512 (d) = {'c' * 128}\n",
        "malformed": f"{ABC}  a\n{ABC}\n{ABC[1:]}  b\n\\{ABC}  c\\q\nhello\n",
        "climbing": f"{ABC}  ../../etc/passwd\n{ABC}  /etc/passwd\n{ABC}  \x1b[2J\0x\n",
        "utf16": "\ufeff".encode("utf-16-le") + f"{ABC}  a\n".encode("utf-16-le"),
        "chunked": json.dumps(chunked),
        "chunked_wrong_count": json.dumps(chunked).replace("17", "99"),
        "chunked_zero": json.dumps(chunked).replace("16", "0", 1),
        "chunked_twice": json.dumps(chunked).replace('"b"', '"a"').replace('"size": 17', '"size": 32'),
    }
    for name, content in seeds.items():
        save("checksum_manifest", name, content)


def json_seeds():
    seeds = {
        "values": '{"a": [1, -2, 2.5e3, true, false, null, "\\u00e9\\ud83d\\ude00 \\"\\\\\\/\\b"], "b": {}}',
        "numbers": "[0, -0, 18446744073709551615, -9223372036854775808, 1e308, 5e-324]",
        "attack_key_twice": '{"a": 1, "\\u0061": 2}',
        "attack_nested": "[" * 1000,
        "attack_nested_closed": "[" * 64 + "]" * 64,
        "attack_number": "1e999",
        "attack_nul": b'{"a": 1}\0{}',
        "attack_bom": "\ufeff{}",
        "attack_surrogate": '["\\ud800"]',
        "attack_utf8": b'["\xc0\x80\xed\xa0\x80\xf5"]',
        "attack_comment": "/* x */ {}",
        "attack_tail": "{} x",
    }
    for name, content in seeds.items():
        save("json", name, content)


def shard_index_seeds():
    good = {"metadata": {"total_size": 8}, "weight_map": {"a": "m-00001-of-00002.safetensors",
                                                          "b": "m-00002-of-00002.safetensors"}}
    text_of = json.dumps(good)
    seeds = {
        "two_shards": text_of,
        "no_metadata": json.dumps({"weight_map": good["weight_map"]}),
        "total_as_float": text_of.replace(": 8}", ": 8.0}"),
        "attack_tensor_twice": text_of.replace('"b"', '"a"'),
        "attack_climbing": text_of.replace("m-00002", "../m-00002"),
        "attack_absolute": text_of.replace("m-00002", "/etc/m-00002"),
        "attack_number": text_of.replace("00002-of-00002", "99999999999999999999-of-00002"),
        "attack_map_is_list": '{"weight_map": ["a"]}',
        "attack_name_is_number": '{"weight_map": {"a": 1}}',
    }
    for name, content in seeds.items():
        save("shard_index", name, content)


def hub_listing_seeds():
    """The hub's tree API, its model API, huggingface_hub's tree cache, ModelScope's file list; names that climb."""
    sha1, sha256 = "0" * 40, "a" * 64
    lfs = {"oid": sha256, "size": 4300000000, "pointerSize": 135}
    seeds = {
        "tree": [{"type": "file", "oid": sha1, "size": 4300000000, "path": "model.safetensors", "lfs": lfs},
                 {"type": "file", "oid": sha1, "size": 12, "path": "a/config.json"},
                 {"type": "directory", "oid": sha1, "size": 0, "path": "a"}],
        "bucket": [{"type": "file", "size": 4300000000, "path": "model.safetensors", "xetHash": sha256, "mtime": None},
                   {"type": "file", "size": 12, "path": "b", "xetHash": "short"},
                   {"type": "directory", "path": "a", "uploadedAt": "2026-01-01T00:00:00.000Z"}],
        "siblings": {"sha": sha1, "siblings": [{"rfilename": "config.json", "size": 3, "blobId": sha1},
                                               {"rfilename": "w.bin", "size": 9, "blobId": sha1,
                                                "lfs": {"sha256": sha256, "size": 9, "pointerSize": 130}}]},
        "tree_cache": {"format_version": 1, "files": {"config.json": {"size": 3, "blob_id": sha1},
                                                      "w.bin": {"size": 9, "blob_id": sha1, "lfs_sha256": sha256,
                                                                "lfs_size": 9, "xet_hash": "b" * 64}}},
        "modelscope": {"Code": 200, "Data": {"Files": [{"Path": "config.json", "Sha256": sha256, "Size": 3,
                                                        "Type": "blob"}]}},
        "climbs": [{"type": "file", "oid": sha1, "size": 1, "path": "../../etc/passwd"}],
        "huge_size": [{"type": "file", "oid": sha1, "size": 2**64 - 1, "path": "x"}],
        "twice": [{"type": "file", "oid": sha1, "size": 1, "path": "x"}, {"type": "file", "oid": "1" * 40, "size": 2, "path": "x"}],
        "short_digest": [{"type": "file", "oid": "abc", "size": 1, "path": "x"}],
    }
    for name, content in seeds.items():
        save("hub_listing", name + ".json", json.dumps(content).encode())
    save("hub_listing", "incomplete_name", (sha256 + ".1a2b3c4d.incomplete").encode())


def tokenizer_seeds():
    vocab = {piece: i for i, piece in enumerate(["<unk>", "a", "b", "ab", "##b", "\u0120", "<0xE2>", "aba", "\u2581", "\u2581a"])}
    bpe = {"type": "BPE", "unk_token": "<unk>", "vocab": vocab, "merges": [["a", "b"], ["ab", "a"]], "byte_fallback": True}
    word = {"type": "WordPiece", "unk_token": "<unk>", "vocab": vocab, "continuing_subword_prefix": "##"}
    unigram = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["ab", -2], ["\u2581", -3]]}
    added = [{"id": 20, "content": "<x>", "special": True, "lstrip": True, "rstrip": True},
             {"id": 21, "content": "a b", "normalized": True, "single_word": True}]
    frame = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a"}}, {"Sequence": {"id": "A"}}],
             "special_tokens": {"a": {"id": "a", "ids": [1], "tokens": ["a"]}}}
    split = [{"type": "Split", "pattern": {"Regex": p}, "behavior": b} for p, b in
             [(r"(?i:'s)|[^\r\n\p{L}]?\p{L}+|\p{N}{1,3}+|\s+(?!\S)", "Isolated"), ("[a-c&&[^b]]|$", "MergedWithNext")]]
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first"}
    norms = [{"type": "NFKC"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}, {"type": "Prepend", "prepend": "x"}]
    decoders = [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 1}]
    files = {
        "bpe": {"model": bpe, "added_tokens": added, "pre_tokenizer": {"type": "Sequence", "pretokenizers": split},
                "post_processor": frame},
        "byte_level": {"model": bpe, "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}},
        "marked": {"model": bpe, "normalizer": {"type": "Sequence", "normalizers": norms},
                   "decoder": {"type": "Sequence", "decoders": decoders}},
        "bert": {"model": word, "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
                 "decoder": {"type": "WordPiece"}},
        "unigram": {"model": unigram, "pre_tokenizer": metaspace, "decoder": metaspace},
        "grows": {"model": bpe, "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"Regex": "."}, "content": "aaaaaaaa"}] * 12}},
        "backtracks": {"model": bpe, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Removed"}},
    }
    said = "a ab\u00e9 <x> b\n12".encode() + b"\xff\xe2\x96"

    def seed(kind, name, content):
        save("tokenizer", name, bytes([kind, len(said)]) + said + content)

    for name, file in files.items():
        seed(0, name + ".json", json.dumps(file).encode())
    models = Path(__file__).parent / "fixtures" / "sentencepiece"
    for name in ("bpe", "char", "suffix"):
        seed(1, name + ".model", (models / f"{name}.model").read_bytes())
    pieces = ["<unk>", "<s>", "a", "b", "ab", "\u2581a", "<0xC3>", "\u0120"]
    common = key("tokenizer.ggml.tokens", 9, array(8, len(pieces), b"".join(text(p) for p in pieces)))
    common += key("tokenizer.ggml.token_type", 9, array(5, len(pieces), struct.pack("<8i", 2, 3, 1, 1, 1, 1, 6, 1)))
    common += key("tokenizer.ggml.scores", 9, array(6, len(pieces), struct.pack("<8f", 0, 0, -1, -2, -1, -3, 0, -4)))
    common += key("tokenizer.ggml.merges", 9, array(8, 1, text("a b")))
    common += key("tokenizer.ggml.unknown_token_id", 4, struct.pack("<I", 0))
    for name in ("llama", "gpt2", "t5", "bert", "gemma4"):
        seed(2, name + ".gguf", gguf(0, 6, key("tokenizer.ggml.model", 8, text(name)) + common))
    ranks = "".join(f"{base64.b64encode(bytes([b])).decode()} {b}\n" for b in range(256)) + "YWI= 256\n"
    seed(3, "ranks", ranks.encode())
    seed(4, "vocab_and_merges", json.dumps(vocab).encode() + b"\n#version: 0.2\na b\nab a\n")
    known = [{"rank": i, "token_bytes": base64.b64encode(piece).decode()} for i, piece in enumerate([b"a", b"b", b" ", b"ab", b" a"])]
    special = [{"rank": i, "token_str": name, "is_control": i < 2} for i, name in enumerate(["<unk>", "<s>", "<x>"])]
    config = {"pattern": r"\p{L}+|\s+(?!\S)|.", "default_vocab_size": 9, "default_num_special_tokens": 4, "version": "v11"}
    seed(5, "tekken.json", json.dumps({"config": config, "vocab": known, "special_tokens": special}).encode())


def npz_seeds():
    dumps = ROOT / "data" / "fixtures" / "dumps"  # by make_dump_fixtures.py
    for name in ("stored.npz", "deflated.npz"):
        save("npz", name, (dumps / name).read_bytes())
    for name in ("bf16", "fortran", "big_i2", "scalar", "empty", "version_3", "refused/objects"):
        save("npz", Path(name).name, (dumps / "arrays" / f"{name}.npy").read_bytes())


def signature_seeds():
    signed = ROOT / "data" / "fixtures" / "signatures"  # by make_signature_fixtures.py
    for name in ("p256", "certificate", "shards", "rekor1", "rekor2"):
        bundle = json.loads((signed / f"{name}.sig").read_text())
        save("bundle", name, json.dumps(bundle))
        for entry in bundle["verificationMaterial"].get("tlogEntries", []):
            save("checkpoint", name, entry["inclusionProof"]["checkpoint"]["envelope"])
    root = "A" * 43 + "="
    save("checkpoint", "attack_size", f"log\n9999999999999999999999\n{root}\n\n\u2014 log AAAAAAA=\n")
    save("checkpoint", "attack_no_signature", f"log\n1\n{root}\n\n")
    save("checkpoint", "attack_stray_bits", f"log\n1\n{'A' * 42}B=\n\n\u2014 log AAAAAAA=\n")
    save("checkpoint", "time", "2022-10-31T23:59:59.999Z")
    save("bundle", "attack_depth", "[" * 100)
    statement = {"_type": "https://in-toto.io/Statement/v1", "predicateType": "https://model_signing/Digests/v0.1",
                 "subject": [{"name": "../../etc/passwd", "digest": {"sha256": ABC}}]}
    payload = base64.b64encode(json.dumps(statement).encode()).decode()
    save("bundle", "attack_climbing_name", json.dumps({
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial": {"publicKey": {}},
        "dsseEnvelope": {"payload": payload, "payloadType": "application/vnd.in-toto+json",
                         "signatures": [{"sig": "AAAA"}]}}))


def grammar_seeds():
    for i, (grammar, texts) in enumerate(WRITTEN_GRAMMARS):
        save("gbnf", f"written_{i}", grammar.encode() + b"\0" + (texts[0] if texts else "aa").encode())
    hostile = {
        "nested": "root ::= " + "(" * 300 + '"a"' + ")" * 300,
        "product": 'root ::= (((("a"{9}){9}){9}){9}){9}',
        "ambiguous": 'root ::= s\ns ::= "x" s "a" | "x" s "b" | "c"\0xxxxxxxxxxxxxxxxxxxxxxxxc',
        "empty_loops": 'root ::= ((("a"?)*)*)* "b"\0aab',
        "wide": 'root ::= [^\\x00-\\x7F\\u0400-\\U0001F600]{3,}\0\u00e9\u8a9e\u00e9',
        "deep": 'root ::= "(" root ")" | "x"\0' + "(" * 200,
    }
    for name, text_ in hostile.items():
        save("gbnf", name, text_.encode())
    for i, schema in enumerate(SCHEMAS):
        save("json_schema", f"case_{i}", json.dumps(schema).encode())
    odd = {
        "itself": {"$ref": "#"},
        "anchors": {"pattern": "^(?:a|[^b-d]\\d{2,}?)|x$", "type": "string"},
        "numbers": {"type": "number", "minimum": -1.5e308, "exclusiveMaximum": 9007199254740993},
        "long": {"type": "string", "maxLength": 100000},
        "keys": {"type": "object", "properties": {"": {}, "a": True, "ab": False, '"': {}}, "additionalProperties": True},
        "unknown": {"type": "object", "patternProperties": {}},
    }
    for name, schema in odd.items():
        save("json_schema", name, json.dumps(schema).encode())


def saved_logprobs_seeds():
    for file in sorted((ROOT / "data" / "fixtures" / "logprobs").glob("a_*")) + [ROOT / "data" / "fixtures" / "logprobs" / "b_sglang.jsonl"]:
        content = file.read_bytes()
        save("saved_logprobs", file.name, content if file.suffix == ".kld" else content.splitlines(keepends=True)[0][:4000])
    save("saved_logprobs", "infinite", '{"ids": [1, 2], "logprobs": [null, -Infinity]}')
    save("saved_logprobs", "token_a_line", '{"id": 1, "logprob": null}\n{"id": 2, "logprob": -0.5}\n')
    save("saved_logprobs", "prob", '{"completion_probabilities": [{"id": 1, "prob": 0.5, "top_probs": [{"id": 1, "prob": 0.5}]}]}')


def answer_stream_seeds():
    def event(document):
        return "data: " + json.dumps(document) + "\n\n"

    done = "data: [DONE]\n\n"
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    completion = [{"choices": [{"text": t, "token_ids": [i], "logprobs": {"tokens": [t]}}]} for i, t in enumerate((" a", " b"))]
    chat = [{"choices": [{"delta": {"role": "assistant", "content": ""}}]}, {"choices": [{"delta": {"content": "\u20ac"}, "finish_reason": "stop"}]}]
    save("answer_stream", "completion", "".join(map(event, completion)) + event(usage) + done)
    save("answer_stream", "chat", "".join(map(event, chat)) + done)
    save("answer_stream", "error", event({"error": {"message": "full", "code": 503}}))
    save("answer_stream", "cut", event(completion[0])[:-9])
    save("answer_stream", "comments", "\ufeff: ping\r\n\r\nevent: x\rdata: {\rdata: }\r\r" + done)
    save("answer_stream", "much", event({"choices": [{"text": "x"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2**60}}))


def serve_request_seeds():
    completions = [
        {"prompt": "a", "max_tokens": 2},
        {"prompt": [1, 2], "logprobs": 2, "echo": True, "n": 2, "seed": 18446744073709551615, "stop": ["x", "y"]},
        {"prompt": [[1], "b"], "logit_bias": {"44": -3.5}, "stream": True, "stream_options": {"include_usage": True}},
        {"prompt": "a", "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {
            "type": "object", "properties": {"z": {"type": "integer"}, "a": {"enum": [1, "b"]}}}}}},
        {"prompt": "a", "grammar": 'root ::= "a"', "top_k": -1, "top_p": 0.5, "min_p": 0.1, "user": "u", "suffix": None},
        {"prompt": "a", "temperature": 1e308}, {"prompt": "a", "best_of": 3}, {"prompt": "a", "unknown": 1},
    ]
    hi = {"role": "user", "content": "hi"}
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}}
    chats = [
        {"messages": [hi], "logprobs": True, "top_logprobs": 3, "max_completion_tokens": 5},
        {"messages": [hi, {"role": "assistant", "content": None, "tool_calls": [call]}], "tools": [{"type": "function"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}], "chat_template_kwargs": {"t": False}},
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
    ]
    for route, all_ in (("v", completions), ("c", chats), ("t", [{"prompt": "a"}, chats[0]]), ("d", [{"tokens": [1, 2]}])):
        for i, request in enumerate(all_):
            save("serve_request", f"{route}_{i}", route + json.dumps(request))
    save("serve_request", "v_nested", 'v{"prompt": ' + "[" * 200 + "]" * 200 + "}")
    save("serve_request", "v_large", 'v{"prompt": "a", "max_tokens": 1e999}')


if __name__ == "__main__":
    grammar_seeds()
    gguf_seeds()
    tokenizer_seeds()
    hub_listing_seeds()
    safetensors_seeds()
    lfs_pointer_seeds()
    checksum_manifest_seeds()
    json_seeds()
    shard_index_seeds()
    npz_seeds()
    signature_seeds()
    answer_stream_seeds()
    saved_logprobs_seeds()
    serve_request_seeds()
