#!/usr/bin/env python3
"""GGUF models of real shapes with random weights, for speed alone.

    make_models.py qwen3-0.6b OUT.gguf      Qwen3 0.6B: 28 layers, 1,024 wide, tied head of 151,936 tokens
    make_models.py deepseek-lite OUT.gguf   DeepSeek-V2-Lite's layers (MLA, 64 experts of which 6), cut to ~1 B

BF16; peers' own tools make the quantized forms of it. Vocabularies are dummies: speed does not ask for text.
"""
import argparse

import gguf
import numpy as np


class Writer:
    def __init__(self, path, arch):
        self.out = gguf.GGUFWriter(path, arch)
        self.rng = np.random.default_rng(1)

    def norm(self, name, *shape):
        self.out.add_tensor(name, np.ones(shape, dtype=np.float32))

    def matrix(self, name, *shape):
        """Random BF16 of a trained matrix's size, its upper halves of float32 cut off."""
        count = int(np.prod(shape))
        tile = self.rng.standard_normal(1 << 20, dtype=np.float32) * 0.02
        values = np.resize(tile, count)
        half = (values.view(np.uint32) >> 16).astype(np.uint16).reshape(shape)
        self.out.add_tensor(name, half.view(np.uint8).reshape(*shape[:-1], shape[-1] * 2),
                            raw_dtype=gguf.GGMLQuantizationType.BF16)

    def close(self):
        self.out.write_header_to_file()
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()


def common(w, layers, hidden, ffn, vocab, heads, kv_heads):
    o = w.out
    o.add_block_count(layers)
    o.add_context_length(4096)
    o.add_embedding_length(hidden)
    o.add_feed_forward_length(ffn)
    o.add_head_count(heads)
    o.add_head_count_kv(kv_heads)
    o.add_layer_norm_rms_eps(1e-6)
    o.add_vocab_size(vocab)
    o.add_file_type(32)


def dummy_vocabulary(out, count):
    """Byte-level BPE without merges: a server that is given tokens writes them as text all the same."""
    shown = [chr(b) for b in range(33, 127)]
    tokens = shown + [f"<{i}>" for i in range(len(shown), count)]
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("qwen2")
    out.add_token_list(tokens)
    out.add_token_types([1] * count)
    out.add_token_merges(["a b"])
    out.add_eos_token_id(count - 1)


def qwen3(path):
    layers, hidden, ffn, vocab, heads, kv_heads, dim = 28, 1024, 3072, 151936, 16, 8, 128
    w = Writer(path, "qwen3")
    common(w, layers, hidden, ffn, vocab, heads, kv_heads)
    dummy_vocabulary(w.out, vocab)
    w.out.add_rope_freq_base(1e6)
    w.out.add_key_length(dim)
    w.out.add_value_length(dim)
    w.matrix("token_embd.weight", vocab, hidden)
    w.norm("output_norm.weight", hidden)
    for i in range(layers):
        p = f"blk.{i}."
        w.norm(p + "attn_norm.weight", hidden)
        w.norm(p + "ffn_norm.weight", hidden)
        w.norm(p + "attn_q_norm.weight", dim)
        w.norm(p + "attn_k_norm.weight", dim)
        w.matrix(p + "attn_q.weight", heads * dim, hidden)
        w.matrix(p + "attn_k.weight", kv_heads * dim, hidden)
        w.matrix(p + "attn_v.weight", kv_heads * dim, hidden)
        w.matrix(p + "attn_output.weight", hidden, heads * dim)
        w.matrix(p + "ffn_gate.weight", ffn, hidden)
        w.matrix(p + "ffn_up.weight", ffn, hidden)
        w.matrix(p + "ffn_down.weight", hidden, ffn)
    w.close()


def deepseek_lite(path):
    layers, hidden, ffn, vocab, heads = 3, 2048, 10944, 32000, 16
    experts, used, expert_ffn, kv_rank, nope, rope, v = 64, 6, 1408, 512, 128, 64, 128
    w = Writer(path, "deepseek2")
    w.out.add_tokenizer_model("none")
    common(w, layers, hidden, ffn, vocab, heads, 1)
    o = w.out
    o.add_rope_freq_base(10000.0)
    o.add_leading_dense_block_count(1)
    o.add_q_lora_rank(0)  # asked for, though there are none
    o.add_kv_lora_rank(kv_rank)
    o.add_key_length(kv_rank + rope)
    o.add_value_length(kv_rank)
    o.add_key_length_mla(nope + rope)
    o.add_value_length_mla(v)
    o.add_rope_dimension_count(rope)
    o.add_expert_count(experts)
    o.add_expert_used_count(used)
    o.add_expert_shared_count(2)
    o.add_expert_feed_forward_length(expert_ffn)
    o.add_expert_weights_scale(1.0)
    o.add_expert_gating_func(gguf.ExpertGatingFuncType.SOFTMAX)
    w.matrix("token_embd.weight", vocab, hidden)
    w.matrix("output.weight", vocab, hidden)
    w.norm("output_norm.weight", hidden)
    for i in range(layers):
        p = f"blk.{i}."
        w.norm(p + "attn_norm.weight", hidden)
        w.norm(p + "ffn_norm.weight", hidden)
        w.norm(p + "attn_kv_a_norm.weight", kv_rank)
        w.matrix(p + "attn_q.weight", heads * (nope + rope), hidden)
        w.matrix(p + "attn_kv_a_mqa.weight", kv_rank + rope, hidden)
        w.matrix(p + "attn_k_b.weight", heads, kv_rank, nope)
        w.matrix(p + "attn_v_b.weight", heads, v, kv_rank)
        w.matrix(p + "attn_output.weight", hidden, heads * v)
        if i == 0:
            w.matrix(p + "ffn_gate.weight", ffn, hidden)
            w.matrix(p + "ffn_up.weight", ffn, hidden)
            w.matrix(p + "ffn_down.weight", hidden, ffn)
            continue
        w.out.add_tensor(p + "ffn_gate_inp.weight", w.rng.standard_normal((experts, hidden), dtype=np.float32))
        w.matrix(p + "ffn_gate_exps.weight", experts, expert_ffn, hidden)
        w.matrix(p + "ffn_up_exps.weight", experts, expert_ffn, hidden)
        w.matrix(p + "ffn_down_exps.weight", experts, hidden, expert_ffn)
        w.matrix(p + "ffn_gate_shexp.weight", 2 * expert_ffn, hidden)
        w.matrix(p + "ffn_up_shexp.weight", 2 * expert_ffn, hidden)
        w.matrix(p + "ffn_down_shexp.weight", hidden, 2 * expert_ffn)
    w.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["qwen3-0.6b", "deepseek-lite"])
    parser.add_argument("out")
    args = parser.parse_args()
    {"qwen3-0.6b": qwen3, "deepseek-lite": deepseek_lite}[args.model](args.out)
