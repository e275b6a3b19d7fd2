#!/usr/bin/env python3
"""Which texts llama.cpp reads by grammars of every construct, and by random ones: data/fixtures/grammar/llama_cpp.json.

    python data/make_gbnf_fixtures.py LLAMA_CPP    # its source; a C++ compiler and nlohmann-json are needed

Grammars that llama.cpp refuses are there, too ("parsed": false).
"""
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).parent
OUT = DATA / "fixtures" / "grammar" / "llama_cpp.json"

WRITTEN = [
    ('root ::= "yes" | "no"', ["yes", "no", "", "yesno"]),
    ('root ::= ("a" | b)+ # c\nb ::=\n  "1" |\n  "2"\n', ["a", "a12", "3", "a\n"]),
    ('root ::= [a-cx]* [^a-c\\n]', ["d", "abcx!", "é", "ab", "\n"]),
    ('root ::= [a-] [-b] [\\]\\[]', ["-b]", "a-[", "bb]"]),
    ('root ::= . . .', ["abc", "é語😀", "ab"]),
    ('root ::= "\\x41\\u00e9\\U0001F600\\t\\r\\n\\\\\\"\\[\\]"', ['Aé😀\t\r\n\\"[]', "A"]),
    ('root ::= "a"{2} "b"{1,} "c"{0,2} "d"{0}', ["aab", "aabbbcc", "ab", "aabccc", "aabd"]),
    ('root ::= ("ab"{1,2} "c"?){2,3}', ["abab", "ababcab", "ab", "abcabc"]),
    ('root ::= "ab"* "c"', ["c", "ababc", "abbc"]),
    ('root ::= l\nl ::= "(" (l ("," l)*)? ")"', ["()", "((),())", "(,)"]),
    ('root ::= "" | "x"', ["", "x", "y"]),
    ('root ::= root "a" | "b"', []),
    ('root ::= a\na ::= b? a\nb ::= "x"', []),
    ('root ::= ("a"?)*', []),
    ('root ::= missing', []),
    ('root ::= "a', []),
    ('root ::= ("a"', []),
    ('root ::= *', []),
    ('root ::= "a"{}', []),
    ('root ::= "\\q"', []),
    ('root ::= a_b\na_b ::= "x"', []),
    ('other ::= "x"', []),
    ('root = "x"', []),
]


def expression(rng: random.Random, depth: int) -> str:
    leaves = ['"a"', '"b"', "[ab]", "[^a]", ".", '"é"', '"ab"', '""', "[a-z]", "r-1", "r2"]
    kind = rng.randrange(6) if depth else 0
    if kind == 0:
        return rng.choice(leaves)
    if kind == 1:
        return f"{expression(rng, depth - 1)} {expression(rng, depth - 1)}"
    if kind == 2:
        return f"({expression(rng, depth - 1)} | {expression(rng, depth - 1)})"
    times = rng.choice(["?", "*", "+", "{2}", "{1,3}", "{0,2}", "{2,}", "{ 1 , 2 }"])
    return f"({expression(rng, depth - 1)}){times}"


def cases() -> list[dict]:
    rng = random.Random(15)
    words = ["".join(w) for n in range(5) for w in itertools.product("abé", repeat=n)]
    out = [{"grammar": g, "texts": t} for g, t in WRITTEN]
    for _ in range(150):
        rules = [f"{name} ::= {expression(rng, 3 if name == 'root' else 2)}" for name in ("root", "r-1", "r2")]
        out.append({"grammar": "\n".join(rules), "texts": rng.sample(words, 12)})
    return out


def main() -> None:
    source = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/oracle"
        includes = [f"-I{source}/{part}" for part in ("include", "src", "ggml/include")]
        files = [DATA / "gbnf_oracle.cpp", source / "src/llama-grammar.cpp", source / "src/unicode.cpp", source / "src/unicode-data.cpp"]
        subprocess.run(["c++", "-std=c++17", "-O1", *includes, *map(str, files), "-no-pie", "-Wl,-z,lazy,--unresolved-symbols=ignore-all", "-o", program], check=True)
        done = json.loads(subprocess.run([program], input=json.dumps(cases()), capture_output=True, text=True, check=True).stdout)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"cases": done}, ensure_ascii=False, separators=(",", ":")) + "\n")
    read = sum(verdict for case in done for _, verdict in case["texts"])
    print(len(done), "grammars,", sum(case["parsed"] for case in done), "parsed;", read, "texts read")


if __name__ == "__main__":
    main()
