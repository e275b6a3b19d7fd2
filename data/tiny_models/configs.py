"""config.json of each tiny model: the keys of the published one of its family, its sizes small and all different."""

ORIGINAL = 32  # the context a rope scaling stretches; prompts and greedy text cross it

YARN_V3 = {
    "beta_fast": 32, "beta_slow": 1, "factor": 4, "mscale": 1.0, "mscale_all_dim": 1.0,
    "original_max_position_embeddings": ORIGINAL, "type": "yarn",
}

COMMON = {
    "vocab_size": 96, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "hidden_act": "silu", "torch_dtype": "bfloat16",
    "attention_dropout": 0.0, "bos_token_id": 0, "eos_token_id": 1, "tie_word_embeddings": False,
}

LATENT = {
    "attention_bias": False, "kv_lora_rank": 28, "q_lora_rank": 36, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 12, "num_attention_heads": 4, "num_key_value_heads": 4, "hidden_size": 48,
}


def _deepseek_v3(**changes):
    return {
        **COMMON, **LATENT, "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
        "first_k_dense_replace": 1, "intermediate_size": 56, "moe_intermediate_size": 20, "moe_layer_freq": 1,
        "n_group": 4, "n_routed_experts": 12, "n_shared_experts": 1, "norm_topk_prob": True, "num_experts_per_tok": 3,
        "num_hidden_layers": 3, "num_nextn_predict_layers": 1, "rope_scaling": YARN_V3, "rope_theta": 10000,
        "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_group": 2, "topk_method": "noaux_tc", **changes,
    }


def _deepseek_v2(**changes):
    return {
        **COMMON, **LATENT, "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
        "first_k_dense_replace": 1, "intermediate_size": 56, "moe_intermediate_size": 20, "moe_layer_freq": 1,
        "n_group": 4, "n_routed_experts": 12, "n_shared_experts": 2, "norm_topk_prob": False, "num_experts_per_tok": 3,
        "num_hidden_layers": 3, "rope_theta": 10000, "scoring_func": "softmax", "topk_group": 2,
        "rope_scaling": {**YARN_V3, "mscale": 1.0, "mscale_all_dim": 0.707},
        "routed_scaling_factor": 16.0, "topk_method": "group_limited_greedy", **changes,
    }


def _qwen3_moe(**changes):
    return {
        **COMMON, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 40, "head_dim": 16,
        "intermediate_size": 72, "moe_intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_experts": 10, "num_experts_per_tok": 3, "norm_topk_prob": True,
        "decoder_sparse_step": 1, "mlp_only_layers": [], "rope_theta": 1000000.0, "attention_bias": False,
        "use_sliding_window": False, "sliding_window": None, **changes,
    }


DELTA_NET = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_key_head_dim": 10, "linear_value_head_dim": 7,
    "linear_conv_kernel_dim": 4,
}


def _qwen3_next(**changes):
    return {
        **COMMON, **DELTA_NET, "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "hidden_size": 40,
        "head_dim": 16, "intermediate_size": 56, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
        "partial_rotary_factor": 0.25, "rope_theta": 10000.0, "attention_bias": False, "decoder_sparse_step": 1,
        "mlp_only_layers": [1], "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 20,
        "shared_expert_intermediate_size": 28, "norm_topk_prob": True, "full_attention_interval": 2, **changes,
    }


def _qwen3_5(kind, architecture, **changes):
    """As it is published: the language model beside a tower (not here), its keys in text_config."""
    text = {key: value for key, value in COMMON.items() if key != "tie_word_embeddings"} | {
        **DELTA_NET, "model_type": f"{kind}_text", "hidden_size": 40, "head_dim": 16, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "attention_bias": False, "attn_output_gate": True,
        "layer_types": ["linear_attention", "linear_attention", "linear_attention", "full_attention"],
        "rope_parameters": {
            "mrope_interleaved": True, "mrope_section": [1, 1, 0], "partial_rotary_factor": 0.25,
            "rope_theta": 10000000.0, "rope_type": "default",
        },
        **changes,
    }
    return {
        "architectures": [architecture], "model_type": kind, "text_config": text,
        "tie_word_embeddings": text.get("tie_word_embeddings", False), "torch_dtype": "bfloat16",
    }


