"""What llama.cpp makes of our small models: sha256 of the files that `assay convert` must write.

    LLAMA_CPP=path/to/llama.cpp LLAMA_QUANTIZE=path/to/llama-quantize python data/make_gguf_export_fixtures.py

writes data/fixtures/gguf_export/: EXPECTED.tsv (model, type, sha256), biased/ with a Llama that has every bias and Llama 3's
rope scaling, packed/ with one that is stored as compressed-tensors packs it, and sentencepiece/ with a tokenizer.model and the
vocabulary-only GGUF that the converter makes of it. The models of data/models/ have no tokenizer, so theirs is none; tinylm's
pre-tokenizer is DeepSeek-V3's, which the converter knows by a hash of real vocabularies alone, so that it is told.
Source: llama.cpp as vendored by llama-cpp-python 0.3.36.
"""
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

LLAMA_CPP = pathlib.Path(os.environ["LLAMA_CPP"])
QUANTIZE = os.environ.get("LLAMA_QUANTIZE")
sys.dont_write_bytecode = True
sys.path[:0] = [str(LLAMA_CPP), str(LLAMA_CPP / "gguf-py")]

import sentencepiece  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from compressed_tensors.compressors import pack_to_int32  # noqa: E402
from conversion import ModelBase, ModelType, get_model_architecture, get_model_class  # noqa: E402
from conversion.base import TextModel, gguf  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE / "fixtures/gguf_export"
MODELS = ["llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3-moe", "deepseek-v2", "deepseek-v2-lite", "deepseek-v3",
          "kimi-k2"]
CONVERTED = {"f32": "ALL_F32", "f16": "MOSTLY_F16", "bf16": "MOSTLY_BF16", "q8_0": "MOSTLY_Q8_0"}
QUANTIZED = ["q4_k_m", "q5_k_s", "q6_k", "q4_0", "q5_1"]


def convert(folder, out, file_type, vocabulary, vocabulary_only=False):
    hparams = ModelBase.load_hparams(folder, False)
    model_class = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    instance = model_class(folder, gguf.LlamaFileType[file_type], out, small_first_shard=False)
    if vocabulary is not None:
        instance.set_vocab = lambda: vocabulary(instance)
    (instance.write_vocab if vocabulary_only else instance.write)()


def no_vocabulary(model):
    """Without tokens to count, llama.cpp's loader asks for the size, and the converter writes it for some families alone."""
    model._set_vocab_none()
    model.gguf_writer.add_vocab_size(model.hparams["vocab_size"])


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def folder_of(name):
    return HERE / "tinylm" if name == "tinylm" else OUT / name if name in ("biased", "packed") else HERE / f"models/{name}"


def small_llama(folder, changes):
    """The config and, in float32, the weights of a Llama of transformers, seeded."""
    torch.manual_seed(7)
    values = {"vocab_size": 32, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
              "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
              "bos_token_id": 0, "eos_token_id": 1, "rope_theta": 500.0} | changes
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**values))
    values |= {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(values, indent=1) + "\n")
    return values, {name: torch.randn_like(tensor) / 8 for name, tensor in model.state_dict().items()}


def biased_fixture():
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    _, tensors = small_llama(OUT / "biased", {"attention_bias": True, "mlp_bias": True, "rope_scaling": rope})
    save_file({name: tensor.bfloat16().contiguous() for name, tensor in tensors.items()}, OUT / "biased/model.safetensors",
              {"format": "pt"})


def packed_fixture():
    """INT4 in groups of 32, by compressed-tensors' own packing."""
    weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 32}
    config, tensors = small_llama(OUT / "packed", {"num_hidden_layers": 1})
    config["quantization_config"] = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
                                     "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}
    (OUT / "packed/config.json").write_text(json.dumps(config, indent=1) + "\n")
    stored = {}
    for name, tensor in tensors.items():
        if not name.endswith("_proj.weight"):
            stored[name] = tensor.bfloat16().contiguous()
            continue
        codes = torch.randint(-8, 8, tensor.shape, dtype=torch.int8)
        stored[name + "_packed"] = pack_to_int32(codes, 4)
        stored[name + "_scale"] = (torch.rand(tensor.shape[0], tensor.shape[1] // 32) / 64).bfloat16()
        stored[name + "_shape"] = torch.tensor(tensor.shape)
    save_file(stored, OUT / "packed/model.safetensors", {"format": "pt"})


def expected():
    lines = ["# model\ttype\tsha256 of the GGUF; \"again\": of the Q8_0 file, requantized"]
    TextModel.get_vocab_base_pre = lambda self, tokenizer: "deepseek-v3"
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for name in MODELS + ["biased", "packed", "tinylm"]:
            source = folder_of(name)
            vocabulary = None if name == "tinylm" else no_vocabulary
            for file_type, constant in CONVERTED.items():
                convert(source, scratch / f"{file_type}.gguf", constant, vocabulary)
                lines.append(f"{name}\t{file_type}\t{digest(scratch / f'{file_type}.gguf')}")
            if not QUANTIZE or name in ("biased", "packed") or name == "deepseek-v2-lite":  # llama.cpp knows "lite" by its 26 or 27 layers alone
                continue
            for file_type in QUANTIZED:
                made = scratch / "made.gguf"
                for origin, label in (("f32", file_type), ("q8_0", f"again-{file_type}")):
                    subprocess.run([QUANTIZE, "--allow-requantize", scratch / f"{origin}.gguf", made, file_type], check=True,
                                   capture_output=True)
                    lines.append(f"{name}\t{label}\t{digest(made)}")
    (OUT / "EXPECTED.tsv").write_text("\n".join(lines) + "\n")


def sentencepiece_fixture():
    random.seed(3)
    words = ["".join(random.choice("abcdefghij") for _ in range(random.randint(2, 7))) for _ in range(400)]
    folder = OUT / "sentencepiece"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        here = os.getcwd()
        os.chdir(scratch)  # the model keeps the names of its input
        pathlib.Path("corpus.txt").write_text("\n".join(" ".join(random.choice(words) for _ in range(12)) for _ in range(400)))
        sentencepiece.SentencePieceTrainer.train(input="corpus.txt", model_prefix="tokenizer", vocab_size=300, normalization_rule_name="identity",
                                                 model_type="bpe", byte_fallback=True,
                                                 character_coverage=1.0, minloglevel=2)
        os.chdir(here)
        (folder / "tokenizer.model").write_bytes((pathlib.Path(scratch) / "tokenizer.model").read_bytes())
    special = {str(i): {"content": text, "special": True} for i, text in enumerate(["<unk>", "<s>", "</s>"])}
    special["301"] = {"content": "<|turn|>", "special": False}
    special["302"] = {"content": "a▁b", "special": False}
    settings = {"add_bos_token": True, "add_eos_token": False, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
                "tokenizer_class": "LlamaTokenizer", "add_prefix_space": False, "added_tokens_decoder": special,
                "chat_template": "{{ bos_token }}{% for m in messages %}{{ m['content'] }}{% endfor %}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=1, ensure_ascii=False) + "\n")
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 48,
              "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 304, "bos_token_id": 1, "eos_token_id": 2,
              "pad_token_id": 400}
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    convert(folder, OUT / "sentencepiece.gguf", "ALL_F32", None, vocabulary_only=True)


if __name__ == "__main__":
    OUT.mkdir(parents=True, exist_ok=True)
    with torch.inference_mode():
        sentencepiece_fixture()
        biased_fixture()
        packed_fixture()
        expected()
