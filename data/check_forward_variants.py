"""Holds `assay run` against `transformers` in float64 on tiny models of odd sizes, drawn at random.

    python data/check_forward_variants.py build/release/assay                       # every family, six models each
    python data/check_forward_variants.py build/release/assay qwen3_next --count 40

Logits and every intermediate that `transformers` lets be taken have to agree to 1e-12 of their largest. Texts are of 70 to 140
tokens, so that the chunked scans of `transformers` take more than one chunk.
"""

import argparse
import json
import random
import subprocess
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoConfig
from transformers.utils import logging

from tiny_models import golden, hybrids, kin, taps, weights
from tiny_models.configs import COMMON
from tiny_models.precision import everything_double

MOST = 1e-12
RENAMED = {"router_choice": None}  # which of ours is theirs; None: not told apart


def layers(draw, count):
    kinds = draw.choices(["linear_attention", "full_attention"], weights=[2, 1], k=count - 2)
    return draw.sample([*kinds, "linear_attention", "full_attention"], count)


def delta_net(draw):
    key_heads = draw.choice([1, 2, 3])
    kv_heads = draw.choice([1, 2, 3])
    return {
        **COMMON, "max_position_embeddings": 256, "hidden_size": draw.choice([24, 36, 44]), "head_dim": draw.choice([8, 16, 24]),
        "num_key_value_heads": kv_heads, "num_attention_heads": kv_heads * draw.choice([1, 2, 3]),
        "linear_num_key_heads": key_heads, "linear_num_value_heads": key_heads * draw.choice([1, 2, 4]),
        "linear_key_head_dim": draw.choice([4, 9, 16]), "linear_value_head_dim": draw.choice([5, 8, 19]),
        "linear_conv_kernel_dim": draw.choice([2, 3, 4, 5]), "attention_bias": draw.random() < 0.3,
        "rms_norm_eps": draw.choice([1e-6, 1e-5, 1e-3]), "tie_word_embeddings": draw.random() < 0.3,
        "hidden_act": "silu",
    }


def experts(draw):
    count = draw.choice([3, 5, 8])
    return {
        "num_experts": count, "num_experts_per_tok": draw.randint(1, min(3, count)), "moe_intermediate_size": draw.choice([9, 16]),
        "shared_expert_intermediate_size": draw.choice([7, 20]),
    }


def qwen3_next(draw):
    count = draw.choice([2, 3, 5])
    return delta_net(draw) | experts(draw) | {
        "model_type": "qwen3_next", "architectures": ["Qwen3NextForCausalLM"], "num_hidden_layers": count,
        "layer_types": layers(draw, count), "intermediate_size": draw.choice([20, 33]),
        "mlp_only_layers": draw.choice([[], [0], [1]]), "decoder_sparse_step": draw.choice([1, 1, 2]),
        "partial_rotary_factor": draw.choice([0.25, 0.5, 1.0]), "rope_theta": draw.choice([1e4, 1e6]),
        "norm_topk_prob": draw.random() < 0.7,
    }


def rope_parameters(draw):
    return {"rope_type": "default", "rope_theta": draw.choice([1e4, 1e7]), "partial_rotary_factor": draw.choice([0.25, 0.5])}


def qwen3_5(draw):
    count = draw.choice([2, 3, 5])
    return delta_net(draw) | {
        "model_type": "qwen3_5_text", "architectures": ["Qwen3_5ForCausalLM"], "num_hidden_layers": count,
        "layer_types": layers(draw, count), "intermediate_size": draw.choice([20, 33]), "rope_parameters": rope_parameters(draw),
    }


def qwen3_5_moe(draw):
    count = draw.choice([2, 3, 4])
    return delta_net(draw) | experts(draw) | {
        "model_type": "qwen3_5_moe_text", "architectures": ["Qwen3_5MoeForCausalLM"], "num_hidden_layers": count,
        "layer_types": layers(draw, count), "rope_parameters": rope_parameters(draw),
    }


def attention(draw):
    kv_heads, head_dim = draw.choice([1, 2, 3]), draw.choice([4, 8, 12])
    heads = kv_heads * draw.choice([1, 2, 3])
    return {
        **COMMON, "max_position_embeddings": 256, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "hidden_size": heads * head_dim, "intermediate_size": draw.choice([20, 33]), "rope_theta": draw.choice([1e4, 1e6]),
        "tie_word_embeddings": draw.random() < 0.3,
    }


