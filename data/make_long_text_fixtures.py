"""Writes data/fixtures/long_texts.json: what the tokenizers crate and SentencePiece make of texts of some thousand
characters, with vocabularies of data/fixtures that merge a text in one piece. Texts are pieces of others in random order,
so that words repeat, unknown characters come in runs, and marks stand where no word begins.

    python data/make_long_text_fixtures.py
"""

import json
import random
from pathlib import Path

import sentencepiece
from make_tokenizer_fixtures import TEXTS
from tokenizers import Tokenizer

FIXTURES = Path(__file__).parent / "fixtures"
CRATE = ["llama_like", "metaspace_never_false", "metaspace_always_false", "metaspace_first_false"]
LIBRARY = ["bpe", "bpe_bytes", "no_prefix", "suffix", "unigram", "unigram_bytes"]
WORDS = ["the quick brown fox", "hello world", " ", "  ", "\n", "numbers 0 1 2 3", "жжж", "ж", "▁", "▁▁", "x▁y", "👩👩", "ﬁ",
         "<s>", "<0x41>", "\u0301", "lazylazylazy"]


def long_text(seed):
    draw = random.Random(seed)
    parts = [draw.choice(TEXTS + 2 * WORDS) for _ in range(200)]
    return draw.choice(["", " "]).join(parts)


def main():
    texts = [long_text(seed) for seed in range(2)]
    made = {"texts": texts, "crate": {}, "sentencepiece": {}}
    for name in CRATE:
        tokenizer = Tokenizer.from_file(str(FIXTURES / "tokenizers" / f"{name}.json"))
        made["crate"][name] = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    for name in LIBRARY:
        library = sentencepiece.SentencePieceProcessor(model_file=str(FIXTURES / "sentencepiece" / f"{name}.model"))
        made["sentencepiece"][name] = [library.encode(text) for text in texts]
    (FIXTURES / "long_texts.json").write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
