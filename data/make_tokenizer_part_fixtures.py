"""Writes data/fixtures/tokenizer_parts: components of tokenizer.json one by one, every option of them, and what the tokenizers
crate (Oniguruma), tiktoken (Rust's regular expressions) make of texts with them.

    python data/make_tokenizer_part_fixtures.py
"""

import json
from pathlib import Path

import tiktoken
from json_cases import a_case_a_line
from tiktoken_ext import openai_public
from tokenizers import Tokenizer

FOLDER = Path(__file__).parent / "fixtures" / "tokenizer_parts"
# Both sides of the ranges that rules name.
EDGES = "".join(chr(c) for c in (
    0x01, 0x08, 0x0B, 0x0E, 0x1F, 0x21, 0x2F, 0x3A, 0x40, 0x5B, 0x60, 0x7B, 0x7E, 0x7F, 0x80, 0x8E, 0x8F, 0x90, 0x9E, 0x9F,
    0xA0, 0xA1, 0xAD, 0x1680, 0x180E, 0x200A, 0x200B, 0x200F, 0x2010, 0x2027, 0x2028, 0x2029, 0x202A, 0x202F, 0x205F, 0x2580,
    0x2581, 0x2582, 0x3000, 0xFEFE, 0xFEFF, 0xFF00, 0xFFFC, 0xFFFD, 0xE000))
SPACED = "".join(chr(c) + "|" for c in (0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x1F, 0x20, 0x85, 0xA0, 0x2000, 0x3000))
TEXTS = ["", " ", "  ", "abc", " abc", "abc ", "  a  b  ", "hello, world!! (yes)", "it's 12 345 o'clock", "_a__b_", "a▁b ▁c",
         "Ünïcödé ÀÉ é e\u0301", "日本語 テキスト、かなABC", "привет, мир", "a\tb\r\nc\n", "x-y--z...", "aXbXXc", "ⅣⅨ ²½ ٣٤",
         "ＡＢＣ ﬁ ㌔", "ẞß İı ΑΣ ΑΣ.", "한국어 각", "e\u0327\u0301 q\u0307\u0323", "\u0378\u0530 \U0001F130\U0001F600", "中a\u3400b\uF900",
         EDGES, SPACED]


def normalizers():
    for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Nmt", "StripAccents", "ByteLevel"):
        yield {"type": kind}
    for left in (True, False):
        for right in (True, False):
            yield {"type": "Strip", "strip_left": left, "strip_right": right}
    for prefix in ("", ">", "▁▁"):
        yield {"type": "Prepend", "prepend": prefix}
    for pattern in ({"String": " "}, {"String": "X"}, {"String": "."}, {"Regex": r"\s+"}, {"Regex": r"[a-c]"}, {"Regex": "b*"}, {"Regex": "$"}, {"Regex": "^"}):
        for content in ("", "_", "▁▁"):
            yield {"type": "Replace", "pattern": pattern, "content": content}
    base = {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
    yield base
    for key in ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"):
        yield base | {key: True}
    yield base | {"strip_accents": None}
    yield base | {"strip_accents": None, "lowercase": True}
    yield base | {"clean_text": True, "handle_chinese_chars": True, "lowercase": True}
    yield {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "X"}, {"type": "Lowercase"}, {"type": "NFD"}]}
    yield {"type": "Sequence", "normalizers": []}


BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def pre_tokenizers():
    for kind in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts"):
        yield {"type": kind}
    for behavior in BEHAVIORS:
        yield {"type": "Punctuation", "behavior": behavior}
        for pattern in ({"String": "X"}, {"String": " "}, {"Regex": r"\s+"}, {"Regex": r"[a-c]+"}, {"Regex": "b*"}):
            for invert in (True, False):
                yield {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}
    for each in (True, False):
        yield {"type": "Digits", "individual_digits": each}
        for regex in (True, False):
            yield {"type": "ByteLevel", "add_prefix_space": each, "trim_offsets": True, "use_regex": regex}
    for delimiter in "X ▁":
        yield {"type": "CharDelimiterSplit", "delimiter": delimiter}
    for length in (1, 2, 3, 7):
        yield {"type": "FixedLength", "length": length}
    for scheme in ("always", "first", "never"):
        for split in (True, False):
            for mark in "▁_":
                yield {"type": "Metaspace", "replacement": mark, "prepend_scheme": scheme, "split": split}
    metaspace = {"type": "Metaspace", "replacement": "▁", "split": True}
    for scheme in ("always", "first", "never"):  # after a cut
        yield {"type": "Sequence", "pretokenizers": [{"type": "Punctuation", "behavior": "Isolated"},
                                                     metaspace | {"prepend_scheme": scheme}]}
    yield {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "FixedLength", "length": 2},
                                                 {"type": "Digits", "individual_digits": True}]}


