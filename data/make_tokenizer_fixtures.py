"""Writes data/fixtures/tokenizers: small tokenizer.json files, each with some components of the tokenizers crate, and
EXPECTED.json: what the crate makes of texts with them.

    python data/make_tokenizer_fixtures.py
"""

import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = Path(__file__).parent / "fixtures" / "tokenizers"
TEXTS = ["", " ", "Hello, World!", "  two  spaces ", "naïve café ＡＢＣ ﬁ Ⅳ", "don't stop 12345 67",
         "日本語のテキスト、カタカナー。", "привет мир", "a\tb\nc\r\nd", "<s>x</s> <mask> y", "x<mask>  z",
         "e\u0301 a\u0308", "👩\u200d👩\u200d👧 ok", "İstanbul STRASSE ß", "foo_bar-baz.qux", "\u00a0nbsp\u3000ideo",
         "ab12-34CD", "word<w>word <w> end", "hello hello", "\u1680x\u180ey\u2028z", "1234567", "   \n  \n\n x",
         "I'LL they've", "ⓐⓑ x²½", "\ufffd\x01\x7f"]
CORPUS = TEXTS * 20 + ["the quick brown fox jumps over the lazy dog",
                       "hello world this is text with words and numbers 0 1 2 3 4 5 6 7 8 9"] * 20
BYTES = [f"<0x{i:02X}>" for i in range(256)]
TRAINERS = {"bpe": trainers.BpeTrainer, "unigram": trainers.UnigramTrainer, "wordpiece": trainers.WordPieceTrainer,
            "wordlevel": trainers.WordLevelTrainer}
MODELS = {"bpe": models.BPE, "unigram": lambda **_: models.Unigram(), "wordpiece": models.WordPiece,
          "wordlevel": models.WordLevel}


def make(kind, normalizer=None, pre_tokenizer=None, decoder=None, post=None, model={}, **training):
    tokenizer = Tokenizer(MODELS[kind](**({"unk_token": "<unk>"} | model)))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    if decoder:
        tokenizer.decoder = decoder
    options = {"vocab_size": 300, "show_progress": False, "special_tokens": ["<unk>", "<s>", "</s>", "<mask>"]}
    if kind == "unigram":
        options["unk_token"] = "<unk>"
    tokenizer.train_from_iterator(CORPUS, TRAINERS[kind](**(options | training)))
    if post:
        tokenizer.post_processor = post
    return tokenizer


def byte_level():
    n, p, d = normalizers, pre_tokenizers, decoders
    alphabet = p.ByteLevel.alphabet()
    first = make("bpe", None, p.ByteLevel(add_prefix_space=True), d.ByteLevel(),
                 processors.RobertaProcessing(("</s>", 2), ("<s>", 1)), initial_alphabet=alphabet, vocab_size=360)
    first.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    yield "byte_level", first
    llama3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
              r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    split = make("bpe", n.NFC(), p.Sequence([p.Split(Regex(llama3), "isolated"), p.ByteLevel(False, use_regex=False)]),
                 d.ByteLevel(), initial_alphabet=alphabet, vocab_size=360)
    split.add_tokens([AddedToken("<w>", single_word=True), AddedToken("hello hello", normalized=True)])
    yield "split_byte_level", split


def marked():
    n, p, d = normalizers, pre_tokenizers, decoders
    fallback = {"model": {"byte_fallback": True, "fuse_unk": True}, "limit_alphabet": 60, "vocab_size": 420}
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            yield f"metaspace_{scheme}_{split}".lower(), make(
                "bpe", None, p.Metaspace(prepend_scheme=scheme, split=split), d.Metaspace(prepend_scheme=scheme),
                special_tokens=["<unk>", "<s>", "</s>", "<mask>"] + BYTES, **fallback)
    yield "llama_like", make(
        "bpe", n.Sequence([n.Prepend("▁"), n.Replace(" ", "▁")]), None,
        d.Sequence([d.Replace("▁", " "), d.ByteFallback(), d.Fuse(), d.Strip(" ", 1, 0)]),
        processors.TemplateProcessing("<s> $A </s>", "<s> $A $B", [("<s>", 1), ("</s>", 2)]),
        special_tokens=["<unk>", "<s>", "</s>"] + BYTES, **fallback)
    yield "unigram", make("unigram", n.Sequence([n.Nmt(), n.NFKC(), n.Replace(Regex(" {2,}"), " ")]), p.Metaspace(),
                          d.Metaspace())