CONFIGS = {
    "qwen3-next": _qwen3_next(),
    "qwen3-5": _qwen3_5(
        "qwen3_5", "Qwen3_5ForConditionalGeneration", intermediate_size=56, tie_word_embeddings=True, linear_conv_kernel_dim=3,
    ),
    "qwen3-5-moe": _qwen3_5(
        "qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration", linear_num_value_heads=2, linear_value_head_dim=12,
        moe_intermediate_size=20, num_experts=6, num_experts_per_tok=3, shared_expert_intermediate_size=28,
        layer_types=["linear_attention", "full_attention", "linear_attention"], num_hidden_layers=3,
    ),
    "lfm2": {
        **{key: value for key, value in COMMON.items() if key != "rms_norm_eps"}, "architectures": ["Lfm2ForCausalLM"],
        "model_type": "lfm2", "hidden_size": 40, "intermediate_size": 72, "num_hidden_layers": 4, "num_attention_heads": 4,
        "num_key_value_heads": 2, "norm_eps": 1e-5, "rope_theta": 1000000.0, "conv_L_cache": 3, "conv_bias": True,
        "block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.2, "block_multiple_of": 8,
        "layer_types": ["conv", "conv", "full_attention", "conv"],
    },
    "lfm2-moe": {
        **{key: value for key, value in COMMON.items() if key != "rms_norm_eps"}, "architectures": ["Lfm2MoeForCausalLM"],
        "model_type": "lfm2_moe", "hidden_size": 40, "intermediate_size": 56, "moe_intermediate_size": 20, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "norm_eps": 1e-5, "rope_theta": 1000000.0, "conv_L_cache": 4,
        "conv_bias": False, "num_dense_layers": 1, "num_experts": 6, "num_experts_per_tok": 2, "use_expert_bias": True,
        "norm_topk_prob": True, "routed_scaling_factor": 1.5,
        "layer_types": ["conv", "conv", "full_attention", "conv"],
    },
    "jamba": {
        **COMMON, "architectures": ["JambaForCausalLM"], "model_type": "jamba", "hidden_size": 40, "intermediate_size": 28,
        "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 4, "num_experts_per_tok": 2,
        "attn_layer_period": 3, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1,
        "mamba_d_state": 6, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 7, "mamba_conv_bias": True,
        "mamba_proj_bias": False, "use_mamba_kernels": False,
    },
    "bamba": {
        **COMMON, "architectures": ["BambaForCausalLM"], "model_type": "bamba", "hidden_size": 40, "intermediate_size": 56,
        "num_hidden_layers": 3, "num_attention_heads": 5, "num_key_value_heads": 1, "rms_norm_eps": 1e-5,
        "attn_layer_indices": [1], "mamba_n_heads": 8, "mamba_d_head": 10, "mamba_n_groups": 2, "mamba_d_state": 6,
        "mamba_d_conv": 4, "mamba_expand": 2, "mamba_chunk_size": 16, "mamba_conv_bias": True, "mamba_proj_bias": False,
        "rope_theta": 10000.0,
    },
    "mamba": {
        "architectures": ["MambaForCausalLM"], "model_type": "mamba", "vocab_size": 96, "hidden_size": 40, "num_hidden_layers": 3,
        "state_size": 6, "expand": 2, "conv_kernel": 4, "time_step_rank": 7, "use_bias": True, "use_conv_bias": True,
        "layer_norm_epsilon": 1e-5, "residual_in_fp32": False, "hidden_act": "silu", "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    },
    "mamba2": {
        "architectures": ["Mamba2ForCausalLM"], "model_type": "mamba2", "vocab_size": 96, "hidden_size": 40,
        "num_hidden_layers": 3, "state_size": 6, "num_heads": 8, "head_dim": 10, "expand": 2, "n_groups": 2, "conv_kernel": 4,
        "use_bias": False, "use_conv_bias": True, "layer_norm_epsilon": 1e-5, "residual_in_fp32": False, "hidden_act": "silu",
        "chunk_size": 16, "tie_word_embeddings": False, "time_step_limit": [0.1, 0.8], "torch_dtype": "bfloat16",
    },
    "llama": {
        **COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 48, "head_dim": 16,
        "intermediate_size": 88, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5, "rope_theta": 500.0, "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False,
        "rope_scaling": {
            "factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
            "original_max_position_embeddings": ORIGINAL, "rope_type": "llama3",
        },
    },
    "llama-dynamic": {
        **COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 56,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "rope_theta": 10000.0,
        "max_position_embeddings": ORIGINAL, "rope_scaling": {"type": "dynamic", "factor": 4.0},
    },
    "mistral": {
        **COMMON, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 40, "head_dim": 16,
        "intermediate_size": 72, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "sliding_window": 7,
    },
    "qwen2": {
        **COMMON, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 40, "intermediate_size": 72,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 1000000.0,
        "use_sliding_window": False, "sliding_window": 16, "max_window_layers": 1,
        "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": ORIGINAL, "type": "yarn"},
    },
    "qwen3": {
        **COMMON, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 40, "head_dim": 16,
        "intermediate_size": 72, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "rope_theta": 1000000.0, "attention_bias": False, "tie_word_embeddings": True, "use_sliding_window": False,
        "sliding_window": None,
    },
    "qwen3-moe": _qwen3_moe(),
    "qwen3-moe-unnormalized": _qwen3_moe(norm_topk_prob=False, mlp_only_layers=[1], num_hidden_layers=3),
    "mixtral": {
        **COMMON, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_size": 40,
        "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 6, "num_experts_per_tok": 2, "rms_norm_eps": 1e-5, "rope_theta": 1000000.0,
        "sliding_window": None, "router_jitter_noise": 0.0,
    },
    "gemma2": {
        **COMMON, "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 40, "head_dim": 16,
        "intermediate_size": 72, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 24,
        "attn_logit_softcapping": 5.0, "final_logit_softcapping": 6.0, "sliding_window": 7, "rope_theta": 10000.0,
        "attention_bias": False, "tie_word_embeddings": True,
    },
    "gemma3": {
        **COMMON, "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_size": 40, "head_dim": 16,
        "intermediate_size": 72, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
        "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 24, "sliding_window": 7,
        "sliding_window_pattern": 3, "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "attention_bias": False, "tie_word_embeddings": True,
    },
    "phi3": {
        **COMMON, "architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_size": 64, "intermediate_size": 72,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5,
        "partial_rotary_factor": 0.75, "original_max_position_embeddings": ORIGINAL, "rope_theta": 10000.0,
        "sliding_window": None, "pad_token_id": 0,
        "rope_scaling": {
            "type": "longrope", "short_factor": [1.0, 1.02, 1.05, 1.1, 1.25, 1.4],
            "long_factor": [1.0, 1.6, 2.4, 3.6, 5.5, 9.0],
        },
    },
    "olmo2": {
        **COMMON, "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "hidden_size": 48,
        "intermediate_size": 72, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "rope_theta": 500000.0, "attention_bias": False,
    },
    "gpt2": {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new", "vocab_size": 96,
        "n_ctx": 128, "n_positions": 128, "n_embd": 40, "n_head": 4, "n_layer": 2, "n_inner": None,
        "layer_norm_epsilon": 1e-5, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0, "bos_token_id": 0,
        "eos_token_id": 1,
    },
    "gpt-oss": {
        **COMMON, "architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_size": 64, "head_dim": 16,
        "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_local_experts": 6, "num_experts_per_tok": 2, "experts_per_token": 2, "attention_bias": True,
        "rms_norm_eps": 1e-5, "sliding_window": 7, "swiglu_limit": 7.0, "rope_theta": 150000, "initial_context_length": ORIGINAL,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_scaling": {
            "beta_fast": 32.0, "beta_slow": 1.0, "factor": 4.0, "original_max_position_embeddings": ORIGINAL,
            "rope_type": "yarn", "truncate": False,
        },
        "quantization_config": {
            "modules_to_not_convert": [
                "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head",
            ],
            "quant_method": "mxfp4",
        },
    },
    "minicpm3": {
        **COMMON, **LATENT, "architectures": ["MiniCPM3ForCausalLM"], "model_type": "minicpm3", "intermediate_size": 56,
        "num_hidden_layers": 3, "scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "tie_word_embeddings": True,
        "rope_scaling": {
            "type": "longrope", "original_max_position_embeddings": ORIGINAL,
            "short_factor": [1.0, 1.05, 1.2, 1.5], "long_factor": [1.0, 1.7, 3.0, 6.0],
        },
    },
    "deepseek-v2": _deepseek_v2(),
    "deepseek-v2-lite": _deepseek_v2(
        q_lora_rank=None, n_group=1, topk_group=1, topk_method="greedy", routed_scaling_factor=1.0,
        rope_scaling={**YARN_V3, "mscale": 0.707, "mscale_all_dim": 0.707},
    ),
    "deepseek-v3": _deepseek_v3(),
    "deepseek-v3-fp8": _deepseek_v3(
        hidden_size=160, q_lora_rank=136, kv_lora_rank=40, intermediate_size=144, moe_intermediate_size=40,
        n_routed_experts=8, num_experts_per_tok=2, num_hidden_layers=2, num_nextn_predict_layers=0,
        quantization_config={
            "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128],
        },
    ),
    "kimi-k2": _deepseek_v3(
        model_type="kimi_k2", n_group=1, topk_group=1, n_routed_experts=16, num_experts_per_tok=4, rope_theta=50000.0,
        routed_scaling_factor=2.827, num_nextn_predict_layers=0, num_attention_heads=2, num_key_value_heads=2,
        rope_scaling={**YARN_V3, "beta_fast": 1.0, "factor": 4.0},
    ),
}

