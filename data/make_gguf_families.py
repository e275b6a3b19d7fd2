"""What llama.cpp makes of small models of every family that is written as GGUF: sha256 of the files `assay convert` must write.

    LLAMA_CPP=path/to/llama.cpp python data/make_gguf_families.py [NAME...]

For each entry of FAMILIES it lets transformers complete a small config of odd sizes (data/fixtures/configs and the changes given
here), writes it to data/fixtures/gguf_families/NAME.json, fills the tensors that transformers would save by a rule that the test
knows too (weight_of), and notes the digests of what the converter writes as F32, BF16, F16 and Q8_0 in
data/fixtures/gguf_families/EXPECTED.tsv; with LLAMA_QUANTIZE, of what llama-quantize makes of the F32 file too. There is no
tokenizer. Layers for multi-token prediction are left out, as by --no-mtp. KEEP=folder keeps the files.
Source: llama.cpp as vendored by llama-cpp-python 0.3.36.
"""
import csv
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import torch
import transformers
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [os.environ["LLAMA_CPP"], os.environ["LLAMA_CPP"] + "/gguf-py", str(HERE)]
sys.dont_write_bytecode = True

from conversion import ModelBase, ModelType, get_model_architecture, get_model_class  # noqa: E402
from conversion.base import gguf  # noqa: E402
from make_module_oracle import build, checkpoint_tensors  # noqa: E402