def words():
    n, p, d = normalizers, pre_tokenizers, decoders
    yield "clip_like", make("bpe", n.Sequence([n.NFC(), n.Lowercase()]), p.Whitespace(), d.BPEDecoder(),
                            model={"end_of_word_suffix": "</w>"}, end_of_word_suffix="</w>")
    yield "bpe_prefix", make("bpe", None, p.WhitespaceSplit(), d.WordPiece(), model={"continuing_subword_prefix": "##"},
                             continuing_subword_prefix="##")
    bert = processors.BertProcessing(("</s>", 2), ("<s>", 1))
    yield "bert", make("wordpiece", n.BertNormalizer(), p.BertPreTokenizer(), d.WordPiece(), bert)
    cased = n.BertNormalizer(lowercase=False, strip_accents=False, handle_chinese_chars=False)
    yield "bert_cased", make("wordpiece", cased, p.BertPreTokenizer(), d.WordPiece(cleanup=False))
    yield "wordlevel_digits", make("wordlevel", None, p.Sequence([p.Whitespace(), p.Digits(individual_digits=True)]))


def cuts():
    p = pre_tokenizers
    odd = Regex(r"\p{N}{1,2}+|\h+|[a-z&&[^aeiou]]+|^.|\s+$")
    each = {
        "punct_isolated": p.Punctuation(), "punct_removed": p.Punctuation("removed"),
        "punct_previous": p.Punctuation("merged_with_previous"), "punct_next": p.Punctuation("merged_with_next"),
        "punct_contiguous": p.Punctuation("contiguous"), "digits": p.Digits(False), "delimiter": p.CharDelimiterSplit("a"),
        "scripts": p.UnicodeScripts(), "inverted": p.Split(Regex(r"\w+"), "removed", invert=True),
        "literal": p.Split(" ", "merged_with_previous"), "next": p.Split("l", "merged_with_next"),
        "onig_oddities": p.Split(odd, "isolated"), "empty_matches": p.Split(Regex(r"(?=(\d{3})+(?!\d))"), "isolated"),
        "fixed_length": p.FixedLength(3)}
    for name, pre_tokenizer in each.items():
        yield "cut_" + name, make("bpe", None, pre_tokenizer, decoders.Fuse())


def normal_forms():
    n, d = normalizers, decoders
    each = {"nfd": n.NFD(), "nfkd": n.NFKD(), "strip": n.Strip(), "strip_left": n.Strip(True, False),
            "accents": n.Sequence([n.NFD(), n.StripAccents()]), "lower": n.Lowercase(), "bytes": n.ByteLevel(),
            "replace": n.Replace(Regex(r"\s+"), "_"), "prepend": n.Prepend(">")}
    steps = {"strip": d.CTC(), "lower": d.Strip("e", 1, 1), "bytes": d.ByteLevel()}
    for name, normalizer in each.items():
        tokenizer = make("bpe", normalizer, None, steps.get(name, d.Fuse()))
        tokenizer.add_special_tokens([AddedToken("<mask>", normalized=False, rstrip=True)])
        # The crate decodes a normalized token to its normal form, or to its content, by version: let them be equal.
        if name not in ("prepend", "strip"):
            tokenizer.add_tokens([AddedToken("world", normalized=True)])
        yield "normal_" + name, tokenizer


def expected(tokenizer):
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        yield {"text": text, "ids": ids, "plain": tokenizer.encode(text, add_special_tokens=False).ids,
               "decoded": tokenizer.decode(ids, skip_special_tokens=False), "skipped": tokenizer.decode(ids)}


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = {}
    for family in (byte_level, marked, words, cuts, normal_forms):
        for name, tokenizer in family():
            tokenizer.save(str(FOLDER / f"{name}.json"), pretty=False)
            results[name] = list(expected(tokenizer))
    (FOLDER / "EXPECTED.json").write_text(json.dumps(results, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
