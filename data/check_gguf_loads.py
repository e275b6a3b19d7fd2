#!/usr/bin/env python3
"""Whether llama.cpp loads the GGUFs that `assay convert` writes, and computes with them what assay computes of the checkpoint.

    LIBLLAMA=libllama.so data/check_gguf_loads.py ASSAY [NAME...]

For each config of data/fixtures/gguf_families (or the NAMEs) it fills the tensors that `assay paramcount --tensors` lists by the rule of
make_gguf_families.py, converts them as F32, loads the file by llama.h's functions on the CPU with a cache in F32 and without flash
attention, and decodes 12 tokens. Where `assay run` computes the family, all logits of llama.cpp may differ from its f32 logits by no more
than 1e-3 of the largest one. One line a model: equal (with the largest difference), loaded (assay does not compute it), refused (by
llama.cpp, with what it says) or differs; the exit code is 1 where one differs or is refused and not excused by EXCUSED.
Any library that exports llama.h's functions will do: libllama.so, or the one in a wheel of xllamacpp.
GOLDEN=folder writes llama.cpp's logits there as NAME.tsv, a row a position: data/fixtures/gguf_logits has those of families that
transformers has no class for (xllamacpp 2026.10.11549).
"""
import concurrent.futures
import csv
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import torch
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).resolve().parent
CONFIGS = HERE / "fixtures/gguf_families"
TOKENS = [3, 17, 42, 8, 25, 31, 9, 50, 12, 1, 28, 40]
TOLERANCE = 1e-3
# What llama.cpp does not load, or computes otherwise, though the file is its own converter's byte for byte.
EXCUSED = {
    "phimoe": "llama.cpp computes Phi-3.5-MoE with RMS norms and a softmax over the chosen experts, and not with LayerNorm and sparsemixer: "
              "transformers' class so changed has its logits to 3e-7",
    "gemma3n": "llama.cpp divides by n - 1 in the standard deviation that cuts the first layers' gates, and GELU is a table of F16: with the former "
               "transformers' class differs by 4e-2 and no more, of MLPs 58 wide, where each gate that is cut counts",
    "dots3_note": "llama.cpp rotates halves of an indexer's heads, and transformers' class (as SGLang) pairs: where every key is chosen (index_topk 64) "
                  "logits differ by 5e-7",
    "gpt_oss-mxfp4": "llama.cpp rounds where YaRN's ramp begins and ends, as of \"truncate\": true, with which this model differs by 4e-7",
}
# As which of the references that disagree llama.cpp computes: `assay run --variant`.
VARIANTS = {"hy_v4": "sglang"}
# Not excused, for they are within TOLERANCE: GELU is a table of F16 in ggml (Gemma, StarCoder 2, GPT-2, Falcon, BLOOM, MPT: to 1e-3; with such a
# table in transformers' class Gemma 2 and 3 differ by 4e-5), and YaRN's ramp begins and ends at whole dimensions, which gpt-oss' does not
# ("truncate": false; with true they differ by 4e-7).


