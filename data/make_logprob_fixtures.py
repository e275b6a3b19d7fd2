#!/usr/bin/env python3
"""Writes data/fixtures/logprobs: made-up log-probabilities of three texts as engines save them, and what NumPy says of them.

Side A lies there in every format, side B as SGLang writes it; expected.json has the figures of B against A, which
`assay compare logprobs` has to give, computed here by their definitions (docs/logprobs.md).
"""
import csv
import json
import pathlib
import struct

import numpy as np

OUT = pathlib.Path(__file__).parent / "fixtures" / "logprobs"
VOCABULARY, TEXTS, TOKENS, PROMPT, TOP = 23, 3, 14, 5, 4
rng = np.random.default_rng(11)


def log_softmax(x):
    return x - x.max(-1, keepdims=True) - np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True))


def likeliest(row):
    return [int(i) for i in np.argsort(-row)[:TOP]]


class Side:
    def __init__(self, logits):
        self.logprobs = log_softmax(logits)  # [texts, tokens, vocabulary]: of the token at this place

    def own(self, t, i):
        return float(self.logprobs[t, i, IDS[t, i]])

    def top(self, t, i):
        return [(v, float(self.logprobs[t, i, v])) for v in likeliest(self.logprobs[t, i])]

    def rank(self, t, i):
        return int((self.logprobs[t, i] > self.own(t, i)).sum()) + 1


IDS = rng.integers(0, VOCABULARY, (TEXTS, TOKENS))
LOGITS = rng.normal(size=(TEXTS, TOKENS, VOCABULARY)) * 2
for t in range(TEXTS):
    for i in range(0, TOKENS, 2):  # half of the tokens are likely ones
        LOGITS[t, i, IDS[t, i]] += 6
A = Side(LOGITS)
B = Side(LOGITS + rng.normal(size=LOGITS.shape) * np.where(rng.random((TEXTS, TOKENS, 1)) < 0.2, 0.8, 0.02))


def vllm(t):
    def candidates(i):
        chosen = {str(IDS[t, i]): {"logprob": A.own(t, i), "rank": A.rank(t, i), "decoded_token": f"<{IDS[t, i]}>"}}
        for rank, (v, p) in enumerate(A.top(t, i)):
            chosen.setdefault(str(v), {"logprob": p, "rank": rank + 1, "decoded_token": f"<{v}>"})
        return chosen

    ids = [int(v) for v in IDS[t]]
    return {
        "prompt_token_ids": ids[:PROMPT],
        "prompt_logprobs": [None] + [candidates(i) for i in range(1, PROMPT)],
        "outputs": [{"token_ids": ids[PROMPT:], "logprobs": [candidates(i) for i in range(PROMPT, TOKENS)]}],
    }


def sglang(t):
    def triple(i):
        return [B.own(t, i) if i > 0 else None, int(IDS[t, i]), None]

    def top(i):
        return [[p, v, None] for v, p in B.top(t, i)] if i > 0 else None

    return {
        "text": "",
        "meta_info": {
            "prompt_tokens": PROMPT,
            "input_token_logprobs": [triple(i) for i in range(PROMPT)],
            "output_token_logprobs": [triple(i) for i in range(PROMPT, TOKENS)],
            "input_top_logprobs": [top(i) for i in range(PROMPT)],
            "output_top_logprobs": [top(i) for i in range(PROMPT, TOKENS)],
        },
    }


def openai(t):  # an echo, as vLLM and assay serve answer with token ids beside
    names = [f"token_id:{v}" for v in IDS[t]]
    top = [None] + [{f"token_id:{v}": p for v, p in A.top(t, i)} for i in range(1, TOKENS)]
    own = [None] + [A.own(t, i) for i in range(1, TOKENS)]
    return {"object": "text_completion", "choices": [{"index": 0, "text": "", "logprobs": {"tokens": names, "token_logprobs": own, "top_logprobs": top}}]}


def chat(t):
    def content(i):
        top = [{"token": f"token_id:{v}", "logprob": p, "bytes": None} for v, p in A.top(t, i)]
        return {"token": f"token_id:{IDS[t, i]}", "logprob": A.own(t, i), "bytes": None, "top_logprobs": top}

    return {"choices": [{"message": {}, "logprobs": {"content": [content(i) for i in range(PROMPT, TOKENS)]}}]}


def llama_server(t):
    def token(i):
        top = [{"id": v, "token": f"<{v}>", "bytes": list(f"<{v}>".encode()), "logprob": p} for v, p in A.top(t, i)]
        return {"id": int(IDS[t, i]), "token": "", "bytes": [], "logprob": A.own(t, i), "top_logprobs": top}

    return {"prompt": "", "tokens_evaluated": PROMPT, "completion_probabilities": [token(i) for i in range(PROMPT, TOKENS)]}


