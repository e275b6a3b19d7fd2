"""What llama.cpp's converter makes of the tokenizers of newer families: every tokenizer.* key, that `assay convert` must write.

    LLAMA_CPP=path/to/llama.cpp python data/make_gguf_tokenizers.py [NAME...]

For each entry of CASES it writes data/fixtures/gguf_tokenizers/NAME/: config.json (a small one of data/fixtures/gguf_families,
with another vocabulary), the tokenizer's files (a toy's pieces, and the added tokens that such models publish), and
EXPECTED.txt, a line for each key that the converter writes, in its order. The converter knows how text is cut by a hash of
real vocabularies alone, so that it is told: by the name of its own list for the model of that family, while tokenizer.json has
that model's expressions (as llama.cpp's src/llama-vocab.cpp quotes them). KEEP=folder keeps the files.
Source: llama.cpp as vendored by llama-cpp-python 0.3.36, transformers 5.19.
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.environ["LLAMA_CPP"], os.environ["LLAMA_CPP"] + "/gguf-py"]
sys.dont_write_bytecode = True

import numpy  # noqa: E402
from conversion import ModelBase, ModelType, get_model_architecture, get_model_class  # noqa: E402
from conversion.base import TextModel, gguf  # noqa: E402
from sentencepiece import sentencepiece_model_pb2  # noqa: E402

OUT = HERE / "fixtures/gguf_tokenizers"
KEEP = os.environ.get("KEEP")

WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
GPT4O = (UPPER + "*" + LOWER + "+" + CONTRACTIONS + "?|" + UPPER + "+" + LOWER + "*" + CONTRACTIONS
         + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
LLAMA3 = CONTRACTIONS + "|" + WORDS + r"|\p{N}{1,3}|" + REST
QWEN2 = CONTRACTIONS + "|" + WORDS + r"|\p{N}|" + REST


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def byte_level(by_gpt2=False):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": by_gpt2}


def added(first_id, texts):
    """Tokens from an id on; one that begins with "-" is none of those that its file calls special."""
    return [{"id": first_id + i, "content": text.removeprefix("-"), "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": not text.startswith("-")} for i, text in enumerate(texts)]


PIECES = list("abcdefgh") + ["Ġ", "Ċ", "ab", "abc", "Ġa", "Ġab"]
MERGES = [["a", "b"], ["ab", "c"], ["Ġ", "a"], ["Ġ", "ab"]]


def bpe(texts, cutters, ignore_merges=False, **more):
    """tokenizer.json of byte-level BPE, whose added tokens follow the pieces."""
    cut = {"type": "Sequence", "pretokenizers": cutters} if len(cutters) > 1 else cutters[0]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added(len(PIECES), texts), "normalizer": None,
            "pre_tokenizer": cut, "post_processor": byte_level(), "decoder": byte_level(),
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore_merges,
                      "vocab": {text: i for i, text in enumerate(PIECES)}, "merges": MERGES}} | more


def pieces_bpe(head, texts, begin, extra=()):
    """tokenizer.json of pieces with "▁" and bytes, BPE that falls back to them: Llama 2's and Gemma's. `begin` is put before a text;
    `extra` are among the added tokens, too."""
    vocabulary = list(head) + [f"<0x{i:02X}>" for i in (0, 10, 255)] + list("▁abcd") + ["▁a", "ab", "▁ab", "\n\n"]
    merges = [["▁", "a"], ["a", "b"], ["▁", "ab"], ["▁a", "b"], ["\n", "\n"]]
    vocabulary.insert(len(head) + 3, "\n")
    listed = [token for token in added(len(vocabulary), texts)]
    known = {text: i for i, text in enumerate(vocabulary)}
    inside = [dict(token, id=known[token["content"]]) for token in added(0, extra)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": sorted(inside + listed, key=lambda token: token["id"]),
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
            "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
            "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": begin, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                               "pair": [{"SpecialToken": {"id": begin, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                        {"SpecialToken": {"id": begin, "type_id": 1}}, {"Sequence": {"id": "B", "type_id": 1}}],
                               "special_tokens": {begin: {"id": begin, "ids": [known[begin]], "tokens": [begin]}}},
            "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
            "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": True, "byte_fallback": True, "ignore_merges": False, "vocab": known, "merges": merges}}


def sentencepiece(head, tail=(), prefix=True):
    """A SentencePiece model: `head` are control tokens but for the one named <unk>, then bytes, pieces, and `tail`, user-defined."""
    model = sentencepiece_model_pb2.ModelProto()
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece
    rows = [(text, 0.0, kinds.UNKNOWN if text == "<unk>" else kinds.CONTROL) for text in head]
    rows += [(f"<0x{i:02X}>", 0.0, kinds.BYTE) for i in range(256)] if prefix is not None else []
    rows += [(text, -float(i), kinds.NORMAL) for i, text in enumerate(["ab", "▁ab", "▁", "a", "b", "c"])]
    rows += [(text, 0.0, kinds.UNUSED if text.startswith("[UNUSED") else kinds.USER_DEFINED) for text in tail]
    for text, score, kind in rows:
        model.pieces.add(piece=text, score=score, type=kind)
    model.trainer_spec.model_type = 2
    model.trainer_spec.vocab_size = len(rows)
    model.trainer_spec.byte_fallback = prefix is not None
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = bool(prefix)
    return model.SerializeToString()


def decoder(texts):
    """added_tokens_decoder of tokenizer_config.json: {id: text}, special unless it begins with "-"."""
    return {str(i): {"content": text.removeprefix("-"), "special": not text.startswith("-"), "lstrip": False, "normalized": False,
                     "rstrip": False, "single_word": False} for i, text in texts.items()}


FAST = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
AT = len(PIECES)
GLM = ["<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
       "<|begin_of_image|>", "<|end_of_image|>", "<|code_prefix|>", "/nothink", "-<think>", "-</think>", "-<tool_call>", "-</tool_call>",
       "-<arg_key>"]
GLM_CONFIG = {"eos_token_id": [AT, AT + 7, AT + 9], "pad_token_id": AT}
GLM_SETTINGS = FAST | {"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "chat_template": TEMPLATE}

GEMMA_HEAD = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
GEMMA_ADDED = ["<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", "<|\"|>", "<|think|>", "<|channel>",
               "<channel|>", "<|turn>", "<turn|>", "<|image>", "<|audio>", "<|image|>", "<|audio|>", "<image|>", "<audio|>", "<|video|>",
               "-<unused7>"]
GEMMA_SETTINGS = {"tokenizer_class": "GemmaTokenizer", "bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>",
                  "mask_token": "<mask>", "padding_side": "left", "sot_token": "<|turn>", "eot_token": "<turn|>", "boi_token": "<|image>", "eoi_token": "<image|>",
                  "boa_token": "<|audio>", "eoa_token": "<audio|>", "image_token": "<|image|>", "audio_token": "<|audio|>", "think_token": "<|think|>",
                  "std_token": "<|tool>", "etd_token": "<tool|>", "stc_token": "<|tool_call>", "etc_token": "<tool_call|>",
                  "str_token": "<|tool_response>", "etr_token": "<tool_response|>", "soc_token": "<|channel>", "eoc_token": "<channel|>",
                  "escape_token": "<|\"|>", "extra_special_tokens": ["<|video|>"]}
LLAMA_HEAD = ["<unk>", "<s>", "</s>"]
PHI_ADDED = {0: "<unk>", 1: "<s>", 2: "-</s>", 265: "<|endoftext|>", 266: "<|assistant|>", 267: "<|placeholder1|>", 268: "<|system|>", 269: "<|end|>",
             270: "-<|user|>", 271: "-a▁b"}
PHI_SETTINGS = {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "<|endoftext|>", "unk_token": "<unk>", "pad_token": "<|endoftext|>",
                "add_bos_token": False, "add_eos_token": False, "added_tokens_decoder": decoder(PHI_ADDED), "chat_template": TEMPLATE}
INTERN_ADDED = {0: "<unk>", 1: "<s>", 2: "</s>", 265: "<|plugin|>", 266: "<|interpreter|>", 267: "<|action_end|>", 269: "<|im_end|>", 270: "<|im_start|>"}
# NAME: (config of gguf_families, its changes, name of the pre-tokenizer, files)
CASES = {
    "glm4_moe": ("glm4_moe", GLM_CONFIG, "glm4", {"tokenizer.json": bpe(GLM, [split(LLAMA3), byte_level()], True), "tokenizer_config.json": GLM_SETTINGS}),
    # A beginning of text in config.json is not overruled.
    "glm_moe_dsa": ("glm_moe_dsa", GLM_CONFIG | {"bos_token_id": 3}, "glm4", {"tokenizer.json": bpe(GLM, [split(LLAMA3), byte_level()], True),
                    "tokenizer_config.json": FAST | {"eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}}),
    "glm4": ("glm4", GLM_CONFIG, "glm4", {"tokenizer.json": bpe(GLM, [split(LLAMA3), byte_level()], True), "tokenizer_config.json": GLM_SETTINGS,
             "chat_template.jinja": "of the file"}),
    "glm": ("glm", GLM_CONFIG, "glm4", {"tokenizer.json": bpe(GLM, [split(LLAMA3), byte_level()], True),
            "tokenizer_config.json": FAST | {"pad_token": "<|endoftext|>"}}),
    "solar_open": ("solar_open", {}, "solar-open", {"tokenizer.json": bpe(["<unk>", "<|startoftext|>", "<|endoftext|>", "<|im_end|>", "<pad>"], [split(QWEN2), byte_level()]),
                   "tokenizer_config.json": FAST | {"pad_token": "<pad>", "chat_template": TEMPLATE}}),
    "dots3_note": ("dots3_note", {"eos_token_id": AT}, "qwen2", {"tokenizer.json": bpe(["<|endoftext|>", "<|userprompt|>", "<|endofuserprompt|>", "<|response|>",
                   "<|endofassistant|>"], [split(QWEN2), byte_level()]), "tokenizer_config.json": FAST | {"eos_token": "<|endoftext|>"}}),
    "muse_glimmer": ("muse_glimmer", {"text_config.eos_token_id": AT + 1}, "llama-bpe", {"tokenizer.json": bpe(["<|begin_of_text|>", "<|end_of_text|>", "<|eot|>", "<|eom|>"],
                     [split(LLAMA3), byte_level()], True), "tokenizer_config.json": FAST | {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}}),
    "laguna": ("laguna", {"bos_token_id": AT, "eos_token_id": [AT, AT + 4]}, "laguna", {
               "tokenizer.json": bpe(["<|bos|>", "<|pad|>", "-<assistant>", "-<think>", "-</assistant>"], [split(r"[^\n]+|[\n]+"), split(QWEN2), byte_level()]),
               "tokenizer_config.json": FAST | {"bos_token": "<|bos|>", "pad_token": "<|pad|>", "chat_template": "{% include 'chat_template.jinja' %}"},
               "chat_template.jinja": TEMPLATE}),
    "hunyuan_v1_dense": ("hunyuan_v1_dense", {"bos_token_id": AT, "eos_token_id": AT + 1, "eod_token_id": AT + 2, "pad_token_id": -1}, "hunyuan-dense", {
                         "tokenizer.json": bpe(["<|bos|>", "<|eos|>", "<|eod|>", "<|im_end|>"], [split(r"\p{N}{1,3}"), split("[一-龥\u3040-ゟ゠-ヿ]+"),
                                               split(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""),
                                               byte_level()]),
                         "tokenizer_config.json": FAST | {"bos_token": "<|bos|>", "eos_token": "<|eos|>", "pad_token": "<|im_end|>"},
                         "generation_config.json": {"eos_token_id": [AT + 3, AT + 1]}}),
    "minimax_text_01": ("minimax_text_01", {}, "gpt-4o", {"tokenizer.json": bpe(["<end_of_sentence>", "-<fim>"], [split(GPT4O), byte_level()]),
                        "tokenizer_config.json": FAST | {"eos_token": "<end_of_sentence>", "chat_template": "of tokenizer_config.json"}, "chat_template.jinja": TEMPLATE}),
    "gemma4": ("gemma4-dense", {"text_config.eos_token_id": 1, "eos_token_id": [1, 106]}, None, {
               "tokenizer.json": pieces_bpe(GEMMA_HEAD, GEMMA_ADDED, "<bos>", extra=GEMMA_HEAD), "tokenizer_config.json": GEMMA_SETTINGS, "chat_template.jinja": TEMPLATE}),
    "jamba": ("jamba", {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}, None, {
              "tokenizer.json": pieces_bpe(["<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|unk|>"], ["<|im_end|>", "-<tool>"], "<|startoftext|>",
                                           extra=["<|pad|>", "<|startoftext|>", "<|endoftext|>", "<|unk|>"]),
              "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>",
                                        "unk_token": "<|unk|>", "pad_token": "<|pad|>"}}),
    # No space before a text; a token of the class, one by its part, one of a list, and one that is special and has no part.
    "arcee": ("arcee", {"bos_token_id": 1, "eos_token_id": 2}, None, {
              "tokenizer.json": pieces_bpe(LLAMA_HEAD, ["<|call|>", "<|system|>", "<|end|>", "-<|think|>"], "<s>", extra=LLAMA_HEAD[:2]),
              "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "bos_token": "<s>", "eos_token": "<|end|>", "add_prefix_space": False,
                                        "additional_special_tokens": ["<|system|>"], "think_token": "<|think|>"}}),
    "phi3": ("phi3", {"eos_token_id": 265, "bos_token_id": 1, "pad_token_id": 265, "vocab_size": 274}, None, {"tokenizer.model": sentencepiece(LLAMA_HEAD),
             "tokenizer_config.json": PHI_SETTINGS, "added_tokens.json": {"<|other|>": 272, "<|end|>": 269, "<|far|>": 400},
             "tokenizer.json": {"added_tokens": [{"id": int(i), **token} for i, token in decoder(PHI_ADDED | {272: "-<|later|>"}).items()]}}),
    "phi4": ("phi3", {"eos_token_id": AT, "bos_token_id": AT, "pad_token_id": AT, "vocab_size": 32}, "dbrx", {
             "tokenizer.json": bpe(["<|dummy_0|>", "<|endoftext|>", "<|im_end|>"], [split(LLAMA3), byte_level()]),
             "tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|endoftext|>", "eos_token": "<|im_end|>", "pad_token": "<|dummy_0|>"}}),
    "internlm2": ("internlm2", {"eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 2, "vocab_size": 271}, None, {
                  "tokenizer.model": sentencepiece(LLAMA_HEAD, ["[UNUSED_TOKEN_0]", "[UNUSED_TOKEN_1]", "\x01", "\x02", "\x03", "\x04"], False),
                  "tokenizer_config.json": {"tokenizer_class": "InternLM2Tokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
                                            "pad_token": "</s>", "added_tokens_decoder": decoder(INTERN_ADDED), "chat_template": TEMPLATE}}),
    "internlm3": ("internlm3", {"eos_token_id": [2, 269], "bos_token_id": 1, "pad_token_id": 2, "vocab_size": 274}, None, {
                  "tokenizer.model": sentencepiece(LLAMA_HEAD),
                  "tokenizer_config.json": {"tokenizer_class": "InternLM3Tokenizer", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "add_prefix_space": False,
                                            "added_tokens_decoder": decoder(INTERN_ADDED), "chat_template": TEMPLATE},
                  "tokenizer.json": {"added_tokens": [{"id": int(i), **token} for i, token in decoder(INTERN_ADDED).items()]}}),
    "pangu_embedded": ("pangu_embedded", {"eos_token_id": 45892, "bos_token_id": 1, "vocab_size": 274}, None, {
                       "tokenizer.model": sentencepiece(LLAMA_HEAD),
                       "tokenizer_config.json": {"bos_token": "<s>", "eos_token": "[unused10]", "unk_token": "<unk>", "add_prefix_space": False, "add_bos_token": True,
                                                 "added_tokens_decoder": decoder(INTERN_ADDED), "chat_template": TEMPLATE}}),
    "plamo3": ("plamo3", {"vocab_size": 24}, None, {
               "tokenizer.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in
                                          [["<|plamo:unk|>", 0.0, "UNKNOWN", 1, 0, 0, 0], ["<|plamo:bos|>", 0.0, "CONTROL", 1, 0, 0, 0], ["<|plamo:eos|>", 0.0, "CONTROL", 1],
                                           ["<|plamo:pad|>", 0.0, "CONTROL"], ["<|plamo:op|>", 0.0, "NORMAL"], ["<0x0A>", -5.5, "BYTE", 1], ["ab", -1.25, "NORMAL", 1], ["字", -2], ["a", -3.1]]),
               "tokenizer_config.json": {"tokenizer_class": "Plamo3Tokenizer", "bos_token": "<|plamo:bos|>", "eos_token": "<|plamo:eos|>", "pad_token": "<|plamo:pad|>",
                                         "unk_token": "<|plamo:unk|>", "sep_token": None, "chat_template": TEMPLATE}}),
    "gemma3n": ("gemma3n", {"text_config.vocab_size": 280, "text_config.vocab_size_per_layer_input": 270, "text_config.eos_token_id": 1}, None, {
                "tokenizer.model": sentencepiece(GEMMA_HEAD), "tokenizer_config.json": GEMMA_SETTINGS | {
                    "added_tokens_decoder": decoder({0: "<pad>", 1: "<eos>", 2: "<bos>", 3: "<unk>", 4: "<mask>", 272: "<image_soft_token>", 273: "-<start_of_turn>"}), "add_bos_token": True}}),
    "nemotron_h": ("nemotron_h", {"vocab_size": 40, "bos_token_id": AT + 1, "eos_token_id": AT + 2}, "tekken", {
                   "tokenizer.json": bpe(["<unk>", "<s>", "</s>", "[INST]", "-<SPECIAL_20>"], [split(UPPER + "*" + LOWER + "+|" + UPPER + "+" + LOWER
                                         + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"), byte_level()], True),
                   "tokenizer_config.json": FAST | {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}}),
    "bert_like": ("seed_oss", {}, "qwen2", {"tokenizer.json": bpe(["[CLS]", "[SEP]", "[PAD]", "[MASK]"], [split(QWEN2), byte_level()],
                  normalizer={"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "StripAccents"}]},
                  post_processor={"type": "RobertaProcessing", "sep": ["[SEP]", AT + 1], "cls": ["[CLS]", AT], "trim_offsets": True, "add_prefix_space": False}),
                  "tokenizer_config.json": FAST | {"bos_token": "[CLS]", "eos_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]"},
                  "chat_template.jinja": TEMPLATE, "additional_chat_templates/tool use.jinja": "tools"}),
}


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


def config_of(family, changes):
    values = json.loads((HERE / f"fixtures/gguf_families/{family}.json").read_text())
    inside = values.get("text_config", values)
    inside["vocab_size"] = 64
    for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
        inside.pop(key, None), values.pop(key, None)
    for key, value in changes.items():
        target = values
        *parents, last = key.split(".")
        for parent in parents:
            target = target[parent]
        target[last] = value
    return values


def converted(folder, pre):
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(KEEP or scratch) / f"{folder.name}.gguf"
        if pre is not None:
            TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
        hparams = ModelBase.load_hparams(folder, False)
        model_class = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
        instance = model_class(folder, gguf.LlamaFileType.ALL_F32, out, small_first_shard=False)
        instance.set_vocab()
        for shard in instance.gguf_writer.kv_data:
            return [(key, value) for key, value in shard.items() if key.startswith("tokenizer.")]


KINDS = {gguf.GGUFValueType.UINT32: "u32", gguf.GGUFValueType.BOOL: "bool", gguf.GGUFValueType.STRING: "str", gguf.GGUFValueType.ARRAY: "list"}


def line(key, value):
    """"key type value", a list as JSON."""
    kind = KINDS[value.type]
    content = value.value
    if value.type == gguf.GGUFValueType.ARRAY:
        first = content[0]
        kind = "strs" if isinstance(first, (str, bytes)) else "f32s" if isinstance(first, float) else "i32s"
        content = [item.decode() if isinstance(item, bytes) else float(numpy.float32(item)) if kind == "f32s" else item if isinstance(item, str) else int(item) for item in content]
    return f"{key} {kind} {json.dumps(content, ensure_ascii=False, separators=(',', ':'))}"


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        family, changes, pre, files = CASES[name]
        folder = OUT / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        put(folder, "config.json", config_of(family, changes))
        for file, content in files.items():
            put(folder, file, content)
        put(folder, "EXPECTED.txt", "".join(line(*key) + "\n" for key in converted(folder, pre)))
        print(name)
