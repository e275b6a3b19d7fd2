#!/usr/bin/env python3
"""Writes data/fixtures/mix/<model>.tsv: the type llama-quantize gives each tensor, for every file type without imatrix.

The peer is llama.cpp at commit 0c1e57098; llama-quantize --dry-run reads the headers of small made-up models:

    cmake -S llama.cpp -B build && cmake --build build --target llama-quantize
    python data/make_gguf_mix_fixtures.py build/bin/llama-quantize

A file's first line holds architecture, layers, next-token layers, experts, heads, heads_kv; the second names the
columns; each further one a tensor, in llama-quantize's order: name, dimensions, stored type, chosen types.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import gguf
import numpy as np

OUT = pathlib.Path(__file__).parent / "fixtures" / "mix"
FILES = ("F32 F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS MXFP4_MOE Q3_K_L "
         "Q3_K_M Q3_K_S Q2_K").split()


def ends(columns=256, output=True):
    yield "token_embd.weight", (columns, 4)
    yield "output_norm.weight", (columns,)
    if output:
        yield "output.weight", (columns, 4)


def attention(layer, columns=256, kv=2):
    for name, rows in (("attn_q", 4), ("attn_k", kv), ("attn_v", kv), ("attn_output", 4)):
        yield f"blk.{layer}.{name}.weight", (columns, rows)
    yield f"blk.{layer}.attn_norm.weight", (columns,)
    yield f"blk.{layer}.attn_v.bias", (columns,)


def dense(layer, columns=256, hidden=512):
    for name in ("ffn_gate", "ffn_up"):
        yield f"blk.{layer}.{name}.weight", (columns, 4)
    yield f"blk.{layer}.ffn_down.weight", (hidden, 4)


def experts(layer, count, columns=256):
    yield f"blk.{layer}.ffn_gate_inp.weight", (columns, count)
    for name in ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"):
        yield f"blk.{layer}.{name}.weight", (columns, 2, count)


def latent_attention(layer):
    for name, dimensions in (("attn_q_a", (256, 2)), ("attn_q_a_norm", (256,)), ("attn_q_b", (256, 2)),
                             ("attn_kv_a_mqa", (256, 2)), ("attn_k_b", (128, 2, 2)), ("attn_v_b", (512, 2, 2)),
                             ("attn_output", (256, 2))):
        yield f"blk.{layer}.{name}.weight", dimensions


def models():
    """Name, architecture, layers, experts, heads, heads_kv, further keys, tensors."""
    small = [*ends(), *(t for i in range(17) for t in (*attention(i), *dense(i)))]
    yield "llama", "llama", 17, 0, 8, 8, {}, small
    yield "llama-grouped", "llama", 17, 0, 8, 2, {}, small
    yield "llama-tied", "llama", 2, 0, 8, 2, {}, [*ends(output=False), *attention(0), *attention(1)]
    seventy = [*ends(), *(t for i in range(80) for t in [(f"blk.{i}.attn_v.weight", (256, 1)),
                                                          (f"blk.{i}.ffn_down.weight", (256, 1))])]
    yield "llama-70b", "llama", 80, 0, 64, 8, {}, seventy
    yield "llama-65b", "llama", 80, 0, 64, 64, {}, seventy[::8]
    yield "qwen2-72b", "qwen2", 80, 0, 64, 8, {}, seventy[::8]
    yield "mixtral", "llama", 9, 8, 8, 2, {"expert_used_count": 2}, [
        *ends(), *(t for i in range(9) for t in (*attention(i), *experts(i, 8)))]
    yield "qwen3moe", "qwen3moe", 9, 16, 8, 2, {"expert_used_count": 2, "expert_feed_forward_length": 256}, [
        *ends(), *(t for i in range(9) for t in (*attention(i), *experts(i, 16)))]
    mla = [*ends(), *latent_attention(0), *dense(0)]
    for i in range(1, 12):
        mla += [*latent_attention(i), *experts(i, 16), *dense(i)]
    mla += [("blk.11.nextn.eh_proj.weight", (512, 2)), ("blk.11.attn_kv_b.weight", (512, 2)),
            ("blk.10.attn_kv_b.weight", (512, 2))]
    yield "deepseek2", "deepseek2", 12, 16, 8, 1, {
        "expert_used_count": 2, "attention.q_lora_rank": 64, "attention.kv_lora_rank": 64, "nextn_predict_layers": 1,
        "expert_feed_forward_length": 256, "expert_shared_count": 1}, mla
    ragged = [*ends(columns=96)]
    for i, columns in enumerate((32, 64, 96, 100, 255, 257, 288, 384)):
        ragged += [*attention(i, columns), *dense(i, columns, columns)]
    yield "ragged", "llama", 8, 0, 8, 8, {}, ragged
    yield "falcon", "falcon", 32, 0, 8, 8, {"attention.layer_norm_epsilon": 1e-5}, [
        *ends(), *((f"blk.{i}.{name}.weight", (256, 2)) for i in range(32)
                   for name in ("attn_qkv", "attn_output", "ffn_down"))]
    kept = ("position_embd.weight token_types.weight blk.0.altup_proj.weight blk.0.laurel_l.weight v.blk.0.rel_pos.weight "
            "blk.0.ssm_conv1d.weight blk.0.shortconv.conv.weight blk.0.indexer.k_proj.weight blk.0.attn_q_norm.weight "
            "blk.0.time_mix_w1.weight blk.0.time_mix_decay_w2.weight blk.0.attn_rel_b.weight v.patch_embd.weight "
            "per_layer_model_proj.weight per_layer_token_embd.weight blk.0.ffn_gate_tid2eid.weight blk.0.attn_sinks "
            "blk.0.indexer.attn_k.weight blk.0.cls.weight blk.0.ffn_up.scale").split()
    yield "kept", "llama", 1, 0, 8, 8, {}, [*ends(), *((name, (256, 2)) for name in kept),
                                            ("blk.0.column.weight", (256, 1)), ("blk.0.stack.weight", (256, 1, 2))]


def write(path, arch, layers, heads, heads_kv, experts, extra, tensors):
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(64)
    writer.add_embedding_length(256)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(512)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads_kv)
    writer.add_layer_norm_rms_eps(1e-5)
    if experts:
        writer.add_expert_count(experts)
    for key, value in extra.items():
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        add(f"{arch}.{key}", value)
    for name, dimensions in tensors:
        kind = np.float32 if len(dimensions) == 1 else np.float16
        writer.add_tensor(name, np.zeros(dimensions[::-1], kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


LINE = re.compile(r"\[ *\d+/ *\d+\] +(\S+) +- \[[^]]*\], type = +(\w+), size = .*?(?:\((\w+)\))?$")


def chosen(quantize, path, file_type):
    """(tensor, type) in the order of llama-quantize."""
    done = subprocess.run([quantize, "--dry-run", path, file_type], capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode:
        raise SystemExit(f"{path} as {file_type}:\n{text[-2000:]}")
    return [(m[1], (m[3] or m[2]).upper()) for m in map(LINE.search, text.splitlines()) if m]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, arch, layers, experts, heads, heads_kv, extra, tensors in models():
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "model.gguf")
            write(path, arch, layers, heads, heads_kv, experts, extra, tensors)
            columns = [chosen(sys.argv[1], path, file_type) for file_type in FILES]
        shapes = dict(tensors)
        lines = [f"{arch}\t{layers}\t{extra.get('nextn_predict_layers', 0)}\t{experts}\t{heads}\t{heads_kv}",
                 "\t".join(["name", "dimensions", "stored", *FILES])]
        assert all(len(column) == len(tensors) for column in columns), name
        for row in zip(*columns):
            assert len({tensor for tensor, _ in row}) == 1
            shape = shapes[row[0][0]]
            lines.append("\t".join([row[0][0], "x".join(map(str, shape)), "F32" if len(shape) == 1 else "F16",
                                    *(kind for _, kind in row)]))
        (OUT / f"{name}.tsv").write_text("\n".join(lines) + "\n")


main()
