"""Random weights that leave nothing trivial: norms away from 1, peaked attention, biased routing.

Everything is rounded to BF16, so that every precision computes with the same numbers, but for what real checkpoints keep
in F32 (GPT-2's all; the correction biases of DeepSeek's routers).
"""

import re
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM

from . import deepseek_v4

FP4_VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])  # OCP E2M1
FP8_BLOCK = 128
# Where the head is the embedding, a token whose own embedding dominates the stream predicts itself for ever: embeddings are
# small there (Gemma and MiniCPM3 scale them up again), and the final norm makes up for it.
TIED_EMBEDDING = {"gemma2": 0.03, "gemma3_text": 0.03, "minicpm3": 0.02}
FINAL_NORM = {"gemma2": (5.0, 12.0), "gemma3_text": (15.0, 35.0), "gpt2": (3.0, 9.0)}

ONE_PLUS = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")  # norms are x (1 + w), but for the one of linear attention


def read(path):
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def checkpoint_shapes(config, model_class=AutoModelForCausalLM):
    """Names and shapes a checkpoint of this config has, as `transformers` itself writes them."""
    model = model_class.from_config(config) if model_class is AutoModelForCausalLM else model_class(config)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return {name: tuple(value.shape) for name, value in read(Path(folder) / "model.safetensors").items()}


def _fan_in(name, shape, config):
    transposed = config["model_type"] == "gpt2" or (config["model_type"] == "gpt_oss" and ".experts." in name)
    return shape[-2] if transposed else shape[-1]


def draw(name, shape, config, generator):
    """One tensor by its name: which part it plays decides its spread."""
    kind, width = config["model_type"], config.get("hidden_size", config.get("n_embd"))

    def normal(std, mean=0.0):
        return torch.randn(shape, generator=generator) * std + mean

    def uniform(low, high):
        return torch.rand(shape, generator=generator) * (high - low) + low

    if re.search(r"(e_score_correction_bias|expert_bias)$", name):
        return uniform(-1.2, 0.4)  # many biased scores are negative: a mask of 0 and one of -inf then differ
    if re.search(r"A_log$", name):
        return uniform(-3.5, 0.5)  # some heads remember, some forget
    if re.search(r"sinks$", name):
        return normal(1.0, 1.0)
    if re.search(r"bias$", name):
        return normal(0.3)
    tied = config.get("tie_word_embeddings", kind == "gpt2")
    if tied and kind in ONE_PLUS and name == "model.norm.weight":
        return uniform(1.0, 5.0)
    if tied and re.search(r"^(model\.norm|transformer\.ln_f)\.weight$", name):
        low, high = FINAL_NORM.get(kind, (2.0, 6.0))
        return uniform(low, high)
    if len(shape) == 1:
        centred = kind in ("gemma2", "gemma3_text") or (kind in ONE_PLUS and not name.endswith("linear_attn.norm.weight"))
        return uniform(-0.5, 0.5) if centred else uniform(0.5, 1.5)
    if re.search(r"(embed_tokens|wte|^embed)\.weight$", name):
        return normal(TIED_EMBEDDING.get(kind, 0.2) if tied else 1.0)
    if re.search(r"wpe\.weight$", name):
        return normal(0.3)
    gain = 1.0
    if re.search(r"(mlp\.gate|block_sparse_moe\.gate|router)\.weight$", name):
        gain = 1.5
    elif re.search(r"(q_proj|k_proj|qkv_proj|q_b_proj|c_attn)\.weight$", name):
        gain = 1.7
    elif re.search(r"lm_head\.weight$", name):
        gain = 3.0
    return normal(gain / _fan_in(name, shape, config) ** 0.5)


def random_checkpoint(config, shapes, seed):
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name in sorted(shapes):
        if name.endswith("tid2eid"):
            tensors[name] = deepseek_v4.table(shapes[name], config["n_routed_experts"], generator)
            continue
        value = draw(name, shapes[name], config, generator)
        keep_f32 = config["model_type"] == "gpt2" or name.endswith(("e_score_correction_bias", "expert_bias"))
        keep_f32 |= config["model_type"] == "deepseek_v4" and deepseek_v4.keeps_f32(name)
        tensors[name] = value if keep_f32 else value.to(torch.bfloat16)
    return tensors


def with_mxfp4_experts(tensors, generator):
    """gpt-oss as it is published: experts as [expert, out, in / 32] blocks of 16 bytes, low nibble first, E8M0 scales.

    Returns the stored checkpoint and the same one decoded, whose matrices are [expert, in, out].
    """
    stored, decoded = dict(tensors), dict(tensors)
    for name in [n for n in tensors if re.search(r"experts\.(gate_up|down)_proj$", n)]:
        experts, inputs, outputs = tensors[name].shape
        blocks = torch.randint(0, 256, (experts, outputs, inputs // 32, 16), generator=generator, dtype=torch.uint8)
        scales = torch.randint(121, 124, (experts, outputs, inputs // 32), generator=generator, dtype=torch.uint8)
        del stored[name]
        stored[f"{name}_blocks"], stored[f"{name}_scales"] = blocks, scales
        codes = torch.stack([blocks & 15, blocks >> 4], dim=-1).flatten(-2).long()  # [expert, out, in / 32, 32]
        values = FP4_VALUES[codes] * torch.exp2(scales.float() - 127).unsqueeze(-1)
        decoded[name] = values.flatten(-2).transpose(1, 2).to(torch.bfloat16).contiguous()  # exact: 2 bits of mantissa
    return stored, decoded


def with_fp8_blocks(tensors):
    """DeepSeek-V3 as it is published: every projection in E4M3 with a float32 scale per 128 x 128 block, amax / 448.

    Embedding, head, norms, router and eh_proj stay. Returns the stored checkpoint and the same one decoded to float32.
    """
    stored, decoded = dict(tensors), dict(tensors)
    for name, value in tensors.items():
        if not re.search(r"(self_attn|mlp)\..*proj(_with_mqa)?\.weight$", name):
            continue
        rows, columns = value.shape
        padded = torch.zeros(-(-rows // FP8_BLOCK) * FP8_BLOCK, -(-columns // FP8_BLOCK) * FP8_BLOCK)
        padded[:rows, :columns] = value.float()
        tiles = padded.view(padded.shape[0] // FP8_BLOCK, FP8_BLOCK, padded.shape[1] // FP8_BLOCK, FP8_BLOCK)
        scale = tiles.abs().amax(dim=(1, 3)) / 448
        spread = scale.repeat_interleave(FP8_BLOCK, 0).repeat_interleave(FP8_BLOCK, 1)[:rows, :columns]
        codes = (value.float() / spread).to(torch.float8_e4m3fn)
        stored[name], stored[f"{name}_scale_inv"] = codes, scale
        decoded[name] = codes.float() * spread
    return stored, decoded