_INDEXER = {"index_n_heads": 10, "index_head_dim": 20, "index_topk": 7}
_INDEXED = {key: value for key, value in {**_deepseek_v3(), **_INDEXER}.items() if key != "rope_interleave"}
CONFIGS |= {
    "deepseek-v32": {**_INDEXED, "architectures": ["DeepseekV32ForCausalLM"], "model_type": "deepseek_v32"},
    "glm-moe-dsa": {
        **_INDEXED, "architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa", "n_group": 1, "topk_group": 1,
        "num_hidden_layers": 5, "indexer_types": ["full", "shared", "full", "shared", "shared"], "rms_norm_eps": 1e-5,
        "num_attention_heads": 3, "num_key_value_heads": 3, "index_topk": 5, "index_head_dim": 12, "rope_scaling": None,
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}, "indexer_rope_interleave": True,
    },
    "glm4-moe-lite": {
        **_deepseek_v3(num_nextn_predict_layers=0), "architectures": ["Glm4MoeLiteForCausalLM"],
        "model_type": "glm4_moe_lite", "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.8, "rms_norm_eps": 1e-5,
        "num_attention_heads": 5, "num_key_value_heads": 5, "rope_scaling": None, "rope_theta": 1000000.0,
    },
    "axk1": {
        **_deepseek_v3(num_nextn_predict_layers=0), "architectures": ["AXK1ForCausalLM"], "model_type": "axk1",
        "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
    },
    "youtu": {
        **COMMON, **LATENT, "architectures": ["YoutuForCausalLM"], "model_type": "youtu", "intermediate_size": 56,
        "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 3, "rope_theta": 1600000.0,
        "tie_word_embeddings": True, "rope_interleave": True, "mlp_bias": False,
    },
}