PIECES = [[], [""], ["a"], ["a", "b"], ["▁a", "b", "▁", "▁c"], ["Ġa", "Ã", "©", "x"], ["Ġa", "日", "x"], ["<0xE2>", "<0x96>", "<0x81>", "x"],
          ["<0x41>", "x", "<0xFF>", "<0x4>", "<0x4G>"], ["a</w>", "b", "c</w>"], ["##a", "##b", "c", "##d", " e"], ["it", "'", "s", "n't", "."],
          ["do not", "is", " .", " ?", " !", " ,", " ' ", " 'm", " 's", " 've", " 're", " n't", " do not"],
          ["h", "h", "e", "<pad>", "l", "l", "<pad>", "l", "o", "|", "|", "w"], ["  a", "a  ", " ", "  "], ["aa", "aba", "aaa"], ["a", "a"],
          ["xax", "x", "xx", "axx"], ["@@a", "@@b"], ["éa", "aé", "éé"]]


def decoders():
    yield {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    for kind in ("ByteFallback", "Fuse"):
        yield {"type": kind}
    for scheme in ("always", "first", "never"):
        for mark in "▁_":
            yield {"type": "Metaspace", "replacement": mark, "prepend_scheme": scheme, "split": True}
    for content in ("a", " ", "é"):
        for start in (0, 1, 2):
            for stop in (0, 1, 2):
                strip = {"type": "Strip", "content": content, "start": start, "stop": stop}
                yield strip
                yield {"type": "Sequence", "decoders": [{"type": "Fuse"}, strip]}
    for pattern in ({"String": "a"}, {"String": "aa"}, {"Regex": "[ab]+"}):
        for content in ("", "_", "aa"):
            replace = {"type": "Replace", "pattern": pattern, "content": content}
            yield replace
            yield {"type": "Sequence", "decoders": [{"type": "Fuse"}, replace]}
    for cleanup in (True, False):
        yield {"type": "WordPiece", "prefix": "##", "cleanup": cleanup}
        yield {"type": "WordPiece", "prefix": "@@", "cleanup": cleanup}
        yield {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": cleanup}
    for suffix in ("</w>", "a"):
        yield {"type": "BPEDecoder", "suffix": suffix}
    yield {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
                                            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}


def empty(**parts):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "pre_tokenizer": None,
            "post_processor": None, "decoder": None, "model": {"type": "WordLevel", "vocab": {"x": 0}, "unk_token": "x"}} | parts


def load(**parts):
    return Tokenizer.from_str(json.dumps(empty(**parts)))


def decoded(decoder, pieces):
    """None where the crate panics: it strips an empty piece."""
    try:
        return decoder.decode(pieces)
    except BaseException:  # a panic of Rust's is no Exception
        return None


def parts():
    return {
        "texts": TEXTS, "pieces": PIECES,
        "normalizers": [{"config": c, "made": [load(normalizer=c).normalizer.normalize_str(t) for t in TEXTS]} for c in normalizers()],
        "pre_tokenizers": [{"config": c, "made": [[w for w, _ in load(pre_tokenizer=c).pre_tokenizer.pre_tokenize_str(t)]
                                                  for t in TEXTS]} for c in pre_tokenizers()],
        "decoders": [{"config": c, "made": [decoded(load(decoder=c).decoder, p) for p in PIECES]} for c in decoders()]}


# ------------------------------------------------------------------------------------------------ whole tokenizers

LETTERS = {c: i for i, c in enumerate(["<unk>", "<s>", "</s>", " ", "a", "b", "c", "d", "é", "日"])}


def vocabulary(*more):
    return LETTERS | {piece: len(LETTERS) + i for i, piece in enumerate(more)}


def bpe(merges, more=(), **options):
    made = [left + right for left, right in merges]
    return {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": vocabulary(*more, *dict.fromkeys(made)), "merges": [list(m) for m in merges]} | options


MODEL_TEXTS = ["", "a", "aaaaa", "abcd", "abcabc", "dcba", "x", "xx", "axxb", "xaxx", "éx日", "xé", "ab ab", "a b", "abab" * 40, "cab" * 11,
               "☃", "a☃b", "☃☃", "x☃", "ÿa", "aabb", "bbaab", "日本", "日本c", "éé"]


def bpes():
    some = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "a"), ("ab", "ab"), ("c", "d")]
    yield "bpe", bpe(some)
    yield "bpe_reversed", bpe([("c", "d"), ("b", "c"), ("a", "b"), ("a", "bc")], ["abc"])
    yield "bpe_string_merges", bpe(some) | {"merges": [" ".join(m) for m in some]}
    yield "bpe_repeated_merge", bpe([("a", "b"), ("b", "c"), ("a", "b")])
    for fuse in (True, False):
        yield f"bpe_fuse_{fuse}", bpe(some, fuse_unk=fuse)
        yield f"bpe_bytes_{fuse}", bpe(some, [f"<0x{b:02X}>" for b in "☃é".encode()], fuse_unk=fuse, byte_fallback=True)
        yield f"bpe_no_unk_{fuse}", bpe(some, fuse_unk=fuse, unk_token=None)
        yield f"bpe_ignore_{fuse}", bpe(some, ["dcba", "aaaaa"], ignore_merges=fuse)
    prefixed = [("a", "##b"), ("##a", "##b"), ("##b", "##c"), ("ab", "##c")]
    marked = ["##a", "##b", "##c", "##d", "ab", "##ab", "##bc", "abc"]
    yield "bpe_prefix", bpe(prefixed, continuing_subword_prefix="##") | {"vocab": vocabulary(*marked)}
    ended = [("a", "b</w>"), ("a", "b"), ("ab", "c</w>"), ("b", "b</w>")]
    yield "bpe_suffix", bpe(ended, ["a</w>", "b</w>", "c</w>", "é</w>"], end_of_word_suffix="</w>")
    both = ["a</w>", "##b</w>", "##a", "##b", "##c</w>", "ab</w>", "ab", "abc</w>", "##a</w>"]
    yield "bpe_both", bpe([("a", "##b</w>"), ("a", "##b"), ("ab", "##c</w>")], continuing_subword_prefix="##",
                          end_of_word_suffix="</w>") | {"vocab": vocabulary(*both)}