def perplexity_base():
    """As llama.cpp's tools/perplexity/perplexity.cpp packs it: 16 bits for the 16 nats below the likeliest."""
    out = b"_logits_" + struct.pack("<3i", TOKENS, VOCABULARY, TEXTS) + IDS.astype("<i4").tobytes()
    for t in range(TEXTS):
        for i in range(TOKENS // 2 + 1, TOKENS):
            row = A.logprobs[t, i].astype(np.float32)
            lowest = max(float(row.min()), float(row.max()) - 16)
            scale = (float(row.max()) - lowest) / 65535
            codes = np.clip(np.rint((row - lowest) / scale), 0, 65535).astype("<u2")
            out += struct.pack("<2f", scale, lowest) + codes.tobytes() + b"\0\0" * (VOCABULARY % 2)
    return out


def figures():
    places = [(t, i) for t in range(TEXTS) for i in range(1, TOKENS)]
    a = np.array([A.own(*p) for p in places])
    b = np.array([B.own(*p) for p in places])
    delta, ratio = b - a, np.exp(b - a)
    kl, flips, ranked, firsts = [], 0, 0, 0
    for t, i in places:
        of_b = dict(B.top(t, i))
        # vLLM's list has the own token besides its likeliest.
        of_a = dict([*A.top(t, i), (int(IDS[t, i]), A.own(t, i))])
        shared = [(p, of_b[v]) for v, p in of_a.items() if v in of_b]
        p, q = (np.array(x) for x in zip(*shared)) if shared else (np.zeros(0), np.zeros(0))
        if len(p):
            rest_p, rest_q = 1 - np.exp(p).sum(), 1 - np.exp(q).sum()
            value = (np.exp(p) * (p - q)).sum()
            if rest_p > 1e-6 and rest_q > 1e-6:
                value += rest_p * np.log(rest_p / rest_q)
            kl.append(max(value, 0.0))
        own, top = B.own(t, i), np.array(list(of_b.values()))
        if (top < own).any():  # SGLang tells no rank: its place among the likeliest
            ranked += 1
            flips += int((top > own).sum()) + 1 != A.rank(t, i)
        firsts += max(of_a, key=of_a.get) == max(of_b, key=of_b.get)
    texts = np.exp(delta.reshape(TEXTS, -1).sum(1))
    shares = [0.001, 0.01, 0.05, 0.5, 0.95, 0.99, 0.999]
    outside = [float(((ratio < low) | (ratio > high)).mean()) for low, high in ((0.8, 1.2), (0.8, 1.28), (0.8, 1.25), (0.5, 2))]
    return {
        "tokens": len(a), "mean": delta.mean(), "mean_abs": np.abs(delta).mean(), "rms": np.sqrt((delta**2).mean()),
        "max_abs": np.abs(delta).max(), "kl_tokens": len(kl), "kl_mean": np.mean(kl), "kl_max": np.max(kl), "ranked": ranked,
        "rank_flips": flips, "same_first": firsts, "ratio_mean": ratio.mean(), "ratio_min": ratio.min(), "ratio_max": ratio.max(),
        "quantiles": np.quantile(ratio, shares).tolist(), "outside": outside,
        "effective": ratio.sum() ** 2 / (ratio**2).sum() / len(ratio), "kl_k1": -delta.mean(), "kl_k3": (ratio - 1 - delta).mean(),
        "probability_mean": np.abs(np.exp(b) - np.exp(a)).mean(), "probability_max": np.abs(np.exp(b) - np.exp(a)).max(),
        "text_min": texts.min(), "text_max": texts.max(), "text_mean_min": (texts ** (1 / (TOKENS - 1))).min(),
        "text_mean_max": (texts ** (1 / (TOKENS - 1))).max(),
    }


def main():
    OUT.mkdir(parents=True, exist_ok=True)

    def lines(make):
        return "\n".join(json.dumps(make(t)) for t in range(TEXTS)) + "\n"

    (OUT / "a_vllm.json").write_text(json.dumps([vllm(t) for t in range(TEXTS)]))
    (OUT / "b_sglang.jsonl").write_text(lines(sglang))
    (OUT / "a_openai.jsonl").write_text(lines(openai))
    (OUT / "a_chat.jsonl").write_text(lines(chat))
    (OUT / "a_llama_server.jsonl").write_text(lines(llama_server))
    (OUT / "a_base.kld").write_bytes(perplexity_base())
    rows = {"ids": lambda t: [int(v) for v in IDS[t]], "logprobs": lambda t: [None] + [A.own(t, i) for i in range(1, TOKENS)]}
    (OUT / "a_table.jsonl").write_text(lines(lambda t: {key: make(t) for key, make in rows.items()}))
    with open(OUT / "a_table.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["sequence", "token_id", "logprob"])
        for t in range(TEXTS):
            for i in range(TOKENS):
                table.writerow([t, IDS[t, i], "" if i == 0 else A.own(t, i)])
    text = json.dumps({k: v if isinstance(v, list) else float(v) for k, v in figures().items()}, indent=1)
    (OUT / "expected.json").write_text(text + "\n")


main()
