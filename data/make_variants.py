"""Makes data/fixtures/variants/: options of a config that data/models/ has at one value only, by `transformers`.

    python data/make_variants.py            # all
    python data/make_variants.py llama      # those of one model

A variant is a model of data/models/ whose config.json is changed in a few keys (VARIANTS.json), its weights as they are.
variants.safetensors holds of each a prompt and the logits of its last positions, in float64 and in bfloat16.
"""

import argparse
import json
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers.utils import logging

from make_models import checkpoint, prompts
from tiny_models import golden
from tiny_models.configs import CONFIGS, ORIGINAL, YARN_V3
from tiny_models.precision import everything_double

OUT = Path(__file__).parent / "fixtures" / "variants"
POSITIONS = 4  # the last ones
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": ORIGINAL}
LONGROPE = CONFIGS["phi3"]["rope_scaling"]
LONGROPE_MINICPM3 = CONFIGS["minicpm3"]["rope_scaling"]

ABSENT = "(absent)"
# What the class of a family says where its config is silent.
SILENT = {
    "llama": ("rope_theta", "rms_norm_eps", "rope_scaling"), "mistral": ("rope_theta", "rms_norm_eps"),
    "qwen2": ("rope_theta", "rms_norm_eps", "rope_scaling", "use_sliding_window"), "qwen3": ("rope_theta", "rms_norm_eps"),
    "qwen3-moe": ("rope_theta", "rms_norm_eps", "norm_topk_prob"), "mixtral": ("rope_theta", "rms_norm_eps"),
    "gemma2": ("rope_theta", "rms_norm_eps", "attn_logit_softcapping", "final_logit_softcapping", "query_pre_attn_scalar",
               "hidden_activation"),
    "gemma3": ("rope_theta", "rms_norm_eps", "rope_local_base_freq", "rope_scaling", "query_pre_attn_scalar"),
    "phi3": ("rope_theta", "rms_norm_eps", "rope_scaling"), "olmo2": ("rope_theta", "rms_norm_eps"),
    "gpt2": ("layer_norm_epsilon", "activation_function"), "gpt-oss": ("rope_theta", "rms_norm_eps", "swiglu_limit"),
    "minicpm3": ("rope_theta", "rms_norm_eps", "scale_emb", "scale_depth", "dim_model_base"),
    "deepseek-v2": ("rope_theta", "rms_norm_eps", "routed_scaling_factor", "norm_topk_prob", "topk_method"),
    "deepseek-v3": ("rope_theta", "rms_norm_eps", "routed_scaling_factor", "norm_topk_prob", "rope_interleave", "topk_method"),
    "kimi-k2": ("n_group", "topk_group"),
}

