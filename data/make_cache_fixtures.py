#!/usr/bin/env python3
"""Compressed caches by their authors' rules, from scratch: logits and kept tokens of data/models/llama.

    python data/make_cache_fixtures.py                              writes data/fixtures/caches/llama.safetensors
    python data/make_cache_fixtures.py MODEL TRUTH.safetensors      of another Llama in one BF16 file

A Llama in NumPy, in float64, that keeps the whole history of every layer: queries, keys before rotation, values. A
method is a function of that history: which tokens a head may see, where they stand, and what of them is read. Nothing
is moved, thrown away or counted as assay's caches do it, so that agreement says that those do it right.

Rules, with their papers:
  fp8, int8     x = code * scale; scale = max|x| / 448 of the first step's keys (values), by layer or by head; of each
                token and head, max|x| / 127
  kivi          arXiv 2402.02750, section 3.3 and Algorithm 1: keys by channel over groups of tokens, values by token
                over groups of channels, asymmetric; residual R: the last n mod R keys, the last R values in full
  streaming     arXiv 2309.17453, section 3.2: sinks and window, positions within the cache
  h2o           arXiv 2306.14048, Algorithm 1: accumulated attention; budget = heavy hitters + recent
  snapkv        arXiv 2404.14469, section 4.2 and Listing 1: votes of the observation window, pooled (stride 1, zero
                padding counted in the mean)
  grouped       Character.AI, "Optimizing AI Inference" (2024): windows in most layers, rows shared by neighbours
  pyramidkv     arXiv 2406.02069, section 4.2: budgets that fall by as much from layer to layer
Query heads that share a key head vote together: their attention is added up.
"""
import json
import math
import pathlib
import sys

import ml_dtypes
import numpy as np
import safetensors.numpy

ROOT = pathlib.Path(__file__).parent
MODEL = pathlib.Path(sys.argv[1]) if len(sys.argv) > 2 else ROOT / "models/llama"
OUT = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "fixtures/caches/llama.safetensors"
PROMPT, MADE = 40, 16


