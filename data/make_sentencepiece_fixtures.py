"""Writes data/fixtures/sentencepiece: small models of every kind, and EXPECTED.json: what the library makes of texts
with them. With a model's path as argument, prints the same for that model.

    python data/make_sentencepiece_fixtures.py
"""

import io
import json
import sys
from pathlib import Path

import sentencepiece

FOLDER = Path(__file__).parent / "fixtures" / "sentencepiece"
TEXTS = ["", " ", "Hello, World!", "  two  spaces ", "naïve café ＡＢＣ ﬁ Ⅳ", "don't stop 12345 67",
         "日本語のテキスト、カタカナー。", "привет мир", "a\tb\nc\r\nd", "<s>x</s> <mask> y", "e\u0301 a\u0308",
         "👩\u200d👩\u200d👧 ok", "foo_bar-baz.qux", "\u00a0nbsp\u3000ideo", "x<w>y  <w>z", "▁mark▁",
         "hello hello world", "I'LL they've", "ⓐⓑ x²½"]
CORPUS = [text for text in TEXTS if text.strip()] * 20 + [
    "the quick brown fox jumps over the lazy dog",
    "hello world this is text with words and numbers 0 1 2 3 4 5 6 7 8 9"] * 20
MODELS = {
    "unigram": {},
    "unigram_bytes": {"byte_fallback": True, "vocab_size": 420},
    "bpe": {"model_type": "bpe"},
    "bpe_bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 420,
                  "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "word": {"model_type": "word", "use_all_vocab": True},
    "char": {"model_type": "char"},
    "suffix": {"treat_whitespace_as_suffix": True, "normalization_rule_name": "identity"},
    "no_prefix": {"add_dummy_prefix": False, "remove_extra_whitespaces": False, "normalization_rule_name": "identity"},
}


def train(options):
    model = io.BytesIO()
    # The character map of nmt_nfkc is 240 kB: one model has it, the others go without.
    common = {"vocab_size": 160, "model_type": "unigram", "user_defined_symbols": ["<w>"], "hard_vocab_limit": False,
              "character_coverage": 0.98, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=model, **(common | options))
    return model.getvalue()


def expected(processor):
    return [{"text": text, "ids": processor.encode(text), "decoded": processor.decode(processor.encode(text))}
            for text in TEXTS]


def main():
    if len(sys.argv) > 1:
        print(json.dumps(expected(sentencepiece.SentencePieceProcessor(model_file=sys.argv[1]))))
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = {}
    for name, options in MODELS.items():
        if name != "unigram":
            options = {"normalization_rule_name": "identity"} | options
        model = train(options)
        (FOLDER / f"{name}.model").write_bytes(model)
        results[name] = expected(sentencepiece.SentencePieceProcessor(model_proto=model))
    (FOLDER / "EXPECTED.json").write_text(json.dumps(results, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
