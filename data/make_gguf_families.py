"""What llama.cpp makes of small models of every family that is written as GGUF: sha256 of the files `assay convert` must write.

    LLAMA_CPP=path/to/llama.cpp python data/make_gguf_families.py [NAME...]

For each entry of FAMILIES it lets transformers complete a small config of odd sizes (data/fixtures/configs and the changes given
here), writes it to data/fixtures/gguf_families/NAME.json, fills the tensors that transformers would save by a rule that the test
knows too (weight_of), and notes the digests of what the converter writes as F32, BF16, F16 and Q8_0 in
data/fixtures/gguf_families/EXPECTED.tsv; with LLAMA_QUANTIZE, of what llama-quantize makes of the F32 file too. There is no
tokenizer. Layers for multi-token prediction are left out, as by --no-mtp. KEEP=folder keeps the files.
Source: llama.cpp as vendored by llama-cpp-python 0.3.36.
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.environ["LLAMA_CPP"], os.environ["LLAMA_CPP"] + "/gguf-py", str(HERE)]
sys.dont_write_bytecode = True

from conversion import ModelBase, ModelType, get_model_architecture, get_model_class  # noqa: E402
from conversion.base import gguf  # noqa: E402
from make_module_oracle import build, checkpoint_tensors  # noqa: E402

OUT = HERE / "fixtures/gguf_families"
CONVERTED = {"f32": "ALL_F32", "bf16": "MOSTLY_BF16", "f16": "MOSTLY_F16", "q8_0": "MOSTLY_Q8_0"}
QUANTIZE = os.environ.get("LLAMA_QUANTIZE")
QUANTIZED = ["q4_k_m", "q2_k"]
# name -> (config of data/fixtures/configs or a whole one, changes). None takes a key away, "+key" is written though the class does not know it.
FAMILIES = {
    "olmo2": ("olmo2", {"rope_theta": 500000.0}),
    "olmo3": ("olmo3", {"sliding_window": 9}),
    "olmo3-yarn": ("olmo3", {"sliding_window": 9, "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "rope_theta": 5e5,
                   "original_max_position_embeddings": 32, "beta_fast": 32.0, "beta_slow": 1.0, "attention_factor": 1.25}}),
    "olmo": ("olmo", {"attention_bias": False, "clip_qkv": 8.0}),
    "granite": ("granite", {"attention_multiplier": 0.25, "embedding_multiplier": 12.0, "residual_multiplier": 0.22,
                "logits_scaling": 8.0, "mlp_bias": False}),
    "smollm3": ("smollm3", {"rope_theta": 5e6}),
    "seed_oss": ("seed_oss", {}),
    "exaone4": ("exaone4", {"rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192, "rope_theta": 1e6}}),
    "exaone4-full": ("exaone4", {"+sliding_window": None, "layer_types": ["full_attention"] * 3}),
    "ernie4_5": ("ernie4_5", {}),
    "arcee": ("arcee", {}),
    "stablelm": ("stablelm", {"use_parallel_residual": False, "qk_layernorm": False}),
    "stablelm-parallel": ("stablelm", {"use_parallel_residual": True, "qk_layernorm": False}),
    "nemotron": ("nemotron", {}),
    "hunyuan_v1_dense": ("hunyuan_v1_dense", {}),
    "cohere": ("cohere", {"logit_scale": 0.0625}),
    "cohere2": ("cohere2", {"logit_scale": 0.25, "sliding_window": 9, "rotary_pct": 1.0}),
    "starcoder2": ("starcoder2", {}),
    "starcoder2-nobias": ("starcoder2-nobias", {}),
    "falcon-7b": ("falcon-7b-kind", {"num_kv_heads": 1}),
    "falcon-40b": ("falcon-40b-kind", {}),
    "phi3": ("phi3", {"original_max_position_embeddings": 64}),
    "phi3-longrope": ("phi3", {"hidden_size": 48, "original_max_position_embeddings": 32, "max_position_embeddings": 128, "sliding_window": 40,
                      "rope_scaling": {"rope_type": "longrope", "rope_theta": 1e4, "long_factor": [1.0, 1.5, 2.5, 4.0], "short_factor": [1.0, 1.0, 1.25, 1.5]}}),
    "glm4": ("glm4", {}),
    "gemma": ("gemma", {}),
    "gemma2": ("gemma2", {"sliding_window": 9}),
    "gemma3": ("gemma3_text", {"sliding_window": 9}),
    "phi": ("phi", {"qk_layernorm": False}),
    "gpt2": ("gpt2", {"n_ctx": 16}),
    "gpt_neox": ("gpt_neox", {"+rotary_pct": 0.25}),
    "mpt": ("mpt", {"attn_config": {"clip_qkv": 6.0, "alibi": True, "alibi_bias_max": 8}, "+architectures": ["MPTForCausalLM"]}),
    "bloom": ("bloom", {"hidden_size": 24, "n_head": 3}),
    "gpt_bigcode": ("gpt_bigcode", {}),
    "jais2": ("jais2", {}),
    "qwen2_moe": ("qwen2_moe", {"decoder_sparse_step": 1, "mlp_only_layers": []}),
    "dots1": ("dots1", {}),
    "minimax_m2": ("minimax_m2", {"+rotary_dim": 10}),
    "glm4_moe": ("glm4_moe", {}),
    "glm4_moe-normed": ("glm4_moe", {"use_qk_norm": True, "attention_bias": True, "num_nextn_predict_layers": 0}),
    "gpt_oss": ("gpt_oss", {"sliding_window": 9}),
    "llama4": ("llama4_text", {"rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.5,
               "original_max_position_embeddings": 8192, "rope_theta": 5e5}}),
    "olmoe": ("olmoe", {"attention_bias": False}),
    "phimoe": ("phimoe", {"+original_max_position_embeddings": 32, "+architectures": ["PhiMoEForCausalLM"]}),
    "dbrx": ("dbrx", {"d_model": 32, "n_heads": 4, "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 6.5},
             "ffn_config.hidden_size": 32}),
    "granitemoe": ("granitemoe", {}),
    "granitemoeshared": ("granitemoeshared", {}),
    "ernie4_5_moe": ("ernie4_5_moe", {"use_bias": False}),
    "mellum": ("mellum", {"mlp_layer_types": ["sparse"] * 6}),
    "afmoe": ("afmoe", {}),
    "lfm2": ("lfm2", {"conv_bias": False, "full_attn_idxs": None, "layer_types": ["conv", "full_attention", "conv", "full_attention"]}),
    "lfm2_moe": ("lfm2_moe", {"conv_bias": False, "tie_word_embeddings": True, "hidden_size": 12, "num_attention_heads": 2}),
    "nemotron_h": ("nemotron_h", {"mamba_num_heads": 8, "mamba_head_dim": 8, "n_groups": 4}),
    "cohere2_moe": ("cohere2_moe", {"attention_bias": False, "mlp_layer_types": ["dense", "sparse", "sparse"], "hidden_size": 12}),
    "mamba": ("mamba", {"expand": 2, "intermediate_size": None}),
    "falcon_mamba": ("falcon_mamba", {}),
    "mamba2": ("mamba2", {}),
    "qwen3_next": ("qwen3_next", {"mlp_only_layers": []}),
    "qwen3_5": ("qwen3_5", {"tie_word_embeddings": False, "text_config.tie_word_embeddings": False}),
    "qwen3_5_moe": ("qwen3_5_moe", {}),
    "jamba": ("jamba", {}),
    "qwen3_vl": ("qwen3_vl", {"text_config.rope_scaling": {"rope_type": "default", "mrope_section": [4, 3, 3], "rope_theta": 5e5}}),
    "qwen3_vl_moe": ("qwen3_vl_moe", {"text_config.mlp_only_layers": [], "tie_word_embeddings": False,
                     "text_config.tie_word_embeddings": False}),
    "qwen2_5_vl": ("qwen2_5_vl", {}),
}


def complete(name):
    base, changes = FAMILIES[name]
    document = dict(base) if isinstance(base, dict) else json.loads((HERE / f"fixtures/configs/{base}.json").read_text())
    for key, value in changes.items():
        if key[0] != "+":
            *path, last = key.split(".")
            inner = document[path[0]] if path else document
            inner[last] = value
    document = {key: value for key, value in document.items() if value is not None}
    model = build(document)
    said = model.config.to_diff_dict()
    said |= {"architectures": document["architectures"], "model_type": document["model_type"]}
    said.pop("transformers_version", None)
    for key in [key for key, value in changes.items() if value is None]:
        said.pop(key, None)
    said |= {key[1:]: value for key, value in changes.items() if key[0] == "+"}
    return said, checkpoint_tensors(model)


def weight_of(name, count):
    """Multiples of 1/256 between -1/2 and 1/2, by a hash of name and place.

    What is exponentiated has but four values, of which torch's exp is the nearest float: of others it may be the next."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    with numpy.errstate(over="ignore"):
        x = numpy.uint64(seed) + numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        x ^= x >> numpy.uint64(33)
        x *= numpy.uint64(0xFF51AFD7ED558CCD)
        x ^= x >> numpy.uint64(33)
    if name.endswith("A_log"):
        return ((x >> numpy.uint64(62)).astype(numpy.float32) - 2) / 4
    return ((x >> numpy.uint64(56)).astype(numpy.float32) - 128) / 256


