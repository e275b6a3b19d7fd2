#!/usr/bin/env python3
"""What vLLM and SGLang hold of small models, tensor by tensor and rank by rank: data/fixtures/tensor_digests/*.json.

    python3 data/make_tensor_digests.py          needs numpy, ml_dtypes and safetensors (data/requirements.txt)

Written from the engines' layers, with NumPy's slices in place of their weight loaders:
  QKVParallelLinear            a rank's heads of q, of k, of v; with fewer key heads than ranks each goes to several
  MergedColumnParallelLinear   a rank's rows of gate, of up
  RowParallelLinear            a rank's columns
  FusedMoE                     w13: of each expert gate over up; w2: down; a rank's rows and columns, or its experts
  VocabParallelEmbedding       rows padded with zeros to a multiple of 64
"""
import hashlib
import json
import pathlib

import ml_dtypes
import numpy as np
import safetensors

ROOT = pathlib.Path(__file__).resolve().parent
TYPES = {"F32": np.float32, "BF16": ml_dtypes.bfloat16, "F16": np.float16, "F8_E4M3": ml_dtypes.float8_e4m3fn}


def load(model):
    data = (ROOT / "models" / model / "model.safetensors").read_bytes()
    return {name: np.frombuffer(bytes(view["data"]), TYPES[view["dtype"]]).reshape(view["shape"])
            for name, view in safetensors.deserialize(data)}


def part(array, axis, rank, ranks):
    return np.split(array, ranks, axis)[rank]