def lfm2(draw):
    count = draw.choice([2, 3, 5])
    kinds = [{"linear_attention": "conv"}.get(kind, kind) for kind in layers(draw, count)]
    config = attention(draw) | {
        "model_type": "lfm2", "architectures": ["Lfm2ForCausalLM"], "num_hidden_layers": count, "layer_types": kinds,
        "norm_eps": draw.choice([1e-5, 1e-3]), "conv_L_cache": draw.choice([2, 3, 5]), "conv_bias": draw.random() < 0.5,
        "block_auto_adjust_ff_dim": draw.random() < 0.5, "block_multiple_of": draw.choice([4, 7]),
        "block_ffn_dim_multiplier": draw.choice([1.0, 1.3]),
    }
    del config["rms_norm_eps"], config["hidden_act"]
    return config


def bamba(draw):
    count, config = draw.choice([2, 3, 5]), attention(draw)
    inner = 2 * config["hidden_size"]
    heads = draw.choice([n for n in (2, 4, 6, 8, 12) if inner % n == 0])
    return config | {
        "model_type": "bamba", "architectures": ["BambaForCausalLM"], "num_hidden_layers": count,
        "attn_layer_indices": sorted(draw.sample(range(count), draw.randint(1, count - 1))), "mamba_n_heads": heads,
        "mamba_d_head": inner // heads, "mamba_n_groups": draw.choice([n for n in (1, 2, 3) if heads % n == 0]),
        "mamba_d_state": draw.choice([3, 8, 17]), "mamba_d_conv": draw.choice([2, 4]), "mamba_expand": 2,
        "mamba_chunk_size": draw.choice([16, 64]), "mamba_conv_bias": draw.random() < 0.5,
        "mamba_proj_bias": draw.random() < 0.5, "attention_bias": draw.random() < 0.3, "mlp_bias": draw.random() < 0.3,
        "rms_norm_eps": draw.choice([1e-5, 1e-3]), "time_step_limit": draw.choice([[0.0, 1e9], [0.3, 0.9]]),
    }


def lfm2_moe(draw):
    count = draw.choice([5, 8])
    dropped = ("block_auto_adjust_ff_dim", "block_multiple_of", "block_ffn_dim_multiplier")
    return {key: value for key, value in lfm2(draw).items() if key not in dropped} | {
        "model_type": "lfm2_moe", "architectures": ["Lfm2MoeForCausalLM"], "moe_intermediate_size": draw.choice([9, 16]),
        "num_dense_layers": draw.choice([0, 1]), "num_experts": count, "num_experts_per_tok": draw.randint(1, 3),
        "use_expert_bias": draw.random() < 0.7, "norm_topk_prob": draw.random() < 0.7,
        "routed_scaling_factor": draw.choice([1.0, 2.5]),
    }


def jamba(draw):
    count = draw.choice([4, 5])
    config = attention(draw)
    del config["rope_theta"]
    return config | {
        "model_type": "jamba", "architectures": ["JambaForCausalLM"], "num_hidden_layers": count, "hidden_act": "silu",
        "num_experts": draw.choice([1, 4, 6]), "num_experts_per_tok": 1, "attn_layer_period": draw.choice([2, 3]),
        "attn_layer_offset": draw.choice([0, 1]), "expert_layer_period": 2, "expert_layer_offset": draw.choice([0, 1]),
        "mamba_d_state": draw.choice([3, 8, 17]), "mamba_d_conv": draw.choice([2, 4]), "mamba_expand": draw.choice([1, 2, 3]),
        "mamba_dt_rank": draw.choice([3, 10, "auto"]), "mamba_conv_bias": draw.random() < 0.5,
        "mamba_proj_bias": draw.random() < 0.5, "use_mamba_kernels": False,
    }