def others():
    def unigram(pieces, **options):
        return {"type": "Unigram", "unk_id": 0, "vocab": [[p, s] for p, s in pieces], "byte_fallback": False} | options
    # ab+c and a+bc weigh the same; aa is worth less than two of a.
    pieces = [("<unk>", 0.0), ("a", -1.0), ("b", -2.0), ("c", -2.0), ("ab", -1.5), ("bc", -2.5), ("aa", -3.0), ("abab", -3.25), (" ", -4.0),
              ("é", -2.5), ("cd", -1.0), ("日", -9.5)]
    yield "unigram", unigram(pieces)
    yield "unigram_bytes", unigram(pieces + [(f"<0x{b:02X}>", 0.0) for b in "☃x".encode()], byte_fallback=True)
    yield "unigram_last_unk", unigram([("a", -1.0), ("x", -14.0), ("b", -2.0), ("xx", -40.0), ("?", -3.0)], unk_id=4)
    words = ["ab", "##c", "abc", "@@c", "##ab", "##x", "日本", "##é", "b", "c", "##b"]
    for limit in (1, 2, 3, 4, 100):
        for prefix in ("##", "@@"):
            yield f"wordpiece_{limit}_{prefix}", {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": prefix,
                                                  "max_input_chars_per_word": limit, "vocab": vocabulary(*dict.fromkeys(words))}
    yield "wordlevel", {"type": "WordLevel", "unk_token": "<unk>", "vocab": vocabulary("ab", "abc")}


def added(content, id_, **flags):
    return {"id": id_, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False} | flags


ADDED_TEXTS = ["", "<m>", " <m> ", "a<m>b", "a <m> b", "a  <m>  b", "<m><m>", "<m> <m>", "<m>  <m> a", "_<m>", "<m>_", "é<m>日", "-<m>-", "<M>",
               "a\u00a0<m>\u3000b", "<m", "m>", "<m>1", "1<m>", "ⓐ<m>", "<m>\u0301", "<mm><m>x", "a \n<m>\t\n b", " <m>", "<m> ", "<<m>>",
               "\u200d<m>", "<m>.<m>"]


