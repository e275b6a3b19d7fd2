"""Writes data/fixtures/tokenizer_parts/added.json: added tokens of all flags, drawn by chance, in the small tokenizers of
data/fixtures/tokenizers, and what the tokenizers crate makes of texts with them.

    python data/make_added_token_fixtures.py [FILE ROUNDS TEXTS]

FILE with another number of ROUNDS a tokenizer, of TEXTS each (ASSAY_ADDED_CASES=FILE build/release/tests/test_tokenizers
--gtest_filter='AddedTokens.*').
"""

import json
import random
import sys
from pathlib import Path

from json_cases import a_case_a_line
from tokenizers import Tokenizer

FIXTURES = Path(__file__).parent / "fixtures"
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
NAMES = ["<m>", "<|end|>", "[X]", "é", "e\u0301", "É", "ab", "Ab", "##a", "the", "The", " ", "  ", "\n", "▁", "▁a", "Ġ", "_", "-", "😀", "日", "ﬁ", "Ａ", "<m", "m>",
         "a b", " a", "a ", "1", "12", "Ⅳ", "\u0301", "\u00a0", "ö", ".", "'s", "<unk>", "zq", "ß", "İ", "\u200d", "\u3000"]
BETWEEN = ["", "", "", " ", " ", "  ", "a", "b", "B", "Hello", "world", "_", "-", ".", "1", "é", "日本", "\n", "\t", "\u00a0", "e\u0301", "👍", "the", "☃", "İ"]


def tokens(choice, first):
    names = choice.sample(NAMES, choice.randint(1, 6))
    return [{"id": first + i, "content": name} | {flag: choice.random() < 0.4 for flag in FLAGS} for i, name in enumerate(names)]


def text(choice, names):
    parts = []
    for _ in range(choice.randint(1, 6)):
        name = choice.choice(names)
        parts += [choice.choice(BETWEEN), choice.choice([name, name, name, name.upper(), name.lower()])]
    return "".join(parts + [choice.choice(BETWEEN)])


def encoded(tokenizer, given, literal):
    tokenizer.encode_special_tokens = literal
    try:
        return tokenizer.encode(given, add_special_tokens=False).ids
    except BaseException:  # a panic of Rust's is no Exception: two tokens that both take the space between them
        return None


def case(path, choice, texts):
    file = json.loads(path.read_text())
    plain = Tokenizer.from_file(str(path))
    added = []
    for token in tokens(choice, 0):  # the crate numbers new ones itself, one behind the other
        known = plain.token_to_id(token["content"])
        added.append(token | {"id": plain.get_vocab_size() + sum(t["id"] >= plain.get_vocab_size() for t in added) if known is None else known})
    # Where nothing is left of a token, the crate finds it between all letters, and cuts words there; here it is found nowhere.
    normal = plain.normalizer.normalize_str if plain.normalizer else str
    if any(token["normalized"] and not normal(token["content"]) for token in added):
        return None
    already = {token["content"] for token in file["added_tokens"]}
    added = [token for token in added if token["content"] not in already]
    file["added_tokens"] += added
    tokenizer = Tokenizer.from_str(json.dumps(file))
    if any(tokenizer.token_to_id(token["content"]) != token["id"] for token in added):
        return None  # a vocabulary with holes
    names = [token["content"] for token in file["added_tokens"]] or ["a"]
    given = [text(choice, names) for _ in range(texts)]
    results = [{"text": t, "ids": encoded(tokenizer, t, False), "literal": encoded(tokenizer, t, True)} for t in given]
    return {"tokenizer": path.stem, "added": added, "results": [each for each in results if None not in each.values()]}


def main():
    file, rounds, texts = sys.argv[1:] if len(sys.argv) > 1 else (FIXTURES / "tokenizer_parts" / "added.json", 2, 8)
    choice = random.Random(1)
    paths = sorted(path for path in (FIXTURES / "tokenizers").glob("*.json") if path.stem != "EXPECTED")
    cases = [case(path, choice, int(texts)) for path in paths for _ in range(int(rounds))]
    Path(file).write_text(a_case_a_line([each for each in cases if each is not None]))


if __name__ == "__main__":
    main()