def scans(draw, kind, architecture):
    return {
        "model_type": kind, "architectures": [architecture], "vocab_size": 96, "hidden_size": draw.choice([24, 36, 60]),
        "num_hidden_layers": draw.choice([1, 2, 4]), "state_size": draw.choice([3, 8, 17]), "expand": 2,
        "conv_kernel": draw.choice([2, 4, 5]), "use_bias": draw.random() < 0.5, "use_conv_bias": draw.random() < 0.7,
        "layer_norm_epsilon": draw.choice([1e-5, 1e-3]), "residual_in_fp32": draw.random() < 0.5, "hidden_act": "silu",
        "tie_word_embeddings": draw.random() < 0.3, "torch_dtype": "bfloat16",
    }


def mamba(draw):
    return scans(draw, "mamba", "MambaForCausalLM") | {"time_step_rank": draw.choice([3, 10, "auto"])}


def mamba2(draw):
    config = scans(draw, "mamba2", "Mamba2ForCausalLM")
    heads = draw.choice([4, 8, 12])
    return config | {
        "num_heads": heads, "head_dim": 2 * config["hidden_size"] // heads, "n_groups": draw.choice([1, 2, 4]),
        "chunk_size": draw.choice([16, 64]), "time_step_limit": draw.choice([[0.0, 1e9], [0.3, 0.9]]),
    }


def hybrid(family):
    def make(draw):
        hybrids.draw.seed(draw.random())
        return kin.config_of(family) | {"vocab_size": 96, "max_position_embeddings": 256}

    return make


FAMILIES = {family: hybrid(family) for family in hybrids.FAMILIES} | {"lfm2": lfm2, "lfm2_moe": lfm2_moe, "bamba": bamba, "jamba": jamba, "mamba": mamba, "mamba2": mamba2, "qwen3_next": qwen3_next, "qwen3_5": qwen3_5, "qwen3_5_moe": qwen3_5_moe}


def apart(ours, theirs):
    """Beyond what writing in float32 costs, of the largest."""
    ours, theirs = ours.double().reshape(-1), theirs.double().reshape(-1)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def compare(assay, config, seed):
    """{name: how far apart}, logits and intermediates."""
    values, kind = dict(config), config["model_type"]
    if kind in hybrids.FAMILIES:
        shapes = {name: tuple(tensor.shape) for name, tensor in kin.checkpoint(config).items()}
    else:
        shapes = weights.checkpoint_shapes(AutoConfig.for_model(values.pop("model_type"), **json.loads(json.dumps(values))))
    tensors = weights.random_checkpoint(config, shapes, seed)
    draw = random.Random(seed)
    tokens = [draw.randrange(2, config["vocab_size"]) for _ in range(draw.randint(70, 140))]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        golden.write_plain(config, tensors, folder)
        with everything_double(), torch.no_grad():
            model = golden.load(folder, torch.float64)
            with (kin if kind in hybrids.FAMILIES else taps).recorded(model) as taken:
                logits = model(torch.tensor([tokens]), use_cache=False).logits[0]
        save_file({n: t.contiguous() for n, t in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
        command = [assay, "run", folder, "--tokens", ",".join(map(str, tokens)), "--precision", "f64", "-n", "0",
                   "--logits", folder / "logits.safetensors", "--dump", folder / "taps.safetensors", "--taps", ".*"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{done.stderr}\n{json.dumps(config)}")
        ours = weights.read(folder / "taps.safetensors")
        found = {"logits": apart(weights.read(folder / "logits.safetensors")["logits"], logits)}
    for name, value in taken.items():
        kind = name.rsplit(".", 1)[-1]
        if name in ours and kind not in ("router_choice", "router_weights"):
            found[name] = apart(ours[name], value)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assay", type=Path)
    parser.add_argument("families", nargs="*", choices=[[], *FAMILIES])
    parser.add_argument("--count", type=int, default=6)
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    failed = 0
    for family in options.families or FAMILIES:
        worst = {}
        for seed in range(options.count):
            config = FAMILIES[family](random.Random(f"{family} {seed}"))
            found = compare(options.assay.resolve(), config, seed)
            for name, value in found.items():
                kind = name.rsplit(".", 1)[-1]
                worst[kind] = max(worst.get(kind, 0), value)
            if not all(value <= MOST for value in found.values()):
                failed += 1
                first = next(name for name, value in found.items() if name != "logits" and not value <= MOST)
                print(f"{family} {seed}: apart from {first} on: {json.dumps(config)}")
        print(f"{family}: {options.count} models, at most {max(worst.values()):.1e} apart, of", ", ".join(sorted(worst)))
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
