"""Writes data/fixtures/tokenizer_parts/sentencepiece.json: models of a few pieces, made field by field, for what trained ones
do not show (unused, control and user-defined pieces, ties of scores, every flag), and what the library makes of texts with
them; and a small character map, with what the tokenizers crate makes of it.

    python data/make_sentencepiece_part_fixtures.py
"""

import base64
import io
import json
import struct
import tempfile
from pathlib import Path

import sentencepiece
from json_cases import a_case_a_line
from tokenizers import Tokenizer

OUT = Path(__file__).parent / "fixtures" / "tokenizer_parts" / "sentencepiece.json"
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4
# What is mapped, in hexadecimal code points: one to two, two to one, to nothing, to a space, a combination.
RULES = {"41": "61", "132": "49 4A", "65 301": "E9", "65 301 327": "229 301", "AD": "", "A0": "20", "2009": "20", "3C": "20 6C 20", "67 67 67 67 67 67": "47"}
TEXTS = ["", " ", "   ", "abc", " abc ", "a  b", "  a  b  ", "aaaa", "aab", "abcabc", "bca", "x", "axb", "xx", "axxb", "a<u>b", "<u><u>", "<u>", " <u> ",
         "<s>", "a</s>b", "abab ab", "é", "a▁b", "ab\u00a0c", "A\u0132", "e\u0301e\u0301\u0327a", "\u00ad", "a\u00adb", "a\u2009\u2009b", "a<b", "gggggg ggggg",
         "cab" * 30, "ba ba\tab", "x a x", "☃a☃", "\u2047", "ab.", "<uu>", "a <u> b", "bc", "bc bc", "<0x41>", "a<0x41>", "▁▁a▁", "</s>", "ab<u>ab", "b<u>"]


def varint(value):
    out = b""
    value &= (1 << 64) - 1
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def model(pieces, kind, trainer={}, **normalizer):
    numbers = {"charsmap": 2, "prefix": 3, "extra": 4, "escape": 5}
    out = b"".join(field(1, field(1, text.encode()) + field(2, float(score)) + field(3, what)) for text, score, what in pieces)
    out += field(2, field(3, kind) + b"".join(field(n, v) for n, v in trainer.items()))
    return out + field(3, field(1, b"made") + b"".join(field(numbers[n], v) for n, v in normalizer.items()))


def charsmap():
    with tempfile.TemporaryDirectory() as folder:
        rules = Path(folder) / "rules.tsv"
        rules.write_text("".join(f"{a}\t{b}\n" for a, b in RULES.items()))
        made = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b c d e f"] * 20), model_writer=made, vocab_size=12,
                                                 normalization_rule_tsv=str(rules), hard_vocab_limit=False, minloglevel=2)
    data = made.getvalue()
    # The only field of the normalizer of wire type 2 and number 2: found by its tag behind the name's.
    begin = data.index(field(1, b"user_defined")) + len(field(1, b"user_defined"))
    assert data[begin] == 2 << 3 | 2
    begin, length, shift = begin + 1, 0, 0
    while True:
        byte = data[begin]
        begin, length, shift = begin + 1, length | (byte & 0x7F) << shift, shift + 7
        if byte < 0x80:
            return data[begin:begin + length]


BASE = [("<unk>", 0, UNKNOWN), ("<s>", 0, CONTROL), ("</s>", 0, CONTROL)]
LETTERS = [(c, -3.0, NORMAL) for c in "abc▁xG."] + [("é", -4.0, NORMAL), ("l", -4.0, NORMAL)]
# BPE: the higher the score the earlier; "bc" is only a stage of "abc".
MERGES = [("ab", -0.5, NORMAL), ("bc", -0.25, UNUSED), ("abc", -0.75, NORMAL), ("aa", -0.5, NORMAL), ("▁a", -1.0, NORMAL), ("▁ab", -1.25, NORMAL)]
# Unigram: ab + c and a + bc weigh the same.
WORDS = [("ab", -4.0, NORMAL), ("bc", -4.0, NORMAL), ("▁a", -3.5, NORMAL), ("abc", -9.0, UNUSED), ("aa", -6.5, NORMAL), ("▁", -3.0, NORMAL)]
USERS = [("<u>", 0, USER), ("<uu", 0, USER)]
BYTES = [(f"<0x{b:02X}>", 0, BYTE) for b in range(256)]
SNOW = [(f"<0x{b:02X}>", 0, BYTE) for b in "☃".encode()]


def models():
    letters = [p for p in LETTERS if p[0] != "▁"]
    for kind, name in ((UNIGRAM, "unigram"), (BPE, "bpe"), (WORD, "word"), (CHAR, "char")):
        more = WORDS + letters if kind == UNIGRAM else MERGES + LETTERS
        if kind == WORD:
            more = more + [("▁abc", -1.0, NORMAL), ("abc▁", -1.0, NORMAL), ("a▁", -1.0, NORMAL)]
        pieces = BASE + USERS + more + [("<u>a", -0.1, NORMAL), ("b<u>", -0.1, NORMAL)]
        yield name, model(pieces, kind)
        yield name + "_no_prefix", model(pieces, kind, prefix=0)
        yield name + "_extra", model(pieces, kind, extra=0)
        yield name + "_bare", model(pieces, kind, prefix=0, extra=0)
        yield name + "_unescaped", model(pieces + [(" ", -3.5, NORMAL)], kind, escape=0)
        yield name + "_suffix", model(pieces, kind, {24: 1})
        yield name + "_suffix_extra", model(pieces, kind, {24: 1}, extra=0)
        yield name + "_bytes", model(pieces + BYTES, kind, {35: 1})
        yield name + "_map", model(pieces, kind, charsmap=charsmap())
        yield name + "_map_extra", model(pieces, kind, charsmap=charsmap(), extra=0)
    yield "surface", model(BASE + LETTERS, CHAR, {44: b"?"})
    yield "unknown_elsewhere", model(LETTERS + [("<s>", 0, CONTROL), ("</s>", 0, CONTROL), ("<unk>", 0, UNKNOWN)], BPE,
                                     {40: len(LETTERS) + 2, 41: len(LETTERS), 42: len(LETTERS) + 1})


def results(bytes_):
    processor = sentencepiece.SentencePieceProcessor(model_proto=bytes_)
    for text in TEXTS:
        ids = processor.encode(text)
        yield [ids, processor.decode(ids)]


def special(bytes_):
    processor = sentencepiece.SentencePieceProcessor(model_proto=bytes_)
    return {"unk": processor.unk_id(), "bos": processor.bos_id(), "eos": processor.eos_id(), "pad": processor.pad_id()}


def mapped_by_the_crate(text, blob):
    word = {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}
    parts = {"normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(blob).decode()}, "model": word}
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "pre_tokenizer": None, "post_processor": None,
             "decoder": None} | parts
    return Tokenizer.from_str(json.dumps(whole)).normalizer.normalize_str(text)


def main():
    blob = charsmap()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    made = {"texts": TEXTS, "charsmap": base64.b64encode(blob).decode(), "mapped": [mapped_by_the_crate(t, blob) for t in TEXTS],
            "models": [{"name": name, "model": base64.b64encode(data).decode(), "special": special(data), "made": list(results(data))}
                       for name, data in models()]}
    OUT.write_text(a_case_a_line(made))


if __name__ == "__main__":
    main()