# model: {variant: changed keys}.
VARIANTS = {
    "llama": {
        "default": {"rope_scaling": None},
        "linear": {"rope_scaling": {"rope_type": "linear", "factor": 4.0}},
        "dynamic": {"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}, "max_position_embeddings": ORIGINAL},
        "llama3-steep": {"rope_scaling": {**CONFIGS["llama"]["rope_scaling"], "low_freq_factor": 2.0,
                                          "high_freq_factor": 16.0, "factor": 3.0}},
        "yarn": {"rope_scaling": YARN},
        "yarn-attention-factor": {"rope_scaling": {**YARN, "attention_factor": 1.3}},
        "yarn-mscale-alone": {"rope_scaling": {**YARN, "mscale": 0.6}},
        "yarn-mscale-all-dim-alone": {"rope_scaling": {**YARN, "mscale_all_dim": 0.6}},
        "yarn-two-mscales": {"rope_scaling": {**YARN, "mscale": 2.0, "mscale_all_dim": 0.6}},
        "yarn-betas": {"rope_scaling": {**YARN, "beta_fast": 4.0, "beta_slow": 0.25}},
        "yarn-not-truncated": {"rope_scaling": {**YARN, "beta_fast": 4.0, "beta_slow": 0.25, "truncate": False}},
        "yarn-of-a-silent-context": {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "truncate": False}, "max_position_embeddings": ABSENT},
        "yarn-slow-ramp": {"rope_scaling": {**YARN, "beta_fast": 4.0, "beta_slow": 1e-5}},
        "yarn-fast-ramp": {"rope_scaling": {**YARN, "beta_fast": 500.0, "beta_slow": 400.0}},
        "yarn-factor-1.5": {"rope_scaling": {**YARN, "factor": 1.5}},
        "epsilon": {"rms_norm_eps": 0.03},
    },
    "mistral": {"no-window": {"sliding_window": None}, "window-of-one": {"sliding_window": 1},
                "window-of-all": {"sliding_window": 24}},
    "qwen2": {
        "windows-in-the-second-layer": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
        "windows-in-both": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0},
        "windows-in-none": {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2},
    },
    "qwen3-moe": {"top-1": {"num_experts_per_tok": 1}, "top-8": {"num_experts_per_tok": 8},
                  "top-8-unnormalized": {"num_experts_per_tok": 8, "norm_topk_prob": False}},
    "mixtral": {"top-1": {"num_experts_per_tok": 1}, "every-expert": {"num_experts_per_tok": 6}},
    "gemma2": {
        "no-attention-cap": {"attn_logit_softcapping": None}, "no-final-cap": {"final_logit_softcapping": None},
        "tight-caps": {"attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.0},
        "gelu": {"hidden_activation": "gelu", "hidden_act": "gelu"}, "query-scalar": {"query_pre_attn_scalar": 100},
    },
    "gemma3": {
        "final-cap": {"final_logit_softcapping": 3.0},
        "unscaled": {"rope_scaling": None}, "local-base": {"rope_local_base_freq": 100.0},
        "pattern-of-two": {"sliding_window_pattern": 2},
        "window-of-one": {"sliding_window": 1},
    },
    "phi3": {
        "attention-factor": {"rope_scaling": {**LONGROPE, "attention_factor": 1.4}},
        "attention-factor-long": {"rope_scaling": {**LONGROPE, "attention_factor": 1.4}},
        "window": {"sliding_window": 6},
        "factor-1.5": {"max_position_embeddings": 3 * ORIGINAL // 2},
        "short-context": {"max_position_embeddings": ORIGINAL},
    },
    "olmo2": {"epsilon": {"rms_norm_eps": 0.03}},
    "gpt2": {"relu": {"activation_function": "relu"}, "gelu": {"activation_function": "gelu"},
             "epsilon": {"layer_norm_epsilon": 0.05}},
    "gpt-oss": {
        "limit": {"swiglu_limit": 0.75}, "top-4": {"num_experts_per_tok": 4, "experts_per_token": 4},
        "truncated": {"rope_scaling": {**CONFIGS["gpt-oss"]["rope_scaling"], "truncate": True}},
        "full": {"layer_types": ["full_attention"] * 3},
    },
    "minicpm3": {
        "no-scales": {"scale_depth": None, "dim_model_base": None},
        "scales": {"scale_emb": 7, "scale_depth": 2.5, "dim_model_base": 90},
        "attention-factor": {"rope_scaling": {**LONGROPE_MINICPM3, "attention_factor": 1.4}},
    },
    "deepseek-v2": {
        "greedy": {"topk_method": "greedy", "n_group": 1, "topk_group": 1}, "one-group": {"topk_group": 1},
        "unscaled": {"routed_scaling_factor": 1.0}, "mscale-alone": {"rope_scaling": {**YARN_V3, "mscale_all_dim": 0}},
    },
    "deepseek-v3": {
        "unnormalized": {"norm_topk_prob": False}, "scaling": {"routed_scaling_factor": 0.7},
        "one-group": {"topk_group": 1}, "no-groups": {"n_group": 1, "topk_group": 1},
        "top-6": {"num_experts_per_tok": 6}, "halves": {"rope_interleave": False}, "default-rope": {"rope_scaling": None},
        "attention-factor": {"rope_scaling": {**YARN_V3, "attention_factor": 1.3}},
        "two-mscales": {"rope_scaling": {**YARN_V3, "mscale": 1.8, "mscale_all_dim": 0.4}},
        "mscale-alone": {"rope_scaling": {**YARN_V3, "mscale": 1.8, "mscale_all_dim": 0}},
    },
}
for family, keys in SILENT.items():
    VARIANTS.setdefault(family, {})["silent"] = {key: ABSENT for key in keys}
LONG = {"attention-factor-long", "dynamic"}  # prompts of 40 tokens, beyond the original context


def changed(config, changes):
    return {key: value for key, value in {**config, **changes}.items() if value != ABSENT}


@torch.no_grad()
def of(config, decoded, name, length):
    """The first prompt whose routing no rounding turns, and the logits after it."""
    with tempfile.TemporaryDirectory() as folder:
        golden.write_plain(config, decoded, folder)
        with everything_double():
            double = golden.load(folder, torch.float64)
        half = golden.load(folder, torch.bfloat16)
        for tokens in prompts(name, length, config["vocab_size"]):
            rough, taps16 = golden._run(half, tokens)
            with everything_double():
                exact, taps64 = golden._run(double, tokens)
            if golden._same_choices(taps16, taps64) and golden.steady_choices(half, tokens, taps64):
                return torch.tensor(tokens, dtype=torch.int32), exact[-POSITIONS:], rough[-POSITIONS:]
    raise SystemExit(f"{name}: every prompt comes near a tie")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", choices=[[], *VARIANTS])
    options = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    stored = OUT / "variants.safetensors"
    kept = load_file(stored) if options.models and stored.exists() else {}
    tensors = {name: tensor for name, tensor in kept.items() if name.split(".")[0] not in options.models}
    for model in options.models or VARIANTS:
        base = CONFIGS[model]
        _, decoded = checkpoint(model, base)
        for variant, changes in VARIANTS[model].items():
            name = f"{model}.{variant}"
            tokens, exact, rough = of(changed(base, changes), decoded, name, 40 if variant in LONG else 24)
            largest = exact.abs().max().item()
            print(f"{name}: max|logit| {largest:.2f}, bf16 off {(rough - exact).abs().max().item() / largest:.1e}")
            tensors[f"{name}.tokens"] = tokens
            tensors[f"{name}.f64"] = exact.clone().contiguous()
            tensors[f"{name}.bf16"] = rough.to(torch.bfloat16).clone().contiguous()
    save_file(tensors, stored)
    known = {model: {v: c for v, c in sorted(all.items())} for model, all in VARIANTS.items()}
    stored.chmod(0o644)
    (OUT / "VARIANTS.json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