def with_added():
    letters = vocabulary("<", ">", "m")
    model = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": letters, "merges": []}
    size = len(letters)
    for flags in range(32):
        names = [n for i, n in enumerate(("lstrip", "rstrip", "single_word", "special", "normalized")) if flags >> i & 1]
        token = added("<m>", size, **dict.fromkeys(names, True))
        yield "added_" + ("_".join(names) or "plain"), dict(model=model, added_tokens=[token], normalizer={"type": "Lowercase"})
    yield "added_longest", dict(model=model, added_tokens=[added("<m", size), added("<mm>", size + 1), added("<m>", size + 2)])
    yield "added_takes_space", dict(model=model, added_tokens=[added("<m>", size, lstrip=True, rstrip=True), added(" ", size + 1)])
    yield "added_known", dict(model=model, added_tokens=[added("m", letters["m"], special=True)])


UNSEEN_TEXTS = ["aΩb", "ao\u0308b", "aÖb", "ö", "<m>", "<M>", "a<m>", "mmm", "MMM", "m mmm ammm", "MMMAB", "[m] a", "[M]", "_☃_", "a☃b", "☃"]


def unseen():
    """Added tokens are nothing to the model: where they are not found (the normalizer makes their text, they are words' parts, special
    ones are text) they are spelled as anything else."""
    letters = vocabulary("<", ">", "m", "[", "]", "_")
    size = len(letters)
    cut = {"type": "WhitespaceSplit"}
    tokens = [added("ö", 0), added("<m>", 0, special=True), added("mmm", 0, single_word=True), added("☃", 0, single_word=True),
              added("##ab", 0), added("[m]", 0, special=True)]
    models = {"bpe": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": letters, "merges": []},
              "wordpiece": {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                            "vocab": letters | {"##" + c: size + i for i, c in enumerate("abm")}},
              "wordlevel": {"type": "WordLevel", "unk_token": "<unk>", "vocab": letters},
              "unigram": {"type": "Unigram", "unk_id": 0, "vocab": [[piece, -float(i)] for i, piece in enumerate(letters)], "byte_fallback": False}}
    models["bpe_ignore"] = models["bpe"] | {"ignore_merges": True}
    for name, model in models.items():
        there = [token | {"id": len(model["vocab"]) + i} for i, token in enumerate(tokens)]
        for normalizer in ("NFC", "Lowercase"):
            yield f"unseen_{name}_{normalizer}", dict(model=model, added_tokens=there, normalizer={"type": normalizer},
                                                      pre_tokenizer=cut if name.startswith("word") else None)


def framed():
    words = dict(model={"type": "WordLevel", "unk_token": "<unk>", "vocab": vocabulary("ab")}, pre_tokenizer={"type": "WhitespaceSplit"})
    token = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}  # noqa: E731
    text = {"Sequence": {"id": "A", "type_id": 0}}
    special = {name: {"id": name, "ids": [LETTERS[name]], "tokens": [name]} for name in ("<s>", "</s>")}
    special["two"] = {"id": "two", "ids": [1, 2], "tokens": ["<s>", "</s>"]}
    template = lambda *single: {"type": "TemplateProcessing", "single": list(single), "pair": [text, {"Sequence": {"id": "B", "type_id": 1}}],  # noqa: E731
                                "special_tokens": special}
    bert = {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]}
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": True, "add_prefix_space": False}
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    specials = [added(name, LETTERS[name], special=True) for name in ("<s>", "</s>")]
    each = {"none": None, "begin": template(token("<s>"), text), "end": template(text, token("</s>")), "both": template(token("<s>"), text, token("</s>")),
            "two": template(token("two"), text, token("two")), "bare": template(text), "bert": bert, "roberta": roberta, "level": level,
            "sequence": {"type": "Sequence", "processors": [level, template(token("<s>"), text)]},
            "template_then_level": {"type": "Sequence", "processors": [template(text, token("</s>")), level]}}
    for name, processor in each.items():
        yield "frame_" + name, dict(post_processor=processor, added_tokens=specials, **words)


def literally(tokenizer, text):
    tokenizer.encode_special_tokens = True
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer.encode_special_tokens = False
    return ids