CONFIGS |= {
    "deepseek-v4": {
        **{key: value for key, value in COMMON.items() if key != "max_position_embeddings"},
        "architectures": ["DeepseekV4ForCausalLM"], "model_type": "deepseek_v4", "attention_bias": False,
        "compress_ratios": [0, 4, 128, 4], "compress_rope_theta": 16000, "hc_eps": 1e-6, "hc_mult": 3, "hc_sinkhorn_iters": 5,
        "head_dim": 20, "hidden_size": 36, "index_head_dim": 12, "index_n_heads": 10, "index_topk": 3,
        "max_position_embeddings": 256, "moe_intermediate_size": 16, "n_routed_experts": 7, "n_shared_experts": 1,
        "norm_topk_prob": True, "num_attention_heads": 6, "num_experts_per_tok": 2, "num_hash_layers": 1,
        "num_hidden_layers": 4, "num_key_value_heads": 1, "num_nextn_predict_layers": 0, "o_groups": 3, "o_lora_rank": 8,
        "q_lora_rank": 28, "qk_rope_head_dim": 8, "routed_scaling_factor": 1.5, "rope_theta": 10000,
        "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 4, "original_max_position_embeddings": 64, "type": "yarn"},
        "scoring_func": "sqrtsoftplus", "sliding_window": 9, "swiglu_limit": 0.8, "topk_method": "noaux_tc",
    },
}

CONFIGS |= {
    "longcat-flash": {
        **COMMON, **LATENT, "architectures": ["LongcatFlashForCausalLM"], "model_type": "longcat_flash", "num_layers": 2, "head_dim": 8,
        "ffn_hidden_size": 40, "expert_ffn_hidden_size": 20, "n_routed_experts": 7, "zero_expert_num": 4, "moe_topk": 3,
        "num_attention_heads": 3, "num_key_value_heads": 3, "routed_scaling_factor": 3.0, "rope_theta": 10000000.0,
        "rms_norm_eps": 1e-5, "router_bias": False, "zero_expert_type": "identity",
    },
}

# A prompt of 24 tokens is shorter than the original context, one of 40 is longer.
LONG_PROMPT = {"llama", "llama-dynamic", "qwen2", "phi3", "minicpm3", "gpt-oss", "deepseek-v3", "deepseek-v4"}