def words_of(name, count):
    """make_gguf_families.py's, as are the next two: it is not imported, for it needs the converter."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    with numpy.errstate(over="ignore"):
        x = numpy.uint64(seed) + numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        x ^= x >> numpy.uint64(33)
        x *= numpy.uint64(0xFF51AFD7ED558CCD)
        return x ^ x >> numpy.uint64(33)


def table_of(name, tokens, chosen, experts):
    first = (words_of(name, tokens) >> numpy.uint64(33)).astype(numpy.int64)
    return (first[:, None] + numpy.arange(chosen)) % experts


def weight_of(name, count):
    x = words_of(name, count)
    if name.endswith("A_log"):
        return ((x >> numpy.uint64(62)).astype(numpy.float32) - 2) / 4
    return ((x >> numpy.uint64(56)).astype(numpy.float32) - 128) / 256


def make_model(assay, name, folder):
    folder.mkdir()
    (folder / "config.json").write_text((CONFIGS / f"{name}.json").read_text())
    table = subprocess.run([assay, "paramcount", folder / "config.json", "--tensors", "--format", "csv"], check=True, capture_output=True,
                           text=True).stdout
    made, config = {}, json.loads((CONFIGS / f"{name}.json").read_text())
    for row in csv.DictReader(table.splitlines()):
        shape = [int(size) for size in filter(None, row["shape"].split("x"))]
        if row["name"].endswith("tid2eid"):
            made[row["name"]] = torch.from_numpy(table_of(row["name"], *shape, config["n_routed_experts"]))
            continue
        kept = row["storage"] == "own" or re.search(r"self_attn\.[kv]_(proj|norm)", row["name"])  # of Gemma 3n's layers that read another's cache
        if row["mtp"] == "yes" or not kept:
            continue
        made[row["name"]] = torch.from_numpy(weight_of(row["name"], int(numpy.prod(shape)))).reshape(shape).bfloat16()
    save_file(made, folder / "model.safetensors", {"format": "pt"})


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", ctypes.c_int32), ("token", ctypes.POINTER(ctypes.c_int32)), ("embd", ctypes.c_void_p),
                ("pos", ctypes.c_void_p), ("n_seq_id", ctypes.c_void_p), ("seq_id", ctypes.c_void_p), ("logits", ctypes.POINTER(ctypes.c_int8))]


class Parameters(ctypes.Structure):
    """llama_model_params and llama_context_params as so many words: only the first ones are set, and those behind keep their defaults."""
    _fields_ = [("words", ctypes.c_int32 * 128)]


# Places of llama_context_params, in words: sizes, threads, flash attention, and the cache's types behind two pointers.
N_CTX, N_BATCH, N_UBATCH, N_THREADS, FLASH, TYPE_K, TYPE_V = 0, 1, 2, 7, 13, 26, 27
F32, F16 = 0, 1


def llama_logits(path):
    """The logits of every position; an Error where the file does not load. Runs in a process of its own: llama.cpp may abort."""
    lib = ctypes.CDLL(os.environ["LIBLLAMA"])
    for function, result, arguments in [("llama_model_default_params", Parameters, []), ("llama_context_default_params", Parameters, []),
                                        ("llama_model_load_from_file", ctypes.c_void_p, [ctypes.c_char_p, Parameters]),
                                        ("llama_init_from_model", ctypes.c_void_p, [ctypes.c_void_p, Parameters]),
                                        ("llama_model_get_vocab", ctypes.c_void_p, [ctypes.c_void_p]),
                                        ("llama_vocab_n_tokens", ctypes.c_int32, [ctypes.c_void_p]),
                                        ("llama_decode", ctypes.c_int32, [ctypes.c_void_p, Batch]),
                                        ("llama_get_logits_ith", ctypes.POINTER(ctypes.c_float), [ctypes.c_void_p, ctypes.c_int32])]:
        getattr(lib, function).restype = result
        getattr(lib, function).argtypes = arguments
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(os.fsencode(path), lib.llama_model_default_params())
    if not model:
        raise RuntimeError("not loaded")
    parameters = lib.llama_context_default_params()
    words = parameters.words
    if (words[TYPE_K], words[TYPE_V]) != (F16, F16):
        raise RuntimeError("llama_context_params has another layout in this library")
    words[N_CTX] = words[N_BATCH] = words[N_UBATCH] = 64
    words[N_THREADS] = words[N_THREADS + 1] = 1
    words[FLASH], words[TYPE_K], words[TYPE_V] = 0, F32, F32
    context = lib.llama_init_from_model(model, parameters)
    if not context:
        raise RuntimeError("no context")
    count = len(TOKENS)
    batch = Batch(count, (ctypes.c_int32 * count)(*TOKENS), None, None, None, None, (ctypes.c_int8 * count)(*[1] * count))
    if lib.llama_decode(context, batch) != 0:
        raise RuntimeError("llama_decode failed")
    width = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model))
    return numpy.stack([numpy.ctypeslib.as_array(lib.llama_get_logits_ith(context, i), (width,)).copy() for i in range(count)])


def assay_logits(assay, folder, out):
    variant = ["--variant", VARIANTS[folder.name]] if folder.name in VARIANTS else []
    ran = subprocess.run([assay, "run", folder, "--tokens", ",".join(map(str, TOKENS)), "--logits", out, "--precision", "f32", *variant],
                         capture_output=True, text=True)
    return load_file(out)["logits"].float().numpy() if ran.returncode == 0 else (ran.stderr.strip().splitlines() or ["?"])[0]


def check(assay, name, scratch):
    folder, gguf = scratch / name, scratch / f"{name}.gguf"
    make_model(assay, name, folder)
    converted = subprocess.run([assay, "convert", folder, gguf, "--to", "gguf:f32", "--tokenizer-pre", "none"], capture_output=True, text=True)
    if converted.returncode != 0:
        return "unwritten", converted.stderr.strip().splitlines()[0]
    made = scratch / f"{name}.npy"
    loaded = subprocess.run([sys.executable, __file__, "--decode", gguf, made], capture_output=True, text=True)
    if loaded.returncode != 0:
        says = [line for line in loaded.stderr.splitlines() if "error" in line.lower() or "GGML_ASSERT" in line] or loaded.stderr.splitlines()
        return "refused", (says or [f"exit code {loaded.returncode}"])[0].strip()
    theirs = numpy.load(made)
    if "GOLDEN" in os.environ:
        rows = "\n".join("\t".join(f"{x:.9g}" for x in row) for row in theirs[::3])
        pathlib.Path(os.environ["GOLDEN"], name + ".tsv").write_text(f"# llama.cpp's logits of positions 0, 3, 6, 9\n{rows}\n")
    ours = assay_logits(assay, folder, scratch / f"{name}.safetensors")
    if isinstance(ours, str):
        return "loaded", ours
    largest = float(numpy.abs(ours).max())
    error = float(numpy.abs(ours - theirs[:, :ours.shape[1]]).max()) / largest if largest else float("inf")
    return ("equal" if error <= TOLERANCE else "differs"), f"{error:.1e} of the largest logit, {largest:.3g}"


def main(assay, names):
    names = names or sorted(path.stem for path in CONFIGS.glob("*.json"))
    bad = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = {name: pool.submit(check, pathlib.Path(assay).resolve(), name, pathlib.Path(scratch)) for name in names}
        for name, result in results.items():
            kind, text = result.result()
            excuse = EXCUSED.get(name, "")
            bad += kind in ("differs", "refused", "unwritten") and not excuse
            print(f"{name}\t{kind}\t{text}\t{excuse}", flush=True)
    print(f"{len(names)} models, {bad} not as they should be")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--decode":
        numpy.save(sys.argv[3], llama_logits(sys.argv[2]))
    else:
        main(sys.argv[1], sys.argv[2:])