OUT = HERE / "fixtures/gguf_families"
CONVERTED = {"f32": "ALL_F32", "bf16": "MOSTLY_BF16", "f16": "MOSTLY_F16", "q8_0": "MOSTLY_Q8_0"}
QUANTIZE = os.environ.get("LLAMA_QUANTIZE")
QUANTIZED = ["q4_k_m", "q2_k"]
# name -> (config of data/fixtures/configs or a whole one, changes). None takes a key away, "+key" is written though the class does not know it.
FAMILIES = {
    "olmo2": ("olmo2", {"rope_theta": 500000.0}),
    "olmo3": ("olmo3", {"sliding_window": 9}),
    "olmo3-yarn": ("olmo3", {"sliding_window": 9, "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "rope_theta": 5e5,
                   "original_max_position_embeddings": 32, "beta_fast": 32.0, "beta_slow": 1.0}}),
    "olmo": ("olmo", {"attention_bias": False, "clip_qkv": 8.0}),
    "granite": ("granite", {"attention_multiplier": 0.25, "embedding_multiplier": 12.0, "residual_multiplier": 0.22,
                "logits_scaling": 8.0, "mlp_bias": False}),
    "smollm3": ("smollm3", {"rope_theta": 5e6, "attention_bias": False, "mlp_bias": False}),
    "seed_oss": ("seed_oss", {"mlp_bias": False}),
    "exaone4": ("exaone4", {"num_hidden_layers": 64, "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 16, "hidden_size": 24,
                "num_attention_heads": 3, "num_key_value_heads": 1, "vocab_size": 97, "rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192, "rope_theta": 1e6}}),
    "exaone4-full": ("exaone4", {"+sliding_window": None, "layer_types": ["full_attention"] * 3}),
    "ernie4_5": ("ernie4_5", {"use_bias": False}),
    "arcee": ("arcee", {"attention_bias": False, "mlp_bias": False}),
    "stablelm": ("stablelm", {"use_parallel_residual": False, "qk_layernorm": False}),
    "stablelm-parallel": ("stablelm", {"use_parallel_residual": True, "qk_layernorm": False}),
    "nemotron": ("nemotron", {"head_dim": 8}),
    "hunyuan_v1_dense": ("hunyuan_v1_dense", {"attention_bias": False}),
    "cohere": ("cohere", {"logit_scale": 0.0625, "use_qk_norm": False}),
    "cohere2": ("cohere2", {"logit_scale": 0.25, "sliding_window": 9, "rotary_pct": 1.0}),
    "starcoder2": ("starcoder2", {}),
    "falcon-7b": ("falcon-7b-kind", {"num_kv_heads": 1}),
    "falcon-40b": ("falcon-40b-kind", {}),
    "phi3": ("phi3", {"original_max_position_embeddings": 64}),
    "phi3-longrope": ("phi3", {"hidden_size": 48, "original_max_position_embeddings": 512, "max_position_embeddings": 2048, "sliding_window": 40,
                      "rope_scaling": {"rope_type": "longrope", "rope_theta": 1e4, "long_factor": [1.0, 1.5, 2.5, 4.0], "short_factor": [1.0, 1.0, 1.25, 1.5]}}),
    "glm4": ("glm4", {}),
    "gemma": ("gemma", {}),
    "gemma2": ("gemma2", {"sliding_window": 9, "query_pre_attn_scalar": 20}),
    "gemma3": ("gemma3_text", {"num_hidden_layers": 7, "sliding_window": 9, "query_pre_attn_scalar": 20}),
    "phi": ("phi", {"qk_layernorm": False, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 160}),
    "gpt2": ("gpt2", {"n_ctx": 40}),
    "gpt_neox": ("gpt_neox", {"hidden_size": 24, "num_attention_heads": 3, "+rotary_pct": 0.25}),
    "mpt": ("mpt", {"attn_config": {"clip_qkv": 6.0, "alibi": True, "alibi_bias_max": 8}, "+architectures": ["MPTForCausalLM"]}),
    "bloom": ("bloom", {"hidden_size": 24, "n_head": 3}),
    "gpt_bigcode": ("gpt_bigcode", {"n_inner": 64}),
    "jais2": ("jais2", {}),
    "qwen2_moe": ("qwen2_moe", {"decoder_sparse_step": 1, "mlp_only_layers": []}),
    "dots1": ("dots1", {"num_key_value_heads": 4, "attention_bias": False, "+scoring_func": "sigmoid"}),
    "minimax_m2": ("minimax_m2", {"+rotary_dim": 10, "+scoring_func": "sigmoid"}),
    "glm4_moe": ("glm4_moe", {}),
    "glm4v": ("glm4v", {"text_config.num_attention_heads": 4, "text_config.hidden_size": 48, "text_config.num_key_value_heads": 2,
        "text_config.rope_parameters": {"rope_type": "default", "rope_theta": 5e5, "partial_rotary_factor": 0.5, "mrope_section": [1, 1, 1]},
        "text_config.attention_bias": True}),
    "glm4v-whole": ("glm4v", {"text_config.rope_parameters": {"rope_type": "default", "rope_theta": 5e5, "partial_rotary_factor": 1.0}}),
    "glm4v_moe": ("glm4v_moe", {"text_config.head_dim": 8, "text_config.attention_bias": True,
        "text_config.rope_parameters": {"rope_type": "default", "rope_theta": 5e5, "partial_rotary_factor": 0.5, "mrope_section": [1, 1, 0]}}),
    "glm4_moe-normed": ("glm4_moe", {"use_qk_norm": True, "attention_bias": True, "num_nextn_predict_layers": 0}),
    "gpt_oss": ("gpt_oss", {"sliding_window": 9}),
    "gpt_oss-mxfp4": ("gpt_oss", {"sliding_window": 9, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
                      "+quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn",
                      "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]}}),
    "llama4": ("llama4_text", {"rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.5,
               "original_max_position_embeddings": 8192, "rope_theta": 5e5}}),
    "olmoe": ("olmoe", {"attention_bias": False, "num_key_value_heads": 6}),
    "phimoe": ("phimoe", {"max_position_embeddings": 512, "+original_max_position_embeddings": 512, "+architectures": ["PhiMoEForCausalLM"]}),
    "dbrx": ("dbrx", {"d_model": 32, "n_heads": 4, "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 6.5},
             "ffn_config.hidden_size": 32}),
    "granitemoe": ("granitemoe", {}),
    "granitemoeshared": ("granitemoeshared", {}),
    "ernie4_5_moe": ("ernie4_5_moe", {"use_bias": False, "intermediate_size": 222, "moe_layer_interval": 1}),
    "mellum": ("mellum", {"mlp_layer_types": ["sparse"] * 6, "attention_bias": False, "rope_parameters": {
               kind: {"rope_type": "default", "rope_theta": 5e5} for kind in ("full_attention", "sliding_attention")}}),
    "afmoe": ("afmoe", {"attention_bias": False, "mup_enabled": True, "+route_norm": True}),
    "lfm2": ("lfm2", {"conv_bias": False, "full_attn_idxs": None, "layer_types": ["conv", "full_attention", "conv", "full_attention"]}),
    "lfm2_moe": ("lfm2_moe", {"conv_bias": False, "tie_word_embeddings": True, "hidden_size": 12, "num_attention_heads": 2}),
    "nemotron_h": ("nemotron_h", {"hybrid_override_pattern": "ME*EME", "mlp_bias": False, "mamba_num_heads": 8, "mamba_head_dim": 8, "n_groups": 4}),
    "cohere2_moe": ("cohere2_moe", {"attention_bias": False, "mlp_layer_types": ["dense", "sparse", "sparse"], "hidden_size": 12}),
    "mamba": ("mamba", {"use_bias": False, "expand": 2, "intermediate_size": None}),
    "falcon_mamba": ("falcon_mamba", {"use_bias": False}),
    "mamba2": ("mamba2", {"use_bias": False}),
    "qwen3_next": ("qwen3_next", {"head_dim": 24, "linear_value_head_dim": 10, "mlp_only_layers": []}),
    "qwen3_5": ("qwen3_5", {"text_config.head_dim": 24, "text_config.rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                "partial_rotary_factor": 0.25, "mrope_section": [1, 1, 1]}, "text_config.linear_value_head_dim": 10, "tie_word_embeddings": False, "text_config.tie_word_embeddings": False}),
    "qwen3_5_moe": ("qwen3_5_moe", {"text_config.head_dim": 24, "text_config.rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                    "partial_rotary_factor": 0.25, "mrope_section": [1, 1, 1]}, "text_config.linear_value_head_dim": 10}),
    "jamba": ("jamba", {"mamba_expand": 2, "mamba_proj_bias": False}),
    "qwen3_vl": ("qwen3_vl", {"text_config.attention_bias": False, "text_config.rope_scaling": {"rope_type": "default", "mrope_section": [4, 3, 3], "rope_theta": 5e5}}),
    "qwen3_vl_moe": ("qwen3_vl_moe", {"text_config.mlp_only_layers": [], "text_config.rope_scaling": {"rope_type": "default",
                     "mrope_section": [4, 3, 3], "rope_theta": 5e5}, "tie_word_embeddings": False,
                     "text_config.tie_word_embeddings": False}),
    "qwen2_5_vl": ("qwen2_5_vl", {"text_config.rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 1e6}}),
    "glm": ("glm", {"head_dim": 8, "rms_norm_eps": 1e-5, "max_position_embeddings": 48}),
}
# Whole configs as they are published, where the converter reads keys that transformers' classes rename, or there is no class. Names and
# shapes of their tensors are those of `assay paramcount --tensors` (ASSAY, its path), which other tests hold to published totals.
_LING = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 58,
         "moe_intermediate_size": 26, "num_experts": 5, "num_experts_per_tok": 2, "num_shared_experts": 2, "first_k_dense_replace": 1,
         "vocab_size": 211, "norm_topk_prob": True, "rms_norm_eps": 1e-6, "rope_theta": 600000, "max_position_embeddings": 128,
         "hidden_act": "silu", "tie_word_embeddings": False, "use_bias": False, "use_qkv_bias": False}
_STEP = {"hidden_size": 48, "intermediate_size": 58, "num_hidden_layers": 4, "num_attention_heads": 4, "num_attention_groups": 2, "head_dim": 20,
         "vocab_size": 211, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "attention_other_setting": {"attention_type": "sliding_attention",
         "num_attention_heads": 6, "num_attention_groups": 2, "head_dim": 20}, "sliding_window": 9, "moe_layers_enum": "2,3", "moe_num_experts": 5,
         "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"], "moe_top_k": 2, "moe_intermediate_size": 26,
         "share_expert_dim": 34, "partial_rotary_factors": [0.5, 1.0, 1.0, 0.5], "rope_theta": [5e6, 1e4, 1e4, 5e6], "swiglu_limits": [0, 0, 7.0, 0],
         "swiglu_limits_shared": [0, 0, 0, 16.0], "moe_router_scaling_factor": 3.0, "norm_expert_weight": True, "moe_router_activation": "sigmoid",
         "moe_every_n_layer": 1, "use_moe_router_bias": True, "tie_word_embeddings": False, "num_nextn_predict_layers": 0}
_M3 = {"hidden_size": 48, "intermediate_size": 26, "dense_intermediate_size": 58, "shared_intermediate_size": 26, "num_hidden_layers": 4,
       "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20, "vocab_size": 211, "max_position_embeddings": 128, "rms_norm_eps": 1e-6,
       "rope_theta": 5e6, "rotary_dim": 10, "partial_rotary_factor": 0.5, "hidden_act": "swigluoai", "use_qk_norm": True, "qk_norm_type": "per_head",
       "num_local_experts": 5, "num_experts_per_tok": 2, "n_shared_experts": 1, "scoring_func": "sigmoid", "use_routing_bias": True,
       "moe_layer_freq": [0, 1, 1, 1], "routed_scaling_factor": 2.0, "sparse_attention_config": {"use_sparse_attention": True, "sparse_index_dim": 14,
       "sparse_num_index_heads": 2, "sparse_topk_blocks": 3, "sparse_block_size": 4, "sparse_local_block": 1, "sparse_attention_freq": [0, 1, 1, 1]}}
_K25 = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "kimi_k2", "hidden_size": 48, "intermediate_size": 58, "num_hidden_layers": 3,
        "num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 22, "kv_lora_rank": 18, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8,
        "v_head_dim": 14, "n_routed_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 26, "n_shared_experts": 1, "n_group": 1,
        "topk_group": 1, "first_k_dense_replace": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.827, "scoring_func": "sigmoid",
        "topk_method": "noaux_tc", "rms_norm_eps": 1e-5, "rope_theta": 50000.0, "max_position_embeddings": 4096, "vocab_size": 211,
        "hidden_act": "silu", "tie_word_embeddings": False, "num_nextn_predict_layers": 0, "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0,
        "factor": 64.0, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 64, "type": "yarn"}}
_MINICPM3 = {"hidden_size": 48, "intermediate_size": 58, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 6, "q_lora_rank": 22,
             "kv_lora_rank": 18, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "vocab_size": 211, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
             "max_position_embeddings": 256, "hidden_act": "silu", "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256,
             "attention_bias": False}
# As inclusionAI publishes Ling 3: layers of latent attention at the end of each group, and behind the last whole one.
_LING3 = {"hidden_size": 48, "intermediate_size": 58, "num_hidden_layers": 4, "num_attention_heads": 6, "num_key_value_heads": 6, "head_dim": 10,
          "layer_group_size": 2, "first_k_dense_replace": 1, "q_lora_rank": None, "kv_lora_rank": 18, "qk_head_dim": 20, "qk_nope_head_dim": 12,
          "qk_rope_head_dim": 8, "v_head_dim": 14, "num_experts": 6, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "num_shared_experts": 1,
          "moe_intermediate_size": 26, "moe_shared_expert_intermediate_size": 34, "moe_router_enable_expert_bias": True, "norm_topk_prob": True,
          "routed_scaling_factor": 2.5, "score_function": "sigmoid", "scoring_func": "sigmoid", "topk_method": "noaux_tc", "no_kda_lora": True,
          "kda_safe_gate": True, "kda_lower_bound": -5, "short_conv_kernel_size": 4, "gated_attention_proj_granularity_type": "head_wise",
          "rms_norm_eps": 1e-6, "rope_theta": 6000000, "partial_rotary_factor": 0.5, "rope_interleave": True, "rotary_dim": 8, "use_bias": False,
          "use_qkv_bias": False, "use_qk_norm": True, "vocab_size": 211, "max_position_embeddings": 131072, "hidden_act": "silu",
          "tie_word_embeddings": False, "num_nextn_predict_layers": 1}
_V4 = {"architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "hidden_size": 48, "num_hidden_layers": 5, "num_attention_heads": 6,
       "num_key_value_heads": 1, "head_dim": 20, "qk_rope_head_dim": 8, "q_lora_rank": 22, "o_groups": 3, "o_lora_rank": 14, "sliding_window": 5,
       "compress_ratios": [0, 4, 128, 4, 4, 0], "compress_rope_theta": 160000, "index_n_heads": 3, "index_head_dim": 64, "index_topk": 2, "hc_mult": 4,
       "hc_sinkhorn_iters": 5, "hc_eps": 1e-6, "num_hash_layers": 2, "n_routed_experts": 6, "num_experts_per_tok": 2, "n_shared_experts": 1,
       "moe_intermediate_size": 26, "norm_topk_prob": True, "routed_scaling_factor": 1.5, "scoring_func": "sqrtsoftplus", "topk_method": "noaux_tc",
       "swiglu_limit": 0.5, "rms_norm_eps": 1e-6, "rope_theta": 10000, "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 16,
       "original_max_position_embeddings": 64, "type": "yarn"}, "max_position_embeddings": 1024, "vocab_size": 211, "hidden_act": "silu",
       "attention_bias": False, "tie_word_embeddings": False, "num_nextn_predict_layers": 1}
_K3 = {"model_type": "kimi_linear", "hidden_size": 48, "intermediate_size": 58, "num_hidden_layers": 5, "num_attention_heads": 6,
       "num_key_value_heads": 6, "q_lora_rank": 22, "kv_lora_rank": 18, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 14,
       "mla_use_nope": True, "mla_use_output_gate": True, "linear_attn_config": {"full_attn_layers": [3, 5], "kda_layers": [1, 2, 4], "head_dim": 10,
       "num_heads": 6, "short_conv_kernel_size": 4, "use_full_rank_gate": True, "gate_lower_bound": -5.0}, "first_k_dense_replace": 1,
       "moe_layer_freq": 1, "num_experts": 6, "num_experts_per_token": 2, "num_shared_experts": 2, "moe_intermediate_size": 26,
       "routed_expert_hidden_size": 28, "latent_moe_use_norm": True, "moe_renormalize": True, "moe_router_activation_func": "sigmoid",
       "num_expert_group": 1, "topk_group": 1, "topk_method": "noaux_tc", "use_grouped_topk": True, "routed_scaling_factor": 1.5,
       "hidden_act": "situ", "activation_situ_beta": 0.5, "activation_situ_linear_beta": 0.75, "attn_res_block_size": 2, "rms_norm_eps": 1e-5,
       "max_position_embeddings": 1024, "vocab_size": 211, "tie_word_embeddings": False, "num_nextn_predict_layers": 0}
_MINIMAX01 = {"architectures": ["MiniMaxText01ForCausalLM"], "model_type": "minimax_text_01", "hidden_size": 48, "intermediate_size": 26,
              "num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10, "rotary_dim": 6, "rope_theta": 1e7,
              "attn_type_list": [0] * 7 + [1], "num_local_experts": 5, "num_experts_per_tok": 2, "postnorm": True, "shared_intermediate_size": 0,
              "shared_moe_mode": "sigmoid", "layernorm_full_attention_alpha": 3.5565588200778455, "layernorm_full_attention_beta": 1.0,
              "layernorm_linear_attention_alpha": 3.5565588200778455, "layernorm_linear_attention_beta": 1.0,
              "layernorm_mlp_alpha": 3.5565588200778455, "layernorm_mlp_beta": 1.0, "rms_norm_eps": 1e-5, "hidden_act": "silu",
              "max_position_embeddings": 1024, "vocab_size": 211, "tie_word_embeddings": False}
# Of latent attention and an indexer, as the configs of 2026 say it.
_LATENT26 = {"hidden_size": 48, "intermediate_size": 58, "num_attention_heads": 6, "q_lora_rank": 22, "kv_lora_rank": 18, "qk_nope_head_dim": 12,
             "qk_rope_head_dim": 8, "v_head_dim": 14, "n_routed_experts": 6, "num_experts_per_tok": 2, "n_shared_experts": 1,
             "moe_intermediate_size": 26, "first_k_dense_replace": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5, "index_n_heads": 3,
             "index_topk": 6, "rms_norm_eps": 1e-5, "hidden_act": "silu", "max_position_embeddings": 1024, "vocab_size": 211,
             "attention_bias": False, "tie_word_embeddings": False}
_MAMBA4 = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 56, "rms_norm_eps": 1e-5,
           "rope_theta": 10000.0, "max_position_embeddings": 128, "hidden_act": "silu", "tie_word_embeddings": True, "mamba_expand": 2,
           "mamba_n_groups": 2, "mamba_d_state": 6, "mamba_d_conv": 4, "mamba_conv_bias": True, "mamba_proj_bias": False}
_LLAMA = {"hidden_size": 48, "intermediate_size": 58, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "vocab_size": 211,
          "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 128, "hidden_act": "silu", "tie_word_embeddings": False}
_MIMO = {"num_hidden_layers": 4, "hidden_size": 48, "num_attention_heads": 6, "num_key_value_heads": 1, "head_dim": 20, "v_head_dim": 14,
         "intermediate_size": 58, "vocab_size": 211, "max_position_embeddings": 128, "rope_theta": 5000000, "swa_rope_theta": 10000,
         "partial_rotary_factor": 0.334, "sliding_window": 9, "swa_num_attention_heads": 6, "swa_num_key_value_heads": 2,
         "swa_head_dim": 20, "swa_v_head_dim": 14, "hybrid_layer_pattern": [0, 1, 1, 1], "moe_layer_freq": [0, 1, 1, 1], "moe_intermediate_size": 26,
         "n_routed_experts": 5, "n_shared_experts": None, "num_experts_per_tok": 2, "norm_topk_prob": True, "scoring_func": "sigmoid", "n_group": 1,
         "topk_group": 1, "topk_method": "noaux_tc", "routed_scaling_factor": None, "hidden_act": "silu", "layernorm_epsilon": 1e-5,
         "attention_bias": False, "attention_value_scale": 0.707, "add_swa_attention_sink_bias": True, "add_full_attention_sink_bias": False,
         "tie_word_embeddings": False}
_GEMMA4 = {"vocab_size": 211, "hidden_size": 48, "intermediate_size": 58, "num_hidden_layers": 7, "num_attention_heads": 6, "num_key_value_heads": 2,
           "head_dim": 10, "global_head_dim": 20, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
           "sliding_attention", "sliding_attention", "full_attention"], "sliding_window": 9, "model_type": "gemma4_text", "rms_norm_eps": 1e-6,
           "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 128, "tie_word_embeddings": True, "final_logit_softcapping": 30.0,
           "rope_parameters": {"full_attention": {"partial_rotary_factor": 0.4, "rope_theta": 1e6, "rope_type": "proportional"},
           "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"}}, "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0,
           "moe_intermediate_size": None, "num_experts": None, "top_k_experts": None}
_GLM5 = {"hidden_size": 48, "intermediate_size": 58, "num_attention_heads": 6, "num_key_value_heads": 6, "vocab_size": 211, "q_lora_rank": 22,
         "kv_lora_rank": 18, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 14, "head_dim": 8, "n_routed_experts": 6,
         "num_experts_per_tok": 2, "moe_intermediate_size": 26, "n_shared_experts": 2, "routed_scaling_factor": 2.5, "norm_topk_prob": True,
         "scoring_func": "sigmoid", "topk_method": "noaux_tc", "n_group": 1, "topk_group": 1, "rms_norm_eps": 1e-5, "hidden_act": "silu",
         "max_position_embeddings": 256, "tie_word_embeddings": False, "num_nextn_predict_layers": 0}
PUBLISHED = {
    "gemma4": {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "tie_word_embeddings": True, "text_config": _GEMMA4 | {
        "hidden_size_per_layer_input": 16, "vocab_size_per_layer_input": 211, "num_kv_shared_layers": 3, "use_double_wide_mlp": True}},
    "gemma4-moe": {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "tie_word_embeddings": True,
        "text_config": _GEMMA4 | {"attention_k_eq_v": True, "num_global_key_value_heads": 3, "enable_moe_block": True, "num_experts": 5,
        "top_k_experts": 2, "moe_intermediate_size": 26}},
    "gemma4-dense": {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "tie_word_embeddings": True,
        "text_config": _GEMMA4},
    "gemma4_unified": {"architectures": ["Gemma4UnifiedForConditionalGeneration"], "model_type": "gemma4_unified", "tie_word_embeddings": True,
        "text_config": _GEMMA4 | {"model_type": "gemma4_unified_text"}},
    "kimi_linear": {"architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "vocab_size": 211, "hidden_size": 48,
        "intermediate_size": 58, "num_hidden_layers": 5, "num_attention_heads": 6, "num_key_value_heads": 6, "head_dim": 8, "q_lora_rank": None,
        "kv_lora_rank": 18, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 14, "num_experts": 6, "num_experts_per_token": 2,
        "moe_intermediate_size": 26, "num_shared_experts": 2, "first_k_dense_replace": 1, "moe_layer_freq": 1, "moe_renormalize": True,
        "moe_router_activation_func": "sigmoid", "num_expert_group": 1, "topk_group": 1, "routed_scaling_factor": 2.446, "hidden_act": "silu",
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "rope_scaling": None, "mla_use_nope": True, "model_max_length": 1048576,
        "linear_attn_config": {"full_attn_layers": [3, 5], "kda_layers": [1, 2, 4], "head_dim": 10, "num_heads": 6, "short_conv_kernel_size": 4},
        "tie_word_embeddings": False},
    "glm_moe_dsa": {"architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa", "num_hidden_layers": 6, "first_k_dense_replace": 3,
        "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"}, "index_n_heads": 3, "index_head_dim": 64, "index_topk": 5,
        "indexer_types": ["full", "full", "full", "shared", "shared", "full"]} | _GLM5,
    "glm4_moe_lite": {"architectures": ["Glm4MoeLiteForCausalLM"], "model_type": "glm4_moe_lite", "num_hidden_layers": 3, "first_k_dense_replace": 1,
        "rope_theta": 1000000, "partial_rotary_factor": 1.0} | _GLM5 | {"attention_bias": False},
    "kimi_k25": {"architectures": ["KimiK25ForConditionalGeneration"], "model_type": "kimi_k25", "text_config": _K25, "tie_word_embeddings": False},
    "step3p5": {"architectures": ["Step3p5ForCausalLM"], "model_type": "step3p5"} | _STEP,
    "step3p5-llama3": {"architectures": ["Step3p5ForCausalLM"], "model_type": "step3p5"} | _STEP | {"rope_scaling": {
        "rope_type": "llama3", "factor": 2.0, "original_max_position_embeddings": 131072, "low_freq_factor": 1.0, "high_freq_factor": 32.0}},
    "mimo_v2_flash": {"architectures": ["MiMoV2FlashForCausalLM"], "model_type": "mimo_v2_flash"} | _MIMO,
    "minimax_m3": {"architectures": ["MiniMaxM3SparseForConditionalGeneration"], "model_type": "minimax_m3_vl", "text_config": _M3,
                   "tie_word_embeddings": False},
    "granitemoehybrid": {"architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "intermediate_size": 34,
        "num_local_experts": 7, "num_experts_per_tok": 3, "shared_intermediate_size": 20, "mamba_n_heads": 4, "mamba_d_head": 16,
        "attention_multiplier": 0.25, "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 6.0,
        "layer_types": ["mamba", "mamba", "attention", "mamba"], "position_embedding_type": "nope"} | _MAMBA4,
    "granitemoehybrid-dense": {"architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "intermediate_size": 34,
        "num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 34, "mamba_n_heads": 4, "mamba_d_head": 16,
        "attention_multiplier": 0.25, "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 6.0,
        "layer_types": ["mamba", "attention", "mamba", "attention"], "position_embedding_type": "nope"} | _MAMBA4,
    "granitemoehybrid-attention": {"architectures": ["GraniteMoeHybridForCausalLM"], "model_type": "granitemoehybrid", "intermediate_size": 34,
        "num_local_experts": 0, "num_experts_per_tok": 0, "shared_intermediate_size": 34, "attention_multiplier": 0.25,
        "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 6.0, "position_embedding_type": "rope", "layer_types": ["attention"] * 4, "mamba_n_heads": 4, "mamba_d_head": 16} | _MAMBA4,
    "falcon_h1": {"architectures": ["FalconH1ForCausalLM"], "model_type": "falcon_h1", "intermediate_size": 23, "head_dim": 4, "mamba_n_heads": 4,
        "mamba_d_head": 4, "mamba_d_ssm": 16, "mamba_rms_norm": True, "mamba_norm_before_gate": False, "attention_in_multiplier": 0.75,
        "attention_out_multiplier": 0.9375, "key_multiplier": 0.4375, "ssm_in_multiplier": 1.25, "ssm_out_multiplier": 0.1767766952966369,
        "mlp_multipliers": [0.8838834764831844, 0.5859375], "ssm_multipliers": [0.3535533905932738, 0.25, 0.1767766952966369, 0.5, 0.3125],
        "lm_head_multiplier": 0.0195312, "embedding_multiplier": 5.656854249492381} | _MAMBA4 | {"tie_word_embeddings": False,
        "projectors_bias": False, "attention_bias": False, "mlp_bias": False},
    "falcon_h1-nonorm": {"architectures": ["FalconH1ForCausalLM"], "model_type": "falcon_h1", "intermediate_size": 23, "head_dim": 4, "mamba_n_heads": 4,
        "mamba_d_head": 4, "mamba_d_ssm": 16, "mamba_rms_norm": False, "attention_in_multiplier": 1.0, "attention_out_multiplier": 0.9375,
        "key_multiplier": 0.390625, "ssm_in_multiplier": 1.25, "ssm_out_multiplier": 0.23570226039551587,
        "mlp_multipliers": [0.8838834764831844, 0.5859375], "ssm_multipliers": [0.3535533905932738, 0.25, 0.3535533905932738, 0.5, 0.3535533905932738],
        "lm_head_multiplier": 0.0390625, "embedding_multiplier": 5.656854249492381} | _MAMBA4 | {"tie_word_embeddings": False},
    "bailing_moe": {"architectures": ["BailingMoeForCausalLM"], "model_type": "bailing_moe", "norm_head": False} | _LING | {"first_k_dense_replace": 0},
    "bailing_moe_v2": {"architectures": ["BailingMoeV2ForCausalLM"], "model_type": "bailing_moe_v2", "head_dim": 8, "partial_rotary_factor": 0.5,
        "n_group": 1, "topk_group": 1, "score_function": "sigmoid", "routed_scaling_factor": 2.5, "use_qk_norm": True,
        "moe_router_enable_expert_bias": True, "moe_shared_expert_intermediate_size": 26} | _LING | {"num_shared_experts": 1},
    "internlm2": {"architectures": ["InternLM2ForCausalLM"], "model_type": "internlm2", "bias": False} | _LLAMA,
    "minicpm": {"architectures": ["MiniCPMForCausalLM"], "model_type": "minicpm", "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 16} | _LLAMA,
    "chatglm": {"architectures": ["ChatGLMModel"], "model_type": "chatglm", "add_bias_linear": False, "add_qkv_bias": True, "ffn_hidden_size": 58,
        "hidden_size": 48, "kv_channels": 8, "layernorm_epsilon": 1.5625e-07, "multi_query_attention": True, "multi_query_group_num": 2,
        "num_attention_heads": 6, "num_hidden_layers": 3, "num_layers": 3, "rope_ratio": 500, "padded_vocab_size": 211, "seq_length": 128,
        "post_layer_norm": True, "rmsnorm": True, "tie_word_embeddings": False},
    "apertus": {"architectures": ["ApertusForCausalLM"], "model_type": "apertus"} | _LLAMA | {"hidden_act": "xielu", "attention_bias": False,
        "rope_theta": 12e6, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0}},
    "minicpm3": {"architectures": ["MiniCPM3ForCausalLM"], "model_type": "minicpm3"} | _MINICPM3,
    "minicpm3-longrope": {"architectures": ["MiniCPM3ForCausalLM"], "model_type": "minicpm3"} | _MINICPM3 | {"rope_scaling": {"type": "longrope",
        "long_factor": [1.0, 1.5, 2.25, 4.0], "short_factor": [1.0, 1.0, 1.25, 1.5], "original_max_position_embeddings": 256}},
    "bailing_moe_v3": {"architectures": ["BailingMoeV3ForCausalLM"], "model_type": "bailing_hybrid"} | _LING3,
    "bailing_moe_v3-lora": {"architectures": ["BailingMoeV3ForCausalLM"], "model_type": "bailing_hybrid"} | _LING3 | {"q_lora_rank": 22,
        "num_hidden_layers": 5, "expert_swiglu_limit_list": [None, 0, 0.01, 7.0, None, 5.0], "share_expert_swiglu_limit_list": [0, 0, 0, 0.02]},
    "hy_v3": {"architectures": ["HYV3ForCausalLM"], "model_type": "hy_v3"} | _LLAMA | {"num_hidden_layers": 4, "head_dim": 10, "num_experts": 6,
        "num_experts_per_tok": 2, "num_shared_experts": 1, "moe_intermediate_size": 26, "first_k_dense_replace": 1, "route_norm": True,
        "router_scaling_factor": 2.826, "moe_router_use_sigmoid": True, "moe_router_enable_expert_bias": True, "qk_norm": True,
        "num_nextn_predict_layers": 0},
    "hunyuan_v1_moe": {"architectures": ["HunYuanMoEV1ForCausalLM"], "model_type": "hunyuan_v1_moe"} | _LLAMA | {"head_dim": 10, "num_experts": 6,
        "moe_topk": [2, 2, 2], "num_shared_expert": [1, 1, 1], "moe_intermediate_size": [58, 58, 58], "use_qk_norm": True, "use_mixed_mlp_moe": True,
        "use_cla": False},
    "hunyuan_v1_moe-alpha": {"architectures": ["HunYuanMoEV1ForCausalLM"], "model_type": "hunyuan_v1_moe"} | _LLAMA | {"hidden_size": 256,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 128, "num_experts": 5, "num_hidden_layers": 2, "moe_topk": [2, 2],
        "num_shared_expert": [1, 1], "moe_intermediate_size": [58, 58], "use_qk_norm": True, "max_position_embeddings": 32768,
        "rope_scaling": {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 0.0, "type": "dynamic"}},
    "exaone_moe": {"architectures": ["ExaoneMoEForCausalLM"], "model_type": "exaone_moe"} | _LLAMA | {"num_hidden_layers": 5, "head_dim": 10,
        "num_experts": 6, "num_experts_per_tok": 2, "num_shared_experts": 2, "moe_intermediate_size": 26, "first_k_dense_replace": 1, "n_group": 2,
        "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
        "sliding_window": 5, "sliding_window_pattern": "LLLG", "layer_types": ["sliding_attention"] * 3 + ["full_attention", "sliding_attention"],
        "rope_scaling": {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}, "num_nextn_predict_layers": 0},
    "solar_open": {"architectures": ["SolarOpenForCausalLM"], "model_type": "solar_open"} | _LLAMA | {"head_dim": 10, "n_routed_experts": 6,
        "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 26, "first_k_dense_replace": 0, "n_group": 1, "topk_group": 1,
        "norm_topk_prob": True, "routed_scaling_factor": 1.5, "partial_rotary_factor": 1.0, "attention_bias": False},
    "mistral3": {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "tie_word_embeddings": False,
        "text_config": {"model_type": "mistral", "head_dim": 10, "sliding_window": None} | _LLAMA},
    "ministral3": {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "tie_word_embeddings": False,
        "text_config": {"model_type": "ministral3", "head_dim": 10, "sliding_window": None} | _LLAMA | {"rope_parameters": {"type": "yarn",
        "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 4, "beta_fast": 32.0, "beta_slow": 1.0,
        "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}}},
    "mistral4": {"architectures": ["Mistral4ForCausalLM"], "model_type": "mistral4"} | _GLM5 | {"num_hidden_layers": 3, "first_k_dense_replace": 1, "scoring_func": None,
        "topk_method": None, "rope_interleave": True, "rope_parameters": {"type": "yarn", "rope_type": "yarn", "rope_theta": 1e4, "factor": 16.0,
        "original_max_position_embeddings": 4, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        "partial_rotary_factor": 0.4}},
    "mistral3_mistral4": {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "tie_word_embeddings": False,
        "text_config": {"model_type": "mistral4"} | _GLM5 | {"num_hidden_layers": 3, "first_k_dense_replace": 1, "scoring_func": None,
        "topk_method": None, "rope_interleave": True, "rope_parameters": {"type": "yarn", "rope_type": "yarn", "rope_theta": 1e4, "factor": 16.0,
        "original_max_position_embeddings": 4, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
        "partial_rotary_factor": 0.4}}},
    "hrm_text": {"architectures": ["HrmTextForCausalLM"], "model_type": "hrm_text", "H_cycles": 2, "L_cycles": 3, "num_layers_per_stack": 2,
        "embedding_scale": 50.0, "prefix_lm": True} | _LLAMA | {"num_hidden_layers": 16, "num_key_value_heads": 6, "head_dim": 8},
    "youtu": {"architectures": ["YoutuForCausalLM"], "model_type": "youtu"} | _LLAMA | {"num_key_value_heads": 6, "q_lora_rank": 22,
        "kv_lora_rank": 18, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8, "v_head_dim": 14, "rope_interleave": True, "attention_bias": False,
        "mlp_bias": False, "tie_word_embeddings": True},
    "gemma3n": {"architectures": ["Gemma3nForConditionalGeneration"], "model_type": "gemma3n", "tie_word_embeddings": True, "text_config": {
        "model_type": "gemma3n_text", "hidden_size": 48, "intermediate_size": [58] * 23, "num_hidden_layers": 23, "num_attention_heads": 6,
        "num_key_value_heads": 2, "head_dim": 10, "vocab_size": 211, "vocab_size_per_layer_input": 197, "hidden_size_per_layer_input": 256,
        "laurel_rank": 64, "altup_num_inputs": 4, "altup_active_idx": 0, "altup_coef_clip": 120.0, "altup_correct_scale": True,
        "num_kv_shared_layers": 3, "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 4 + ["sliding_attention", "full_attention",
        "sliding_attention"], "activation_sparsity_pattern": [0.95] * 10 + [0.0] * 13, "sliding_window": 5, "rope_theta": 1e6,
        "rope_local_base_freq": 1e4, "rms_norm_eps": 1e-6, "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 256,
        "final_logit_softcapping": 30.0, "attention_bias": False, "tie_word_embeddings": True}},
    "nemotron_nas": {"architectures": ["DeciLMForCausalLM"], "model_type": "nemotron-nas"} | {key: value for key, value in _LLAMA.items()
        if key not in ("num_key_value_heads", "intermediate_size")} | {"num_hidden_layers": 5, "attention_bias": False, "mlp_bias": False,
        "rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}, "block_configs": [
        {"attention": {"n_heads_in_group": group, "no_op": group is None and not linear, "replace_with_linear": linear},
         "ffn": {"ffn_mult": mult, "no_op": mult is None, "replace_with_linear": False}}
        for group, linear, mult in ((3, False, 1.0), (None, True, 9.5), (None, False, 4.0), (2, False, None), (3, False, 5.25))]},
    "muse_glimmer": {"architectures": ["MuseGlimmerForConditionalGeneration"], "model_type": "muse_glimmer", "tie_word_embeddings": False,
        "text_config": {"model_type": "muse_glimmer_text"} | {key: value for key, value in _LLAMA.items() if key not in ("hidden_act",
        "rope_theta")} | {"num_hidden_layers": 5, "head_dim": 10, "hidden_activation": "silu", "final_logit_softcapping": 20.0,
        "qk_scale_factor": 3.87, "output_multiplier": 0.4, "post_norm_eps": 1e-8, "sliding_window": 5, "attention_bias": False,
        "layer_types": ["full_attention"] + ["sliding_attention"] * 3 + ["full_attention"],
        "rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}},
    "laguna": {"architectures": ["LagunaForCausalLM"], "model_type": "laguna"} | _LLAMA | {"num_hidden_layers": 5, "head_dim": 10, "num_experts": 6,
        "num_experts_per_tok": 2, "moe_intermediate_size": 26, "shared_expert_intermediate_size": 34, "moe_routed_scaling_factor": 2.5,
        "gating": "per-head", "num_attention_heads_per_layer": [6, 4, 4, 4, 6], "sliding_window": 5, "attention_bias": False,
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse", "sparse"], "layer_types": ["full_attention", "sliding_attention",
        "sliding_attention", "sliding_attention", "full_attention"], "rope_parameters": {"full_attention": {"rope_type": "yarn", "rope_theta": 5e5,
        "factor": 32.0, "original_max_position_embeddings": 64, "beta_fast": 64.0, "beta_slow": 1.0, "partial_rotary_factor": 0.4},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 1.0}}},
    "laguna-wide": {"architectures": ["LagunaForCausalLM"], "model_type": "laguna"} | _LLAMA | {"head_dim": 10, "num_experts": 6,
        "num_experts_per_tok": 2, "moe_intermediate_size": 26, "shared_expert_intermediate_size": 34, "moe_routed_scaling_factor": 2.5,
        "gating": "per-element", "sliding_window": None, "attention_bias": False, "mlp_layer_types": ["dense", "sparse", "sparse"],
        "layer_types": ["full_attention"] * 3, "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 5e5}}},
    "granite_swa": {"architectures": ["GraniteSWAForCausalLM"], "model_type": "granite_swa"} | _LLAMA | {"num_hidden_layers": 5,
        "attention_multiplier": 0.25, "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 8.0, "sliding_window": 5,
        "attention_bias": True, "mlp_bias": False, "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention",
        "full_attention"], "no_rope_layers": [1, 0, 1, 1, 0]},
    "granitemoe_swa": {"architectures": ["GraniteMoeSWAForCausalLM"], "model_type": "granitemoe_swa"} | _LLAMA | {"num_hidden_layers": 4,
        "intermediate_size": 26, "num_local_experts": 6, "num_experts_per_tok": 2, "shared_intermediate_size": 20, "attention_multiplier": 0.25,
        "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "logits_scaling": 8.0, "sliding_window": 5, "attention_bias": False,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"]},
    "hy_v4": {"architectures": ["HYV4ForCausalLM"], "model_type": "hy_v4"} | _LATENT26 | {"num_hidden_layers": 5, "num_key_value_heads": 2,
        "index_head_dim": 64, "indexer_types": ["full", "full", "shared", "shared", "full"], "hc_mult": 3, "hc_eps": 1e-6, "hc_magnitude": 1.5,
        "swiglu_limit": 0.25, "n_group": 1, "topk_group": 1, "mlp_layer_types": ["dense"] + ["sparse"] * 4, "enable_lm_head_fp32": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e7}, "num_nextn_predict_layers": 1},
    "dots3_note": {"architectures": ["Dots3NoteForCausalLM"], "model_type": "dots3_note_text"} | _LATENT26 | {"num_hidden_layers": 5,
        "num_key_value_heads": 6, "index_head_dim": 64, "layer_types": ["full_attention", "sliding_attention", "full_attention",
        "sliding_attention", "sliding_attention"], "sliding_window_size": 5, "moe_shared_expert_intermediate_size": 26, "scoring_func": "sigmoid",
        "topk_method": "noaux_tc", "apply_mla_qkv_lora_rescale": True, "rope_theta": 8e7, "swa_rope_theta": 50000.0, "swa_num_attention_heads": 4,
        "swa_num_key_value_heads": 4, "swa_q_lora_rank": 22, "swa_kv_lora_rank": 26, "swa_qk_nope_head_dim": 10, "swa_qk_rope_head_dim": 8,
        "swa_head_dim": 18, "swa_v_head_dim": 16, "head_dim": 20},
    "glm5_next": {"architectures": ["Glm5NextForConditionalGeneration"], "model_type": "glm5_next", "tie_word_embeddings": False,
        "text_config": {"model_type": "glm5_next_text"} | _LATENT26 | {"num_hidden_layers": 5, "num_key_value_heads": 6, "qk_rope_head_dim": 0,
        "index_head_dim": 64, "index_kpool": 2, "layer_types": ["linear_attention", "full_attention", "full_attention", "linear_attention",
        "full_attention"], "indexer_types": ["full", "full", "shared", "full", "full"], "mla_use_nope": True, "linear_attn_config": {
        "num_heads": 6, "head_dim": 10, "short_conv_kernel_size": 4, "gate_lower_bound": -5.0}, "hc_mult": 4, "hc_eps": 1e-6,
        "hc_sinkhorn_iters": 20, "swiglu_limit": 0.25, "mlp_layer_types": ["dense"] + ["sparse"] * 4}},
    "deepseek_v4": _V4,
    # As DeepSeek stores it: experts in FP4, other matrices of the layers in FP8, both with powers of two for scales.
    "deepseek_v4-fp4": _V4 | {"hidden_size": 64, "moe_intermediate_size": 32, "q_lora_rank": 32, "head_dim": 32, "o_lora_rank": 32, "swiglu_limit": 10.0,
        "expert_dtype": "fp4", "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "scale_fmt": "ue8m0",
        "weight_block_size": [128, 128]}},
    "kimi_k3": {"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "text_config": _K3, "tie_word_embeddings": False},
    "kimi_k3-lora": {"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "tie_word_embeddings": False,
        "text_config": _K3 | {"q_lora_rank": None, "latent_moe_use_norm": False, "mla_use_output_gate": False, "linear_attn_config":
        _K3["linear_attn_config"] | {"gate_lower_bound": None, "full_attn_layers": [2]}, "attn_res_block_size": 3, "activation_situ_linear_beta": 0.0}},
    "kimi_k3-mxfp4": {"architectures": ["KimiK3ForConditionalGeneration"], "model_type": "kimi_k3", "tie_word_embeddings": False,
        "text_config": _K3 | {"routed_expert_hidden_size": 64, "moe_intermediate_size": 32, "quantization_config": {"config_groups": {"group_0": {
        "format": "mxfp4-pack-quantized", "input_activations": None, "output_activations": None, "targets": ["Linear"], "weights": {
        "group_size": 32, "num_bits": 4, "scale_dtype": "torch.uint8", "strategy": "group", "symmetric": True, "type": "float", "dynamic": False}}},
        "format": "mxfp4-pack-quantized", "ignore": ["re:.*self_attn.*", "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
        "re:.*lm_head.*"], "quant_method": "compressed-tensors", "quantization_status": "compressed"}}},
    "minimax_text_01": _MINIMAX01,
    "deepseek_v32": {"architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32", "index_n_heads": 4, "index_head_dim": 64,
        "index_topk": 8} | {key: value for key, value in _K25.items() if key not in ("architectures", "model_type")} | {"n_group": 2},
    # EXAONE's configs say layer_norm_epsilon alone, of which the converter makes no key that llama.cpp reads: here both are said.
    "exaone": {"architectures": ["ExaoneForCausalLM"], "model_type": "exaone", "num_layers": 3, "activation_function": "silu",
        "layer_norm_epsilon": 1e-5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192,
        "low_freq_factor": 1.0, "high_freq_factor": 4.0}} | {key: value for key, value in _LLAMA.items() if key not in ("num_hidden_layers", "hidden_act")},
    "internlm3": {"architectures": ["InternLM3ForCausalLM"], "model_type": "internlm3", "qkv_bias": True, "bias": True, "head_dim": 10,
        "rope_scaling": {"rope_type": "dynamic", "factor": 6.0}} | _LLAMA,
    "orion": {"architectures": ["OrionForCausalLM"], "model_type": "orion", "max_sequence_length": 96} | _LLAMA,
    "pangu_embedded": {"architectures": ["PanguEmbeddedForCausalLM"], "model_type": "PanguEmbedded", "bias": True} | _LLAMA | {
        "rope_theta": 16000000.0, "tie_word_embeddings": True},
    "plamo3": {"architectures": ["Plamo3ForCausalLM"], "model_type": "plamo3", "head_dim": 20, "window_size": 5, "sliding_window_pattern": 2,
        "rope_local_theta": 10000, "hidden_activation": "swiglu"} | {key: value for key, value in _LLAMA.items() if key != "hidden_act"} | {
        "rope_theta": 1000000, "tie_word_embeddings": True},
    "sarvam_moe": {"architectures": ["SarvamMoEForCausalLM"], "model_type": "sarvam_moe", "head_dim": 8, "n_group": 1, "topk_group": 1,
        "score_function": "sigmoid", "routed_scaling_factor": 2.5, "use_qk_norm": True, "moe_router_enable_expert_bias": True,
        "moe_shared_expert_intermediate_size": 26} | _LING | {"num_shared_experts": 1},
    "deepseek_v1": {"architectures": ["DeepseekForCausalLM"], "model_type": "deepseek", "n_routed_experts": 5, "n_shared_experts": 2,
        "num_experts_per_tok": 2, "moe_intermediate_size": 26, "first_k_dense_replace": 1, "moe_layer_freq": 1, "norm_topk_prob": False,
        "scoring_func": "softmax", "attention_bias": False} | _LLAMA,
    "nanbeige": {"architectures": ["NanbeigeForCausalLM"], "model_type": "nanbeige", "head_dim": 10, "num_loops": 2, "skip_loop_final_norm": False} | _LLAMA,
}