def results(tokenizer, texts):
    for text in texts:
        ids = tokenizer.encode(text).ids
        yield {"text": text, "ids": ids, "literal": literally(tokenizer, text), "plain": tokenizer.encode(text, add_special_tokens=False).ids,
               "decoded": tokenizer.decode(ids, skip_special_tokens=False), "skipped": tokenizer.decode(ids)}


def wholes():
    plain = {"type": "Fuse"}
    for name, model in [*bpes(), *others()]:
        cut = {"type": "WhitespaceSplit"} if model["type"] in ("WordPiece", "WordLevel") else None
        yield name, dict(model=model, decoder=plain, pre_tokenizer=cut), MODEL_TEXTS
    for name, given in with_added():
        yield name, dict(decoder=plain, **given), ADDED_TEXTS
    for name, given in unseen():
        yield name, dict(decoder=plain, **given), UNSEEN_TEXTS
    for name, given in framed():
        yield name, given, ["", "ab", "ab a", "<s> ab </s>", "zz"]


# --------------------------------------------------------------------------------------------- regular expressions

REGEX_TEXTS = ["abc", "a1b22c333", "aab  b\tc\n\nd", "foo.bar-baz_9", "ÀÉ日本 ⅣⅨ٣½ ⓐ🅰", "x]y^z-&&w", "{2}{a}{,3} a{2", "\u200ca\u200db \u180e\u0085\u1680",
               "AbCdEf", "aaaaaaa", "line1\nline2\r\nline3", "'s 'LL it's", "0x1F \v\f é", "Ωμέγα ЖЖ", "a⅓b①c²d½৴jⅣ ªº\u00a0$^`|+\u00ad\ue000\u0301", "apLLpb", "éééé"]
# What both dialects read, if not alike.
BOTH = [r"a", r"\s", r"\S+", r"\w+", r"\W", r"\d+", r"\D", r"[\s]+", r"[^\s]+", r"[\w]+", r"[^\w]", r"[\d\s]", r"[^\d]+", r"\p{L}+", r"\P{L}", r"\p{Lu}", r"\p{^Lu}",
        r"\pL+", r"[\p{Nd}]+", r"[^\p{L}\s]+", r"\p{Greek}+", r"\p{Han}", r"[\p{Han}a-c]+", r"a{2}", r"a{2,}", r"a{2,3}", r"(a|b)+", r"(?:a|b)+c?", r"(?i:ab)",
        r"(?i)ab", r"a.c", r"^.", r".$", r"(?s:.)+", r"b*", r"[a-c]+", r"[^a-c]", r"[-a]+", r"[a-]+", r"\]", r"[\]]", r"[\^a]", r"\.", r"\x41", r"\x{41}", r"[\x41-\x43]",
        r"\t|\n", r"a+?", r"a*?b", r"a++", r"[a-z&&[^b]]+", r"[a-z&&[b-y]]+", r"[a[1-3]]+", r"[^a[1-3]]+", r"[[:alpha:]]+", r"[[:digit:]]", r"[^[:space:]]+", r"\p{Alphabetic}+",
        r"\p{Uppercase}", r"(?=b)", r"(?<=a)b", r"(?!a).", r"(?<!a)b", r"(?>a+)", r"(?<n>a)", r"\bx", r"\S+\z", r"[\p{L}&&[^\p{Lu}]]+", r"[\w&&[^\d]]+", r"[^\S ]", r"[\W\d]+",
        r"(?i:[sdmt]|ll|ve|re)", r"\p{Letter}+", r"\p{White_Space}", r"[a\-z]", r"(a)(?:b)", r"a(?=b)", r"{", r"\{", r"a\{", r"é", r"[éÀ]", r"a|\é", r"[a\é]"]
