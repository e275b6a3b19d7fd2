#!/usr/bin/env python3
"""A Llama of two layers, made by hand, that does one thing: it recalls what followed a token the last time.

    python data/make_recall_model.py        writes data/fixtures/caches/recall

Small trained models find nothing far back, so that no cache can be seen to lose it. This one does, wherever it stands: an
induction head (Olsson et al., arXiv 2209.11895).

  stream   [token | the token before | 1 | what follows], one-hot
  layer 0  looks one token back: queries and keys are constant, rotated so that they meet at a distance of 1
           (sum over pairs of cos((distance - 1) f), largest at 1), and copies that token
  layer 1  looks for places whose token before is the one read now, in pairs that hardly rotate (theta is large), and
           copies the token that stands there
"""
import json
import pathlib

import ml_dtypes
import numpy as np
import safetensors.numpy

OUT = pathlib.Path(__file__).parent / "fixtures/caches/recall"
VOCABULARY, HEAD, THETA, CONTEXT = 40, 96, 1e8, 512
PAIRS = HEAD // 2
HIDDEN = 3 * VOCABULARY + 1
TOKEN, BEFORE, ONE, AFTER = 0, VOCABULARY, 2 * VOCABULARY, 2 * VOCABULARY + 1
STILL = PAIRS // 2  # pairs from here on turn by 1e-4 a token at most


def main():
    frequency = THETA ** (-np.arange(PAIRS) / PAIRS)
    token = np.arange(VOCABULARY)
    place = np.where(token < VOCABULARY // 2, STILL + token, PAIRS + STILL + token - VOCABULARY // 2)

    def zeros(rows, columns=HIDDEN):
        return np.zeros((rows, columns))

    q0, k0, v0, o0 = zeros(HEAD), zeros(HEAD), zeros(HEAD), zeros(HIDDEN, HEAD)
    q0[:PAIRS, ONE], q0[PAIRS:, ONE] = 24 * np.cos(-frequency), 24 * np.sin(-frequency)
    k0[:PAIRS, ONE] = 24
    v0[token, TOKEN + token] = 1
    o0[BEFORE + token, token] = 1
    q1, k1, v1, o1 = zeros(HEAD), zeros(HEAD), zeros(HEAD), zeros(HIDDEN, HEAD)
    q1[place, TOKEN + token] = 8
    k1[place, BEFORE + token] = 8
    v1[token, TOKEN + token] = 1
    o1[AFTER + token, token] = 1
    embedding = zeros(VOCABULARY)
    embedding[token, TOKEN + token] = 1
    embedding[:, ONE] = 1
    head = zeros(VOCABULARY)
    head[token, AFTER + token] = 4
    tensors = {"model.embed_tokens.weight": embedding, "lm_head.weight": head, "model.norm.weight": np.ones(HIDDEN)}
    for layer, (q, k, v, o) in enumerate(((q0, k0, v0, o0), (q1, k1, v1, o1))):
        name = f"model.layers.{layer}."
        for part, weight in zip("qkvo", (q, k, v, o)):
            tensors[name + f"self_attn.{part}_proj.weight"] = weight
        for part, shape in (("gate", (4, HIDDEN)), ("up", (4, HIDDEN)), ("down", (HIDDEN, 4))):
            tensors[name + f"mlp.{part}_proj.weight"] = np.zeros(shape)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[name + norm + ".weight"] = np.ones(HIDDEN)
    OUT.mkdir(parents=True, exist_ok=True)
    safetensors.numpy.save_file(
        {name: weight.astype(ml_dtypes.bfloat16) for name, weight in tensors.items()}, OUT / "model.safetensors"
    )
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": HIDDEN,
        "intermediate_size": 4, "num_hidden_layers": 2, "num_attention_heads": 1, "num_key_value_heads": 1,
        "head_dim": HEAD, "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-6, "rope_theta": THETA,
        "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16", "attention_bias": False,
        "mlp_bias": False, "bos_token_id": None, "eos_token_id": None,
    }
    (OUT / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    words = np.random.default_rng(3).integers(0, 24, CONTEXT)  # the other tokens are for phrases to be planted
    (OUT / "text.ids").write_text(",".join(map(str, words)) + "\n")


if __name__ == "__main__":
    main()