def read_bf16(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, of in json.loads(raw[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        assert of["dtype"] == "BF16", of
        first, end = of["data_offsets"]
        data = np.frombuffer(raw[8 + size + first : 8 + size + end], ml_dtypes.bfloat16)
        tensors[name] = data.astype(np.float64).reshape(of["shape"])
    return tensors


CONFIG = json.loads((MODEL / "config.json").read_text())
W = read_bf16(MODEL / "model.safetensors")
LAYERS, HEADS, KV = (CONFIG[k] for k in ("num_hidden_layers", "num_attention_heads", "num_key_value_heads"))
D = CONFIG.get("head_dim") or CONFIG["hidden_size"] // HEADS
HEAD = W.get("lm_head.weight", W["model.embed_tokens.weight"])
GROUP = HEADS // KV


def inverse_frequencies():
    """llama3: long waves are stretched, short ones left, those between interpolated."""
    s = CONFIG.get("rope_scaling")
    inverse = CONFIG["rope_theta"] ** (-np.arange(0, D, 2) / D)
    if s is None:
        return inverse
    assert s.get("rope_type", s.get("type")) == "llama3", s
    wave = 2 * np.pi / inverse
    low, high = s["low_freq_factor"], s["high_freq_factor"]
    old = s["original_max_position_embeddings"]
    smooth = (old / wave - low) / (high - low)
    between = (1 - smooth) * inverse / s["factor"] + smooth * inverse
    out = np.where(wave > old / low, inverse / s["factor"], inverse)
    return np.where((wave <= old / low) & (wave >= old / high), between, out)


INVERSE = inverse_frequencies()


def rotate(x, places):
    """x: [tokens, heads, D]"""
    angle = np.asarray(places, np.float64)[:, None] * INVERSE
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., : D // 2], x[..., D // 2 :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + CONFIG["rms_norm_eps"]) * w


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Method:
    """A layer's history, and what of it is seen. In full: everything."""

    renumbered = False
    window = None  # a query sees so many, itself included
    leader = None  # the layer whose keys and values are read

    def __init__(self, layer):
        self.layer, self.tokens = layer, 0
        self.kept = [list(range(0)) for _ in range(KV)]

    def place(self):  # of the next token
        return len(self.kept[0]) if self.renumbered else self.tokens

    def read(self, k, v, step):  # what of all rows is read in a step whose rows are the last `step`
        return k, v

    def settle(self, p, step):  # p: [HEADS, step, seen] of each key head's kept tokens and the step's
        pass

    def advance(self, p, step):
        for head in self.kept:
            head.extend(range(self.tokens, self.tokens + step))
        self.tokens += step
        self.settle(p, step)


def run(make, tokens, steps):
    """Logits of every token, [tokens, vocabulary]; the methods of all layers; what was kept behind each step."""
    methods = [make(layer) for layer in range(LAYERS)]
    history = [{"k": np.zeros((0, KV, D)), "v": np.zeros((0, KV, D))} for _ in range(LAYERS)]
    logits, at = [], 0
    for step in steps:
        x = W["model.embed_tokens.weight"][tokens[at : at + step]]
        at += step
        for layer in range(LAYERS):
            method, past = methods[layer], history[layer]
            name = f"model.layers.{layer}."
            y = norm(x, W[name + "input_layernorm.weight"])
            q, k, v = (
                (y @ W[name + f"self_attn.{part}_proj.weight"].T).reshape(step, -1, D) for part in ("q", "k", "v")
            )
            places = method.place() + np.arange(step)
            if method.leader is not None:
                past, k, v = history[method.leader], k[:0], v[:0]
                history[layer] = past
            past["k"] = np.concatenate([past["k"], k if method.renumbered else rotate(k, places[: len(k)])])
            past["v"] = np.concatenate([past["v"], v])
            q = rotate(q, places)
            keys, values = method.read(past["k"], past["v"], step)
            context, attention = np.zeros((step, HEADS, D)), [None] * HEADS
            for head in range(HEADS):
                seen = method.kept[head // GROUP] + list(range(method.tokens, method.tokens + step))
                own = keys[seen, head // GROUP]
                if method.renumbered:
                    own = rotate(own[:, None], np.arange(len(seen)))[:, 0]
                scores = q[:, head] @ own.T / math.sqrt(D)
                for i in range(step):  # of the step, what comes later is not seen
                    scores[i, len(seen) - step + i + 1 :] = -np.inf
                    if method.window is not None:
                        scores[i, : max(0, len(seen) - step + i + 1 - method.window)] = -np.inf
                attention[head] = softmax(scores)
                context[:, head] = attention[head] @ values[seen, head // GROUP]
            method.advance(attention, step)
            x = x + context.reshape(step, -1) @ W[name + "self_attn.o_proj.weight"].T
            y = norm(x, W[name + "post_attention_layernorm.weight"])
            gate, up = (y @ W[name + f"mlp.{part}_proj.weight"].T for part in ("gate", "up"))
            x = x + (gate / (1 + np.exp(-gate)) * up) @ W[name + "mlp.down_proj.weight"].T
        x = norm(x, W["model.norm.weight"])
        logits.append(x @ HEAD.T)
    return np.concatenate(logits), methods


def by_scale(x, scale, codes):
    with np.errstate(divide="ignore", invalid="ignore"):
        y = (np.float32(x) / np.float32(scale)).astype(np.float32)
    if codes == "fp8":
        y = np.clip(y, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    else:
        y = np.clip(np.rint(y), -127, 127).astype(np.float32)
    return (y * np.float32(scale)).astype(np.float64)


def amax(x, axes):
    return np.abs(np.float32(x)).max(axes, keepdims=True)


class Fp8(Method):
    by_head = False

    def read(self, k, v, step):
        axes = (0, 2) if self.by_head else (0, 1, 2)
        if self.tokens == 0:
            self.scales = [amax(x, axes) / np.float32(448) for x in (k, v)]
        return tuple(by_scale(x, s, "fp8") for x, s in zip((k, v), self.scales))


class Fp8ByHead(Fp8):
    by_head = True


class Int8(Method):
    def read(self, k, v, step):
        return tuple(by_scale(x, amax(x, 2) / np.float32(127), "int8") for x in (k, v))


def kivi_group(x, bits, axis):
    low, high = x.min(axis, keepdims=True), x.max(axis, keepdims=True)
    scale = np.float16((high - low) / (2**bits - 1)).astype(np.float64)
    zero = np.float16(low).astype(np.float64)
    code = np.clip(np.rint((x - zero) / np.where(scale == 0, 1, scale)), 0, 2**bits - 1)
    return np.where(scale == 0, 0, code) * scale + zero


def kivi(bits, group, residual):
    class Kivi(Method):
        def read(self, k, v, step):
            n, k, v = self.tokens, k.copy(), v.copy()  # what was there before the step is quantized
            for first in range(0, n - n % residual, group):
                k[first : first + group] = kivi_group(k[first : first + group], bits, 0)
            old = max(0, n - residual)
            for c in range(0, D, group):
                v[:old, :, c : c + group] = kivi_group(v[:old, :, c : c + group], bits, 2)
            return k, v

    return Kivi


def streaming(sinks, window):
    class Streaming(Method):
        renumbered = True

        def settle(self, p, step):
            for head in range(KV):
                kept = self.kept[head]
                if len(kept) > sinks + window:
                    self.kept[head] = kept[:sinks] + kept[len(kept) - window :]

    return Streaming


def h2o(budget, recent):
    class HeavyHitters(Method):
        def settle(self, p, step):
            if self.tokens == step:
                self.score = [np.zeros(10**4) for _ in range(KV)]  # of every token of the text
            for head in range(KV):
                kept, score = self.kept[head], self.score[head]
                for query_head in range(head * GROUP, (head + 1) * GROUP):
                    score[kept] += p[query_head].sum(0)
                if len(kept) > budget:
                    old = kept[: len(kept) - recent]
                    best = sorted(old, key=lambda t: -score[t])[: budget - recent]
                    self.kept[head] = sorted(best) + kept[len(kept) - recent :]

    return HeavyHitters


def pool(votes, kernel, how):
    padded = np.pad(votes, kernel // 2, constant_values=0 if how == "avg" else -np.inf)
    near = np.lib.stride_tricks.sliding_window_view(padded, kernel)
    return near.sum(-1) / kernel if how == "avg" else near.max(-1)


def snapkv(budget, window, kernel, how, beta=None):
    class Snap(Method):
        def settle(self, p, step):
            if self.tokens > step or step < budget:  # made behind the prompt; a prompt that fits
                return
            size = self.voted(step)
            for head in range(KV):
                votes = sum(
                    p[query_head][-window:, : step - window].sum(0)
                    for query_head in range(head * GROUP, (head + 1) * GROUP)
                )
                best = np.argsort(-pool(votes, kernel, how), kind="stable")[:size]
                self.kept[head] = sorted(int(t) for t in best) + list(range(step - window, step))

        def voted(self, prompt):
            b = budget - window
            if beta is None or prompt < 2 * b:
                return b
            last = b // beta
            first = 2 * b - last
            if first >= prompt - window:
                first = prompt - window
                last = 2 * b - first
            return first - self.layer * ((first - last) // (LAYERS - 1))

    return Snap


def grouped(every, window, share):
    """Character.AI: one layer in `every` sees all, the others a window; `share` of a kind read the first one's rows."""

    class Grouped(Method):
        def __init__(self, layer):
            super().__init__(layer)
            is_global = lambda l: (l + 1) % every == 0
            self.window = None if is_global(layer) else window
            kind = [l for l in range(LAYERS) if is_global(l) == is_global(layer)]
            of_kind = kind.index(layer)
            if of_kind % share:
                self.leader = kind[of_kind - of_kind % share]

    return Grouped


CASES = {
    "full": Method,
    "fp8": Fp8,
    "fp8:scale=head": Fp8ByHead,
    "int8": Int8,
    "kivi2:group=8,residual=16": kivi(2, 8, 16),
    "kivi4:group=8,residual=16": kivi(4, 8, 16),
    "streaming:sinks=2,window=12": streaming(2, 12),
    "h2o:budget=16,recent=8": h2o(16, 8),
    "snapkv:budget=16,window=6,kernel=5": snapkv(16, 6, 5, "avg"),
    "snapkv:budget=16,window=6,kernel=3,pool=max": snapkv(16, 6, 3, "max"),
    "pyramidkv:budget=16,window=6,kernel=5,beta=4": snapkv(16, 6, 5, "avg", 4),
    "grouped:every=3,window=9": grouped(3, 9, 1),
    "grouped:every=3,window=9,share=2": grouped(3, 9, 2),
}


def main():
    rng = np.random.default_rng(20240217)
    tokens = rng.integers(2, CONFIG["vocab_size"], PROMPT + MADE)
    out = {"tokens": tokens.astype(np.int32), "prompt": np.array([PROMPT], np.int32)}
    for name, make in CASES.items():
        logits, methods = run(make, tokens, [PROMPT] + [1] * MADE)
        out[f"{name}/logits"] = logits[PROMPT - 1 :].astype(np.float32)
        for layer, method in enumerate(methods):
            out[f"{name}/kept.{layer}"] = np.array(method.kept, np.int32)
        print(f"{name:48} keeps {[len(m.kept[0]) for m in methods]}")
    # A prompt in two steps: rows are thrown away between them, and the second step's queries see less.
    for name in ("h2o:budget=16,recent=8", "streaming:sinks=2,window=12"):
        logits, methods = run(CASES[name], tokens, [PROMPT - 13, 13] + [1] * MADE)
        out[f"{name}/chunked/logits"] = logits[PROMPT - 13 :].astype(np.float32)
        for layer, method in enumerate(methods):
            out[f"{name}/chunked/kept.{layer}"] = np.array(method.kept, np.int32)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    safetensors.numpy.save_file(out, OUT)


if __name__ == "__main__":
    main()