POSIX = "alnum alpha ascii blank cntrl digit graph lower print punct space upper word xdigit".split()
ONIGURUMA = [r"\h+", r"\H+", r"[\h]+", r"a{,3}", r"a{2}+", r"a{1,2}+b", r"(?m:.)+", r"(?m:a.b)", r"\p{Number}+", r"\p{Punctuation}", r"\p{Alnum}+", r"\p{Space}", r"\p{Word}+", r"\p{Digit}",
             r"\p{XDigit}+", r"\p{ASCII}+", r"\p{Any}", r"\p{Symbol}", r"\p{Mark}", r"\p{Separator}", r"\p{Other}", r"\p{Upper}", r"\p{Lower}+", r"\p{Punct}", r"\p{Graph}+", r"\p{Print}+",
             r"\p{Cntrl}", r"\p{Blank}", r"\p{Alpha}+", r"[[:word:]]+", r"\u0041", r"a{", r"a{x}", r"a{2", r"[^\h]", r"\v", r"\p{Greek}", r"(?:a){2}+", r"\é{2}+",
             r"[ab]{2}+", r"\w{2}+", r"(?im:A.B)", r"(?-i:a)", r"(?:ab|c){1}+", r"[a-c&&b-d]", r"[^a-z&&b-d]", r"[]a]", r"^a|e$", 
             r"\P{Word}+", r"[\W]+", r"[\p{Word}]+", r"[^\W]+", r"\pL+", r"\PL", r"[\pL]+", r"[[:^alpha:]]+", r"[^[:punct:]]+", *(f"[[:{n}:]]+" for n in POSIX)]
RUST = [*(f"[[:{n}:]]+" for n in POSIX), r"[[:^alpha:]]+", r"[^[:punct:]]+", r"a{1,2}+a", r"(?:a|b){1,2}+b", r"\p{Nd}{1,3}+", r"\u{41}", r"\u0041", r"\U00000041", r"(?m:^l)", r"(?m)3$", r"(?P<n>a)", r"\p{Script=Greek}+", r"\p{Latin}+",
        r"\p{Cyrillic}", r"\w++\s", r"(?:\d\d){1}+"]


def cut_by_oniguruma(pattern):
    config = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": True}
    made = load(pre_tokenizer=config).pre_tokenizer
    return [[w for w, _ in made.pre_tokenize_str(t)] for t in REGEX_TEXTS]


def cut_by_rust(pattern):
    """With every part of the text a token of its own, tiktoken's tokens are the pattern's matches."""
    made = []
    for text in REGEX_TEXTS:
        data = text.encode()
        pieces = {bytes([b]) for b in range(256)} | {data[i:j] for i in range(len(data)) for j in range(i + 1, len(data) + 1)}
        ranks = {piece: i for i, piece in enumerate(sorted(pieces, key=lambda p: (len(p), p)))}
        encoding = tiktoken.Encoding("x", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        made.append([encoding.decode_single_token_bytes(t).decode() for t in encoding.encode_ordinary(text)])
    return made


def regexes():
    for dialect, patterns, cut in (("oniguruma", BOTH + ONIGURUMA, cut_by_oniguruma), ("rust", BOTH + RUST, cut_by_rust)):
        for pattern in dict.fromkeys(patterns):
            try:
                yield {"dialect": dialect, "pattern": pattern, "made": cut(pattern)}
            except BaseException as error:  # a panic of Rust's is no Exception
                print(f"{dialect} does not read {pattern}: {str(error)[:60]}")


# ------------------------------------------------------------------------------------------- families of tiktoken's

def families():
    """What tiktoken's own constructors say of each encoding; the ranks themselves, which they would download, are left out."""
    bytes_ = {bytes([b]): b for b in range(256)}
    openai_public.load_tiktoken_bpe = lambda *_, **__: bytes_
    openai_public.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: bytes_
    for name, make in openai_public.ENCODING_CONSTRUCTORS.items():
        made = make()
        # An id of two names is told by the one that is not "reserved".
        special = sorted(made["special_tokens"].items(), key=lambda item: (item[1], item[0].startswith("<|reserved_")))
        special = [item for i, item in enumerate(special) if i == 0 or special[i - 1][1] != item[1]]
        few = [[n, i] for n, i in special if not n.startswith("<|reserved_") or i < 200030 or i > 201080]
        yield {"name": name, "special": few, "size": 1 + max(i for _, i in special), "count": len(special),
               "words": cut_by_rust(made["pat_str"])}


def write(name, content):
    (FOLDER / name).write_text(a_case_a_line(content))


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    write("parts.json", parts())
    write("regexes.json", {"texts": REGEX_TEXTS, "patterns": list(regexes())})
    write("tiktoken.json", list(families()))
    write("tokenizers.json", [{"name": name, "file": empty(**given), "results": list(results(load(**given), texts))}
                              for name, given, texts in wholes()])


if __name__ == "__main__":
    main()
