"""Writes data/fixtures/patterns/EXPECTED.json: texts cut into words by the `tokenizers` crate (Oniguruma), under the expressions
that GGUF files name in tokenizer.ggml.pre (llama.cpp, src/llama-vocab.cpp). Characters beyond ASCII are written as code points:
text that is normalized on its way turns U+1FD3 into U+0390, and a range that ends in it is none.

    python data/make_pattern_fixtures.py
"""

import json
from pathlib import Path

from tokenizers import Regex
from tokenizers.pre_tokenizers import Sequence, Split

OUT = Path(__file__).parent / "fixtures" / "patterns" / "EXPECTED.json"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
CJK = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
OLD_CJK = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
# By first and last, two hexadecimal digits after two: Latin, Greek, Cyrillic, Armenian, Georgian, Cherokee, …
CASED = """b5 c0-d6 d8-f6 f8-1ba 1bc-1bf 1c4-293 295-2af 370-373 376-377 37b-37d 37f 386 388-38a 38c 38e-3a1 3a3-3f5 3f7-481 48a-52f
531-556 10a0-10c5 13a0-13f5 13f8-13fd 1c90-1cba 1cbd-1cbf 1d00-1d2b 1d6b-1d77 1d79-1d9a 1e00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d
1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 1fb6-1fbc 1fbe 1fc2-1fc4 1fc6-1fcc 1fd0-1fd3 1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc
2102 2107 210a-2113 2115 2119-211d 2124 2126 2128 212a-212d 212f-2134 2139 213c-213f 2145-2149 214e 2183-2184 2c00-2c7b 2c7e-2ce4
2ceb-2cee 2cf2-2cf3 a640-a66d a680-a69b a722-a76f a771-a787 a78b-a78e ab70-abbf fb00-fb06 fb13-fb17 ff21-ff3a ff41-ff5a
10400-1044f 104b0-104d3 104d8-104fb 10c80-10cb2 10cc0-10cf2 118a0-118df 1e900-1e943""".split()
LETTERS = "A-Za-z" + "".join("-".join(chr(int(end, 16)) for end in part.split("-")) for part in CASED)
V3 = ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+")
PATTERNS = {
    "deepseek-llm": ["[\r\n]", r"\s?[" + LETTERS + "]+", "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
                     r"\s+$", OLD_CJK, r"\p{N}+"],
    "deepseek-coder": ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", OLD_CJK, r"\p{N}"],
    "deepseek-v3": [r"\p{N}{1,3}", CJK, V3 + r"[\r\n]*" + SPACES],
    "spark2_5": [r"\p{N}{1,3}", CJK, V3 + r"|[\r\n]|\s+(?!\S)|\s+", r"\p{N}"],
    "glm5": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES],
    "k2-horizon": [CONTRACTIONS + "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}|\\p{M}|\u200c|\u200d)+|\\p{N}{1,3}"
                   r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES],
    "bloom": [" ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+"],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*+(?!\p{N}))",
              "[\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f"
              "\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
              V3 + r"[\r\n]*" + SPACES],
}
TEXTS = [
    "Hello, world! It's 1234567 o'clock\n\n  x=3.14;  done \r\n",
    "\u039a\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u1fd3\u1fe3 \u1f71\u1f7d \u2126\u212a\u212b \u00b5\u03bc \u01bb\u0294",
    "\u041f\u0440\u0438\u0432\u0435\u0442 \u0540\u0561\u0575 \u10d0\u10d1 \u13a0\ua64a \U00010400\U0001e900",
    "\u6211\u60f3\u54031\u4e2a\u82f9\u679c\u3002\u300c\u4e5d\u6708\u300d\uff01\u3053\u3093\u306b\u3061\u306f\u30ab\u30bf\uff76\uff80",
    "\uf900\ufaff \u8c48 \ud55c\uad6d\uc5b4\u1100\u1161 \u0e41\u0e02 \u0e81\u0e82 \u1780\u17d2 \u1000\u1019 \u9fff\u4dbf",
    "\u201cquoted\u201d \u2018a\u2019 \uff08x\uff09 \u3000\u3001 \u2014\u2026 a\u0301e\u0301 \u0928\u092e\u0938\u094d\u0924\u0947\u0964",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645\u060c \u06f1\u06f2\u06f3 \U0001f600\U0001f468\u200d\U0001f469 \u00bd\u2460\n",
    "   \n \t\t tabs\n\n\n12 345 6789 a1b22c333   ",
]


def main():
    OUT.parent.mkdir(parents=True, exist_ok=True)
    cases = {name: [[word for word, _ in Sequence([Split(Regex(p), "isolated") for p in patterns]).pre_tokenize_str(text)]
                    for text in TEXTS] for name, patterns in PATTERNS.items()}
    OUT.write_text(json.dumps({"texts": TEXTS, "words": cases}, indent=0, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