class Engine:
    def __init__(self, model, engine, tp, ep=1, dtype=None):
        self.config = json.loads((ROOT / "models" / model / "config.json").read_text())
        self.weights, self.engine, self.tp, self.ep, self.dtype = load(model), engine, tp, ep, dtype
        self.block = 128
        quantization = self.config.get("quantization_config")
        if quantization:
            self.block = quantization["weight_block_size"][0]
        self.heads = self.config["num_attention_heads"]
        self.kv_heads = self.config.get("num_key_value_heads", self.heads)
        self.layers = self.config["num_hidden_layers"]

    def at(self, rank):
        self.rank, self.held = rank, {}
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            if name in self.weights and not (name == "lm_head.weight" and self.config.get("tie_word_embeddings")):
                self.held[name] = self.vocabulary(self.weights[name])
        self.held["model.norm.weight"] = self.weights["model.norm.weight"]
        for layer in range(self.layers):
            self.layer(f"model.layers.{layer}.")
        return self.held

    def vocabulary(self, table):
        padded = -len(table) % 64
        zeros = np.zeros((padded,) + table.shape[1:], table.dtype)
        return part(np.concatenate([table, zeros]), 0, self.rank, self.tp)

    def layer(self, at):
        for name, value in self.weights.items():
            own = name.removeprefix(at)
            if own != name and (own.endswith("norm.weight") or own.endswith("layernorm.weight")):
                self.held[name] = value
        if at + "self_attn.kv_a_proj_with_mqa.weight" in self.weights:
            self.latent(at + "self_attn.")
        else:
            self.heads_of(at + "self_attn.")
        if at + "mlp.gate_proj.weight" in self.weights:
            self.mlp(at + "mlp.")
        elif at + "block_sparse_moe.gate.weight" in self.weights:
            self.mixture(at + "block_sparse_moe.", ("w1", "w3", "w2"))
        else:
            self.mixture(at + "mlp.", ("gate_proj", "up_proj", "down_proj"))

    def both(self, name):
        """The weight and, where there are any, its bias and its scales."""
        return [suffix for suffix in ("weight", "bias", "weight_scale_inv") if f"{name}.{suffix}" in self.weights]

    def heads_of(self, at):
        for suffix in self.both(at + "q_proj"):
            parts = [part(self.weights[f"{at}q_proj.{suffix}"], 0, self.rank, self.tp)]
            for name in ("k_proj", "v_proj"):
                value = self.weights[f"{at}{name}.{suffix}"]
                if self.kv_heads >= self.tp:
                    parts.append(part(value, 0, self.rank, self.tp))
                else:
                    parts.append(part(value, 0, self.rank * self.kv_heads // self.tp, self.kv_heads))
            self.held[f"{at}qkv_proj.{suffix}"] = np.concatenate(parts)
        self.row(at + "o_proj")

    def latent(self, at):
        fused = "fused_qkv_a_proj" if self.engine == "vllm" else "fused_qkv_a_proj_with_mqa"
        for suffix in self.both(at + "q_a_proj"):
            self.held[f"{at}{fused}.{suffix}"] = np.concatenate(
                [self.weights[f"{at}q_a_proj.{suffix}"], self.weights[f"{at}kv_a_proj_with_mqa.{suffix}"]])
        for name in ("q_b_proj", "kv_b_proj"):
            self.column(at + name)
        self.row(at + "o_proj")

    def column(self, name):
        for suffix in self.both(name):
            self.held[f"{name}.{suffix}"] = part(self.weights[f"{name}.{suffix}"], 0, self.rank, self.tp)

    def row(self, name):
        for suffix in self.both(name):
            value = self.weights[f"{name}.{suffix}"]
            self.held[f"{name}.{suffix}"] = value if suffix == "bias" else part(value, 1, self.rank, self.tp)

    def mlp(self, at):
        for suffix in self.both(at + "gate_proj"):
            self.held[f"{at}gate_up_proj.{suffix}"] = np.concatenate(
                [part(self.weights[f"{at}{name}.{suffix}"], 0, self.rank, self.tp) for name in ("gate_proj", "up_proj")])
        self.row(at + "down_proj")

    def mixture(self, at, names):
        for name in ("gate.weight", "gate.e_score_correction_bias", "shared_expert_gate.weight"):
            if at + name in self.weights:
                self.held[at + name] = self.weights[at + name]
        for shared in ("shared_experts.", "shared_expert."):
            if at + shared + "gate_proj.weight" in self.weights:
                self.mlp(at + shared)
        experts = sum(name.startswith(at + "experts.") and name.endswith(f".{names[0]}.weight") for name in self.weights)
        cut, group = self.tp // self.ep, self.rank // (self.tp // self.ep)
        mine = range(group * experts // self.ep, (group + 1) * experts // self.ep)
        inner = self.rank % cut
        for suffix in self.both(f"{at}experts.0.{names[0]}"):
            def of(expert, name):
                return self.weights[f"{at}experts.{expert}.{name}.{suffix}"]
            self.held[f"{at}experts.w13_{suffix}"] = np.stack(
                [np.concatenate([part(of(e, names[0]), 0, inner, cut), part(of(e, names[1]), 0, inner, cut)])
                 for e in mine])
            self.held[f"{at}experts.w2_{suffix}"] = np.stack([part(of(e, names[2]), 1, inner, cut) for e in mine])

    def entries(self):
        entries = {}
        for rank in range(self.tp):
            for name, value in self.at(rank).items():
                if self.dtype and value.dtype in (np.float32, ml_dtypes.bfloat16) and "e_score_correction" not in name:
                    value = value.astype(self.dtype)
                digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
                entry = entries.setdefault((name, digest), {"name": name, "shape": list(value.shape), "ranks": [],
                                                            "sha256": digest})
                entry["ranks"].append(rank)
        return sorted(entries.values(), key=lambda entry: (entry["name"], entry["ranks"]))


CASES = [("llama", "vllm", 1, 1, None), ("llama", "vllm", 2, 1, None), ("llama", "sglang", 2, 1, "bfloat16"),
         ("qwen2", "vllm", 1, 1, None), ("qwen2", "vllm", 2, 1, None), ("qwen2", "sglang", 4, 1, None),
         ("qwen3", "vllm", 2, 1, "bfloat16"), ("mixtral", "vllm", 2, 1, None), ("mixtral", "sglang", 4, 2, None),
         ("qwen3-moe", "vllm", 2, 2, None), ("qwen3-moe", "vllm", 4, 1, "float16"), ("deepseek-v3", "vllm", 2, 1, None),
         ("deepseek-v3", "sglang", 4, 4, None), ("deepseek-v3-fp8", "vllm", 1, 1, None)]


def main():
    folder = ROOT / "fixtures" / "tensor_digests"
    folder.mkdir(exist_ok=True)
    for model, engine, tp, ep, dtype in CASES:
        types = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
        held = Engine(model, engine, tp, ep, types.get(dtype))
        document = {"model": model, "engine": engine, "tp": tp, "ep": ep, "dtype": dtype or "", "tensors": held.entries()}
        name = f"{model}.{engine}.tp{tp}.ep{ep}{'.' + dtype if dtype else ''}.json"
        (folder / name).write_text(json.dumps(document, indent=1) + "\n")
        print(name, len(document["tensors"]))


if __name__ == "__main__":
    main()