# Kept as it is stored, whatever is asked for: `assay convert --to gguf:mxfp4`.
MXFP4 = {name: {"mxfp4": "MOSTLY_BF16"} for name in ("gpt_oss-mxfp4", "kimi_k3-mxfp4", "deepseek_v4-fp4")}
# Of a DeepSeek-V4 in any other form the converter makes nothing: its config is written for check_gguf_loads.py and the tests.
UNCONVERTED = {"deepseek_v4"}


def is_kept_buffer(name):
    """A table of tokens (DeepSeek-V4), or keys and values of layers that read another's (Gemma 3n)."""
    return name.endswith("tid2eid") or bool(re.search(r"self_attn\.[kv]_(proj|norm)", name))


def published_tensors(document):
    """Names and shapes of the language model's own tensors, as the module tree has them."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        path.write_text(json.dumps(document))
        table = subprocess.run([os.environ["ASSAY"], "paramcount", path, "--tensors", "--format", "csv"], check=True, capture_output=True,
                               text=True).stdout
    rows = csv.DictReader(table.splitlines())
    return {row["name"]: torch.Size(map(int, filter(None, row["shape"].split("x")))) for row in rows
            if row["mtp"] == "no" and (row["storage"] == "own" or is_kept_buffer(row["name"])) and
            row["part"] not in ("vision", "audio", "projector")}


def complete(name):
    if name in PUBLISHED:
        return PUBLISHED[name], published_tensors(PUBLISHED[name])
    base, changes = FAMILIES[name]
    document = dict(base) if isinstance(base, dict) else json.loads((HERE / f"fixtures/configs/{base}.json").read_text())
    for key, value in changes.items():
        if key[0] != "+":
            *path, last = key.split(".")
            inner = document[path[0]] if path else document
            inner[last] = value
    document = {key: value for key, value in document.items() if value is not None}
    model = build(document)
    said = model.config.to_diff_dict()
    said |= {"architectures": document["architectures"], "model_type": document["model_type"]}
    said.pop("transformers_version", None)
    for key in [key for key, value in changes.items() if value is None]:
        said.pop(key, None)
    said |= {key[1:]: value for key, value in changes.items() if key[0] == "+"}
    return said, {tensor: value.shape for tensor, value in checkpoint_tensors(model).items()}


def words_of(name, count):
    """A hash of name and place."""
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    with numpy.errstate(over="ignore"):
        x = numpy.uint64(seed) + numpy.arange(count, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        x ^= x >> numpy.uint64(33)
        x *= numpy.uint64(0xFF51AFD7ED558CCD)
        return x ^ x >> numpy.uint64(33)


def codes_of(name, count):
    """Of MXFP4 pairs of codes, and exponents from 118 to 125."""
    x = words_of(name, count)
    scale = name.endswith(("_scales", "scale"))
    return (x >> numpy.uint64(61)).astype(numpy.uint8) + 118 if scale else (x >> numpy.uint64(56)).astype(numpy.uint8)


def floats_of(name, count):
    """FP8 without its NaNs."""
    x = (words_of(name, count) >> numpy.uint64(56)).astype(numpy.uint8)
    return numpy.where(x & 0x7F == 0x7F, x ^ 1, x)


def table_of(name, tokens, chosen, experts):
    """Of DeepSeek-V4 which experts a token goes to: some that follow on each other, the first from words_of."""
    first = (words_of(name, tokens) >> numpy.uint64(33)).astype(numpy.int64)
    return (first[:, None] + numpy.arange(chosen)) % experts


def stored_as(name, tensor, shape, experts):
    """The tensors that one of the model is saved as."""
    def codes(part, size, codes_of=codes_of):
        return torch.from_numpy(codes_of(part, int(numpy.prod(size)))).reshape(size)
    if tensor.endswith("tid2eid"):
        return {tensor: torch.from_numpy(table_of(tensor, *shape, experts))}
    if name == "gpt_oss-mxfp4" and re.search(r"experts\.(gate_up|down)_proj$", tensor):  # [experts, in, out], by columns in blocks of 32
        scales = (shape[0], shape[2], shape[1] // 32)
        return {tensor + "_blocks": codes(tensor + "_blocks", (*scales, 16)), tensor + "_scales": codes(tensor + "_scales", scales)}
    if name == "kimi_k3-mxfp4" and ".experts." in tensor:
        packed, scale = tensor + "_packed", tensor + "_scale"
        return {packed: codes(packed, (shape[0], shape[1] // 2)), scale: codes(scale, (shape[0], shape[1] // 32))}
    if name == "deepseek_v4-fp4":
        scale, powers = tensor.removesuffix("weight") + "scale", torch.float8_e8m0fnu
        if ".experts." in tensor:
            return {tensor: codes(tensor, (shape[0], shape[1] // 2)).view(torch.int8),
                    scale: codes(scale, (shape[0], shape[1] // 32)).view(powers)}
        if re.search(r"attn\.(wq_a|wq_b|wkv|wo_a|wo_b)\.weight$|indexer\.wq_b|shared_experts", tensor):
            return {tensor: codes(tensor, shape, floats_of).view(torch.float8_e4m3fn),
                    scale: codes(scale, (-(-shape[0] // 128), -(-shape[1] // 128))).view(powers)}
        if re.search(r"hc_|attn_sink|\.ape$|gate\.bias", tensor):
            return {tensor: torch.from_numpy(weight_of(tensor, shape.numel())).reshape(shape)}
    return {tensor: torch.from_numpy(weight_of(tensor, shape.numel())).reshape(shape).bfloat16()}


def weight_of(name, count):
    """Multiples of 1/256 between -1/2 and 1/2.

    What is exponentiated has but four values, of which torch's exp is the nearest float: of others it may be the next."""
    x = words_of(name, count)
    if name.endswith("A_log"):
        return ((x >> numpy.uint64(62)).astype(numpy.float32) - 2) / 4
    return ((x >> numpy.uint64(56)).astype(numpy.float32) - 128) / 256


