#!/usr/bin/env python3
"""Writes core/model/gguf_loaded_table.cpp: what llama.cpp's loaders ask of a file, architecture by architecture.

    LLAMA_CPP=path/to/llama.cpp python data/make_gguf_loaded.py > core/model/gguf_loaded_table.cpp

Read off src/models/*.cpp, load_arch_tensors and load_arch_hparams: which biases are loaded (a file with another one is refused, "wrong number
of tensors"), which are asked for, whether the heads of queries fill the hidden width and keys are as wide as queries, whether the way experts are
scored must be said, whether the head is a matrix of its own or the embedding's, whether frequencies stretched one by one are loaded, and where layers with windows lie in files without attention.sliding_window_pattern.
Source: llama.cpp as vendored by llama-cpp-python 0.3.36.
"""
import os
import pathlib
import re

SOURCE = pathlib.Path(os.environ["LLAMA_CPP"]) / "src"
FILES = sorted(pathlib.Path(__file__).resolve().parent.parent.glob("core/model/families/*.cpp"))
HEAD = """\
// Written by data/make_gguf_loaded.py from llama.cpp's src/models.
#include "core/model/gguf_loaded.h"

namespace assay {
namespace {

// clang-format off
constexpr GgufLoaded kLoaded[] = {
"""
TAIL = """\
};
// clang-format on

}  // namespace

std::span<const GgufLoaded> gguf_loaded_table() {
  return kLoaded;
}

}  // namespace assay
"""


def functions():
    """The loader's two functions of each class, its parent's where it has none."""
    bodies, parents = {}, dict(re.findall(r"struct (llama_model_\w+) : public (llama_model_\w+)", (SOURCE / "models/models.h").read_text()))
    for path in (SOURCE / "models").glob("*.cpp"):
        for name, function, body in re.findall(r"void (llama_model_\w+)::load_arch_(tensors|hparams)\(.*?\{\n(.*?)\n\}\n", path.read_text(), re.S):
            bodies[name, function] = body

    def of(name, function):
        while name and (name, function) not in bodies:
            name = parents.get(name)
        return bodies.get((name, function), "")
    return of


def row(architecture, tensors, hparams, names):
    biases = ["attn_q", "attn_k", "attn_v", "attn_qkv"] if "create_tensor_qkv" in tensors else []
    for tensor, rest in re.findall(r'tn\((LLM_TENSOR_\w+)\s*,\s*"bias"([^;]*);', tensors):
        name = names[tensor].replace("blk.%d.", "")
        if name not in biases and name + "!" not in biases:
            biases.append(name + ("" if "NOT_REQUIRED" in rest else "!"))
    fields = [f'.architecture = "{architecture}"', f'.biases = "{" ".join(biases)}"']
    qkv = re.search(r"create_tensor_qkv\(layer, \w+, n_embd, ([^,]+), ([^,]+), ([^,]+),", tensors)
    fused = re.search(r"LLM_TENSOR_ATTN_QKV,\s*\"weight\", i\), \{n_embd, n_embd \+ 2\*n_embd_gqa\}", tensors)
    if fused or (qkv and qkv[1] == "n_embd"):
        fields.append(".heads_fill_width = true")
    normed = re.search(r"LLM_TENSOR_ATTN_K_NORM, \"weight\", i\), \{n_embd\}, 0\)", tensors)
    if normed or (qkv and qkv[2] in ("n_embd", "n_embd_head_k * n_head")):
        fields.append(".keys_as_queries = true")
    period = re.search(r"load_swa_pattern\(ml, (\d+)(, (?:/\*\w+=\*/)?true)?\)", hparams)
    if period:
        fields.append(f".window_period = {period[1]}")
        fields += [".full_first = true"] * (period[2] is not None)
    if "hparams.set_swa_pattern(0);" in hparams:
        fields.append(".all_windowed = true")
    if "LLM_KV_EXPERT_GATING_FUNC" in hparams and "GATING_FUNC_TYPE_" not in hparams:
        fields.append(".asks_gating = true")
    # A default, whatever the file says, or windows unless it says there are none.
    if re.search(r"^    hparams\.n_swa\s*=\s*[1-9]", hparams, re.M) or "found_swa && hparams.n_swa == 0" in hparams:
        fields.append(".windowed_without_key = true")
    head = re.search(r'tn\(LLM_TENSOR_OUTPUT\s*,\s*"weight"[^;]*;', tensors)
    if not head:
        fields.append(".head_is_embedding = true")
    elif "NOT_REQUIRED" not in head[0] and "output == NULL" not in tensors and "!output" not in tensors:
        fields.append(".asks_head = true")
    if "LLM_TENSOR_ROPE_FREQS" in tensors:
        fields.append(".loads_rope_freqs = true")
    if "LLM_TENSOR_ROPE_FACTORS_LONG" in tensors:
        fields.append(".loads_rope_factors = true")
    return "    {" + ", ".join(fields) + "},"


def main():
    tables = (SOURCE / "llama-arch.cpp").read_text()
    names = dict(re.findall(r'\{\s*(LLM_TENSOR_\w+),\s*"([^"]+)"\s*\}', tables))
    architectures = {name: constant for constant, name in re.findall(r'\{\s*(LLM_ARCH_\w+),\s*"([^"]+)"\s*\}', tables)}
    classes = dict(re.findall(r"case (LLM_ARCH_\w+):\s*return new (llama_model_\w+)\(", (SOURCE / "llama-model.cpp").read_text()))
    written = {name for path in FILES for name in re.findall(r'\.architecture = "([^"]+)"', path.read_text())}
    of = functions()
    print(HEAD, end="")
    for name in sorted(written & set(architectures)):
        loader = classes[architectures[name]]
        print(row(name, of(loader, "tensors"), of(loader, "hparams"), names))
    print(TAIL, end="")


if __name__ == "__main__":
    main()