def convert(folder, out, file_type, vocabulary, more):
    hparams = ModelBase.load_hparams(folder, False) | more
    model_class = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
    instance = model_class(folder, gguf.LlamaFileType[file_type], out, small_first_shard=False, hparams=hparams)

    def no_vocabulary():
        instance._set_vocab_none()
        instance.gguf_writer.add_vocab_size(vocabulary)
    instance.set_vocab = no_vocabulary
    instance.write()


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def expected(name, scratch):
    said, tensors = complete(name)
    (OUT / f"{name}.json").write_text(json.dumps(said, indent=1, sort_keys=True) + "\n")
    folder = scratch / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text((OUT / f"{name}.json").read_text())
    made = {tensor: torch.from_numpy(weight_of(tensor, shape.numel())).reshape(shape).bfloat16()
            for tensor, shape in ((tensor, value.shape) for tensor, value in tensors.items())}
    save_file(made, folder / "model.safetensors", {"format": "pt"})
    vocabulary = (said.get("text_config") or said)["vocab_size"]
    tokens = {"model": {"vocab": {str(i): i for i in range(vocabulary)}}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokens))  # Gemma 3's converter counts them
    more = {key[1:]: value for key, value in FAMILIES[name][1].items() if key[0] == "+"}
    lines = []
    for file_type, constant in CONVERTED.items():
        convert(folder, scratch / f"{name}.{file_type}.gguf", constant, vocabulary, more)
        lines.append(f"{name}\t{file_type}\t{digest(scratch / f'{name}.{file_type}.gguf')}")
    for file_type in QUANTIZED if QUANTIZE else []:
        made = scratch / f"{name}.{file_type}.gguf"
        subprocess.run([QUANTIZE, scratch / f"{name}.f32.gguf", made, file_type], check=True, capture_output=True)
        lines.append(f"{name}\t{file_type}\t{digest(made)}")
    return lines


def main(names):
    OUT.mkdir(parents=True, exist_ok=True)
    ModelBase.no_mtp = True
    table = OUT / "EXPECTED.tsv"
    lines = table.read_text().splitlines()[1:] if table.exists() else []
    with tempfile.TemporaryDirectory() as scratch, torch.inference_mode():
        scratch = pathlib.Path(os.environ.get("KEEP", scratch))
        for name in names or FAMILIES:
            try:
                new = expected(name, scratch)
            except Exception as error:  # others are made all the same
                print(f"{name}: {error!r}", file=sys.stderr)
                if os.environ.get("STOP"):
                    raise
                continue
            lines = sorted([line for line in lines if line.split("\t")[0] != name] + new)
            table.write_text("# model\ttype\tsha256 of the GGUF\n" + "\n".join(lines) + "\n")
            print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