def convert(folder, out, file_type, vocabulary, more):
    # What is published is read as it is: a newer transformers' class would rename keys that the converter asks for.
    hparams = json.loads((folder / "config.json").read_text()) if folder.name in PUBLISHED else ModelBase.load_hparams(folder, False) | more
    architecture = get_model_architecture(hparams, ModelType.TEXT)
    # Mistral Small 4 is published within a Mistral 3 that sees.
    model_class = get_model_class({"Mistral4ForCausalLM": "Mistral3ForConditionalGeneration"}.get(architecture, architecture))
    instance = model_class(folder, gguf.LlamaFileType[file_type], out, small_first_shard=False, hparams=hparams)

    def no_vocabulary():
        instance._set_vocab_none()
        instance.gguf_writer.add_vocab_size(vocabulary)
    instance = getattr(instance, "impl", instance)  # Mistral 3's and 4's are one class around two
    instance.set_vocab = no_vocabulary
    instance._get_suppress_tokens = list  # MiniMax-01's asks the tokenizer
    instance.gguf_writer.kv_data[0].pop("tokenizer.chat_template", None)  # DeepSeek-V4's is the converter's own
    instance.write()


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def expected(name, scratch):
    said, tensors = complete(name)
    (OUT / f"{name}.json").write_text(json.dumps(said, indent=1, sort_keys=True) + "\n")
    folder = scratch / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text((OUT / f"{name}.json").read_text())
    made = {}
    sizes = said.get("text_config") or said
    for tensor, shape in tensors.items():
        made |= stored_as(name, tensor, shape, sizes.get("n_routed_experts"))
    save_file(made, folder / "model.safetensors", {"format": "pt"})
    vocabulary = sizes.get("vocab_size") or sizes["padded_vocab_size"]
    tokens = {"model": {"vocab": {str(i): i for i in range(vocabulary)}}, "added_tokens": []}
    (folder / "tokenizer.json").write_text(json.dumps(tokens))  # Gemma 3's converter counts them
    more = {key[1:]: value for key, value in FAMILIES.get(name, ("", {}))[1].items() if key[0] == "+"}
    lines = []
    if name in UNCONVERTED:
        return lines
    for file_type, constant in MXFP4.get(name, CONVERTED).items():
        convert(folder, scratch / f"{name}.{file_type}.gguf", constant, vocabulary, more)
        lines.append(f"{name}\t{file_type}\t{digest(scratch / f'{name}.{file_type}.gguf')}")
    for file_type in QUANTIZED if QUANTIZE and name not in MXFP4 else []:
        made = scratch / f"{name}.{file_type}.gguf"
        subprocess.run([QUANTIZE, scratch / f"{name}.f32.gguf", made, file_type], check=True, capture_output=True)
        lines.append(f"{name}\t{file_type}\t{digest(made)}")
    return lines


def main(names):
    OUT.mkdir(parents=True, exist_ok=True)
    ModelBase.no_mtp = True
    table = OUT / "EXPECTED.tsv"
    lines = table.read_text().splitlines()[1:] if table.exists() else []
    with tempfile.TemporaryDirectory() as scratch, torch.inference_mode():
        scratch = pathlib.Path(os.environ.get("KEEP", scratch))
        for name in names or [*FAMILIES, *PUBLISHED]:
            try:
                new = expected(name, scratch)
            except Exception as error:  # others are made all the same
                print(f"{name}: {error!r}", file=sys.stderr)
                if os.environ.get("STOP"):
                    raise
                continue
            lines = sorted([line for line in lines if line.split("\t")[0] != name] + new)
            table.write_text("# model\ttype\tsha256 of the GGUF\n" + "\n".join(lines) + "\n")
            print(name, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
