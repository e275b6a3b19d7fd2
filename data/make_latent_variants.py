"""Makes data/fixtures/latent_variants/: as make_variants.py, of the models that have DeepSeek's attention.

    python data/make_latent_variants.py
"""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers.utils import logging

from make_models import checkpoint
from make_variants import ABSENT, changed, of
from tiny_models.configs import CONFIGS, YARN_V3

OUT = Path(__file__).parent / "fixtures" / "latent_variants"
SILENT = {key: ABSENT for key in ("rms_norm_eps", "norm_topk_prob", "routed_scaling_factor", "topk_method", "scoring_func")}
PLAIN = {"rope_scaling": None, "rope_theta": 500.0}
VARIANTS = {
    "deepseek-v32": {
        "one-key": {"index_topk": 1}, "every-key": {"index_topk": 24}, "plain-rope": {**PLAIN, "index_topk": 9},
        "silent": {**SILENT, "rope_theta": ABSENT},
        "one-group": {"n_group": 1, "topk_group": 1, "norm_topk_prob": False, "num_experts_per_tok": 5},
    },
    "glm-moe-dsa": {
        "one-key": {"index_topk": 1}, "every-key": {"index_topk": 30}, "silent": {**SILENT, "n_group": ABSENT, "topk_group": ABSENT},
        "yarn": {"rope_parameters": {**YARN_V3, "rope_type": "yarn", "rope_theta": 700.0}, "index_topk": 12},
        "types": {"first_k_dense_replace": ABSENT, "mlp_layer_types": ["dense"] + ["sparse"] * 4, "hidden_act": "gelu"},
    },
    "glm4-moe-lite": {
        "silent": SILENT, "halves": {"rope_interleave": False}, "groups": {"n_group": 3, "topk_group": 2},
        "yarn": {"rope_scaling": YARN_V3},
    },
    "axk1": {
        "silent": {**SILENT, "rms_norm_eps": 0.02}, "halves": {"rope_interleave": False},
        "one-group": {"n_group": 1, "topk_group": 1, "norm_topk_prob": False}, "plain-rope": PLAIN,
    },
    "deepseek-v4": {
        "one-entry": {"index_topk": 1, "hc_sinkhorn_iters": 1, "sliding_window": 1}, "every-entry": {"index_topk": 9, "hc_eps": 0.01},
        "plain-rope": {"rope_scaling": None, "compress_rope_theta": 300.0, "rope_theta": 77.0, "routed_scaling_factor": 0.7},
        "silent": {key: ABSENT for key in ("rms_norm_eps", "hc_eps", "hc_sinkhorn_iters", "routed_scaling_factor",
                                           "compress_rope_theta", "rope_theta", "swiglu_limit", "scoring_func")},
        "half-rope": {"qk_rope_head_dim": ABSENT, "partial_rotary_factor": 0.5, "mlp_layer_types": ["hash_moe"] + ["moe"] * 3},
        "two-ropes": {"rope_scaling": ABSENT, "rope_parameters": {
            "main": {"rope_type": "default", "rope_theta": 50.0, "partial_rotary_factor": 0.4},
            "compress": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 900.0,
                         "partial_rotary_factor": 0.4, "attention_factor": 1.1}}},
        "wide-rope": {"qk_rope_head_dim": 12, "rms_norm_eps": 0.02, "swiglu_limit": 0.3},
    },
    "longcat-flash": {
        "silent": {key: ABSENT for key in ("rms_norm_eps", "rope_theta", "routed_scaling_factor")},
        "yarn": {"rope_scaling": YARN_V3, "moe_topk": 2}, "top-6": {"moe_topk": 6, "rms_norm_eps": 0.02},
    },
    "youtu": {
        "silent": {"rms_norm_eps": ABSENT, "rope_theta": ABSENT, "rope_interleave": ABSENT},
        "halves": {"rope_interleave": False, "rms_norm_eps": 0.03}, "yarn": {"rope_scaling": YARN_V3},
    },
}


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    tensors = {}
    for model, variants in VARIANTS.items():
        _, decoded = checkpoint(model, CONFIGS[model])
        for variant, changes in variants.items():
            name = f"{model}.{variant}"
            tokens, exact, rough = of(changed(CONFIGS[model], changes), decoded, name, 24)
            print(f"{name}: max|logit| {exact.abs().max().item():.2f}")
            tensors |= {f"{name}.tokens": tokens, f"{name}.f64": exact.clone().contiguous(),
                        f"{name}.bf16": rough.to(torch.bfloat16).clone().contiguous()}
    save_file(tensors, OUT / "variants.safetensors")
    known = {model: dict(sorted(variants.items())) for model, variants in VARIANTS.items()}
    (OUT / "VARIANTS.json").write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
