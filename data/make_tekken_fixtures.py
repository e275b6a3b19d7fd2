#!/usr/bin/env python3
"""Writes data/fixtures/tekken/<name>.json, small files as Mistral's tekken.json are, and texts.json, what mistral-common makes of texts.

    pip install mistral_common      (1.13.1)
    data/make_tekken_fixtures.py
"""
import base64
import collections
import json
import pathlib
import random

import regex
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

OUT = pathlib.Path(__file__).parent / "fixtures" / "tekken"
PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
OTHER_PATTERN = r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+"
PROSE = (
    "Weights are numbers that somebody else has made, and what is said of them should be held against them. The mill turns, the wheel of the "
    "mill turns the stone, and the stone makes flour of what was corn. Größe, Maße, Übung: straße und Fluß. Où est la bibliothèque? C'est là-bas. "
    "Числа и слова: весы не лгут, если их проверить. 重みは数であり、検査されるべきである。 def f(x):\n    return x ** 2 + 1\n\n"
)


def pieces(pattern, merges):
    words = collections.Counter(tuple(bytes([b]) for b in word.encode()) for word in regex.findall(pattern, PROSE))
    made = [bytes([b]) for b in range(256)]
    while len(made) < 256 + merges:
        pairs = collections.Counter()
        for word, count in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        first, second = max(pairs, key=lambda pair: (pairs[pair], pair))
        made.append(first + second)
        joined = collections.Counter()
        for word, count in words.items():
            out = []
            for part in word:
                if out and out[-1] == first and part == second:
                    out[-1] = first + second
                else:
                    out.append(part)
            joined[tuple(out)] += count
        words = joined
    return made


def text_of(piece):
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return None


def write(name, version, pattern, special, named, left_out):
    vocab = [{"rank": rank, "token_bytes": base64.b64encode(piece).decode(), "token_str": text_of(piece)}
             for rank, piece in enumerate(pieces(pattern, 180))]
    config = {"pattern": pattern, "num_vocab_tokens": len(vocab), "default_vocab_size": len(vocab) - left_out + special,
              "default_num_special_tokens": special, "version": version}
    document = {"config": config, "vocab": vocab}
    if named is not None:
        document["special_tokens"] = [{"rank": i, "token_str": text, "is_control": control} for i, (text, control) in enumerate(named)]
    (OUT / f"{name}.json").write_text(json.dumps(document))
    return Tekkenizer.from_file(OUT / f"{name}.json")


def main():
    OUT.mkdir(exist_ok=True)
    draw = random.Random("tekken")
    named = [("<unk>", True), ("<s>", True), ("</s>", True), ("[INST]", True), ("[/INST]", True), ("[THINK]", False)]
    files = {
        "tekken-early": write("tekken-early", "v3", PATTERN, 24, None, 20),
        "tekken-named": write("tekken-named", "v11", PATTERN, 9, named, 0),
        "tekken-words": write("tekken-words", "v13", OTHER_PATTERN, 8, named, 3),
    }
    words = regex.findall(PATTERN, PROSE)
    texts = ["", " ", "\n\n", "the", "  the  mill ", "HTTPServer2024\t\r\n", "[INST] is text here [/INST]", "\u0000\uffff👩‍🚀 e\u0301", PROSE]
    for _ in range(60):
        texts.append("".join(draw.choice([draw.choice(words), draw.choice(["  ", "é", "数", "_", "7", "\n", "A"])]) for _ in range(draw.randint(1, 12))))
    answers = [{"text": text, **{name: file.encode(text, bos=True, eos=False) for name, file in files.items()}} for text in texts]
    (OUT / "texts.json").write_text(json.dumps(answers, ensure_ascii=False, indent=0))
    print(len(answers), {name: file.n_words for name, file in files.items()})


main()
