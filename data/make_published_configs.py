#!/usr/bin/env python3
"""Writes data/fixtures/published_configs/<model>.json: the published hyperparameters of real models.

    data/make_published_configs.py

What a model's card, paper and config.json state about its shapes, attention, routing, rope, types and quantization,
as a table. Nothing else of a published config.json is here: no token ids, no dropout, no training or generation
settings, no versions. Each entry names its repository, whose card and config.json state the figures, and a paper where
there is one; the names of keys are those of the model's config class.

Tests hold what is made of these to totals and sizes that others published, to the tensors that `transformers` builds
(make_module_oracle.py) and, where the published files are at hand, to those, key by key.
"""
import json
import pathlib

OUT = pathlib.Path(__file__).parent / "fixtures" / "published_configs"

FP8_BLOCKS = {
    "quant_method": "fp8",
    "fmt": "e4m3",
    "activation_scheme": "dynamic",
    "weight_block_size": [128, 128],
}


def per_layer(layers, *parts):
    return [f"model.layers.{layer}.{part}" for layer in range(layers) for part in parts]


# Llama. arXiv:2307.09288 (Llama 2), arXiv:2407.21783 (Llama 3); 3.2 and 4: model cards.


def llama(model_type="llama", **own):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": model_type,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **own,
    }


def llama3_rope(factor, **own):
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        **own,
    }


LLAMA_2_7B = llama(  # meta-llama/Llama-2-7b-hf
    vocab_size=32000,
    hidden_size=4096,
    intermediate_size=11008,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=32,
    max_position_embeddings=4096,
    torch_dtype="float16",
)
LLAMA_31_8B = llama(  # meta-llama/Llama-3.1-8B
    vocab_size=128256,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    max_position_embeddings=131072,
    rope_theta=500000.0,
    rope_scaling=llama3_rope(8.0),
    attention_bias=False,
    mlp_bias=False,
)
LLAMA_32_1B = LLAMA_31_8B | {  # meta-llama/Llama-3.2-1B-Instruct
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "head_dim": 64,
    "rope_scaling": llama3_rope(32.0),
    "tie_word_embeddings": True,
}
# meta-llama/Llama-4-Scout-17B-16E-Instruct: the language model of a model that sees. `intermediate_size` is an
# expert's width, `intermediate_size_mlp` that of a dense layer.
LLAMA_4_SCOUT_TEXT = {
    "model_type": "llama4_text",
    "vocab_size": 202048,
    "hidden_size": 5120,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "num_local_experts": 16,
    "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 1,
    "attention_chunk_size": 8192,
    "attention_bias": False,
    "use_qk_norm": True,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 10485760,
    "rope_theta": 500000.0,
    "rope_scaling": llama3_rope(16.0, high_freq_factor=1.0),
    "torch_dtype": "bfloat16",
}
LLAMA_4_SCOUT = {
    "architectures": ["Llama4ForConditionalGeneration"],
    "model_type": "llama4",
    "text_config": LLAMA_4_SCOUT_TEXT,
    "torch_dtype": "bfloat16",
}

# Mistral. arXiv:2310.06825 (7B), arXiv:2401.04088 (Mixtral); v0.3 widened the vocabulary to 32768 and has no window.

MISTRAL_7B = llama(  # mistralai/Mistral-7B-Instruct-v0.3
    "mistral",
    architectures=["MistralForCausalLM"],
    vocab_size=32768,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    max_position_embeddings=32768,
    rope_theta=1000000.0,
    sliding_window=None,
)
MIXTRAL_8X7B = MISTRAL_7B | {  # mistralai/Mixtral-8x7B-v0.1
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "vocab_size": 32000,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
}

# Qwen. arXiv:2309.16609 (Qwen), arXiv:2412.15115 (Qwen2.5), arXiv:2505.09388 (Qwen3); widths are in config.json only.

QWEN_7B_CHAT = {  # Qwen/Qwen-7B-Chat: `intermediate_size` is that of gate and up together
    "architectures": ["QWenLMHeadModel"],
    "model_type": "qwen",
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "kv_channels": 128,
    "no_bias": True,
    "layer_norm_epsilon": 1e-6,
    "rotary_emb_base": 10000,
    "rotary_pct": 1.0,
    "seq_length": 512,
    "use_dynamic_ntk": True,
    "use_logn_attn": True,
    "bf16": True,
    "tie_word_embeddings": False,
}


def qwen(**own):
    return {
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "use_sliding_window": False,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **own,
    }


QWEN25_7B = qwen(  # Qwen/Qwen2.5-7B-Instruct
    architectures=["Qwen2ForCausalLM"],
    model_type="qwen2",
    vocab_size=152064,
    hidden_size=3584,
    intermediate_size=18944,
    num_hidden_layers=28,
    num_attention_heads=28,
    num_key_value_heads=4,
    max_position_embeddings=32768,
    max_window_layers=28,
    sliding_window=131072,  # written down, and switched off by use_sliding_window
)


def qwen3(layers, **own):
    return qwen(
        vocab_size=151936,
        head_dim=128,
        attention_bias=False,
        max_position_embeddings=40960,
        num_hidden_layers=layers,
        max_window_layers=layers,
        sliding_window=None,
        **own,
    )


QWEN3_06B = qwen3(  # Qwen/Qwen3-0.6B
    28,
    architectures=["Qwen3ForCausalLM"],
    model_type="qwen3",
    hidden_size=1024,
    intermediate_size=3072,
    num_attention_heads=16,
    num_key_value_heads=8,
) | {"tie_word_embeddings": True}
QWEN3_8B = qwen3(  # Qwen/Qwen3-8B
    36,
    architectures=["Qwen3ForCausalLM"],
    model_type="qwen3",
    hidden_size=4096,
    intermediate_size=12288,
    num_attention_heads=32,
    num_key_value_heads=8,
)


def qwen3_moe(layers, **own):
    return qwen3(
        layers,
        architectures=["Qwen3MoeForCausalLM"],
        model_type="qwen3_moe",
        num_key_value_heads=4,
        num_experts=128,
        num_experts_per_tok=8,
        norm_topk_prob=True,
        decoder_sparse_step=1,
        mlp_only_layers=[],
        **own,
    )


def qwen3_fp8(config):
    """Both FP8 repositories leave the head, every router and every layer's two norms as they were."""
    untouched = per_layer(config["num_hidden_layers"], "input_layernorm", "mlp.gate", "post_attention_layernorm")
    return config | {"quantization_config": FP8_BLOCKS | {"modules_to_not_convert": ["lm_head", *untouched]}}


QWEN3_30B = qwen3_moe(  # Qwen/Qwen3-30B-A3B, and -FP8
    48,
    hidden_size=2048,
    intermediate_size=6144,
    moe_intermediate_size=768,
    num_attention_heads=32,
)
QWEN3_235B = qwen3_moe(  # Qwen/Qwen3-235B-A22B, of which only -FP8 is written
    94,
    hidden_size=4096,
    intermediate_size=12288,
    moe_intermediate_size=1536,
    num_attention_heads=64,
)

# Gemma. arXiv:2408.00118 (Gemma 2), arXiv:2503.19786 (Gemma 3); what a Gemma 3 config leaves out are the
# defaults of Gemma3TextConfig.

GEMMA_2_9B = {  # google/gemma-2-9b-it
    "architectures": ["Gemma2ForCausalLM"],
    "model_type": "gemma2",
    "vocab_size": 256000,
    "hidden_size": 3584,
    "intermediate_size": 14336,
    "num_hidden_layers": 42,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "attention_bias": False,
    "query_pre_attn_scalar": 224,
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
    "sliding_window": 4096,
    "hidden_activation": "gelu_pytorch_tanh",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 8192,
    "rope_theta": 10000.0,
    "torch_dtype": "bfloat16",
}
GEMMA_3_4B = {  # google/gemma-3-4b-it
    "architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "vision_config": {
        "model_type": "siglip_vision_model",
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "image_size": 896,
        "patch_size": 14,
        "vision_use_head": False,
    },
    "mm_tokens_per_image": 256,
    "torch_dtype": "bfloat16",
}

# DeepSeek. arXiv:2405.04434 (V2 and Lite), arXiv:2412.19437 (V3, section 4.2: 61 layers of width 7168, 128 heads of 128,
# latents of 512 and 1536, 64 rotated; 3 dense layers, 256 routed experts and one shared of 2048, 8 active, from at most
# 4 of 8 nodes), arXiv:2501.12948 (R1: V3's shapes), arXiv:2512.02556 (V3.2 and its indexer).


def deepseek_yarn(mscale):
    return {
        "type": "yarn",
        "factor": 40,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": mscale,
        "mscale_all_dim": mscale,
        "original_max_position_embeddings": 4096,
    }


DEEPSEEK_V31 = {  # nvidia/DeepSeek-V3.1-NVFP4, whose quantization stands in a file of its own
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "vocab_size": 129280,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "num_hidden_layers": 61,
    "num_nextn_predict_layers": 1,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "attention_bias": False,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "moe_layer_freq": 1,
    "n_group": 8,
    "topk_group": 4,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 163840,
    "rope_theta": 10000,
    "rope_scaling": deepseek_yarn(1.0),
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
DEEPSEEK_V3 = DEEPSEEK_V31 | {"quantization_config": FP8_BLOCKS}  # deepseek-ai/DeepSeek-V3 and -R1
DEEPSEEK_V32 = DEEPSEEK_V31 | {  # deepseek-ai/DeepSeek-V3.2
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "index_n_heads": 64,
    "index_head_dim": 128,
    "index_topk": 2048,
    "quantization_config": FP8_BLOCKS | {"scale_fmt": "ue8m0"},
}
DEEPSEEK_V2_LITE = DEEPSEEK_V31 | {  # deepseek-ai/DeepSeek-V2-Lite
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "vocab_size": 102400,
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "greedy",
    "scoring_func": "softmax",
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
    "rope_scaling": deepseek_yarn(0.707),
}
del DEEPSEEK_V2_LITE["num_nextn_predict_layers"]

# arXiv:2507.20534 (Kimi K2: 384 experts, 64 heads, one dense layer, no groups). moonshotai/Kimi-K2-Instruct.
KIMI_K2 = DEEPSEEK_V3 | {
    "model_type": "kimi_k2",
    "vocab_size": 163840,
    "num_nextn_predict_layers": 0,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "n_routed_experts": 384,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "routed_scaling_factor": 2.827,
    "max_position_embeddings": 131072,
    "rope_theta": 50000.0,
    "rope_scaling": deepseek_yarn(1.0) | {"factor": 32.0, "beta_fast": 1.0},
}

# Others.

GPT_OSS_20B = {  # openai/gpt-oss-20b; arXiv:2508.10925
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "vocab_size": 201088,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_hidden_layers": 24,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "attention_bias": True,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "sliding_window": 128,
    "swiglu_limit": 7.0,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 131072,
    "rope_theta": 150000,
    "rope_scaling": {
        "rope_type": "yarn",
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 4096,
    },
    "tie_word_embeddings": False,
    "quantization_config": {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn",
            "model.layers.*.mlp.router",
            "model.embed_tokens",
            "lm_head",
        ],
    },
}
GLM_45 = {  # zai-org/GLM-4.5; arXiv:2508.06471
    "architectures": ["Glm4MoeForCausalLM"],
    "model_type": "glm4_moe",
    "vocab_size": 151552,
    "hidden_size": 5120,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_hidden_layers": 92,
    "num_nextn_predict_layers": 1,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "attention_bias": True,
    "use_qk_norm": True,
    "n_routed_experts": 160,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "n_group": 1,
    "topk_group": 1,
    "norm_topk_prob": True,
    "routed_scaling_factor": 2.5,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 131072,
    "partial_rotary_factor": 0.5,
    "rope_theta": 1000000,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
GLM_4_9B_CHAT = {  # THUDM/glm-4-9b-chat; arXiv:2406.12793
    "architectures": ["ChatGLMModel"],
    "model_type": "chatglm",
    "padded_vocab_size": 151552,
    "hidden_size": 4096,
    "ffn_hidden_size": 13696,
    "num_layers": 40,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "kv_channels": 128,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "add_bias_linear": False,
    "add_qkv_bias": True,
    "rmsnorm": True,
    "post_layer_norm": True,
    "layernorm_epsilon": 1.5625e-07,
    "rope_ratio": 500,
    "seq_length": 512,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
MINIMAX_M25 = {  # MiniMaxAI/MiniMax-M2.5
    "architectures": ["MiniMaxM2ForCausalLM"],
    "model_type": "minimax_m2",
    "vocab_size": 200064,
    "hidden_size": 3072,
    "intermediate_size": 1536,
    "num_hidden_layers": 62,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "use_qk_norm": True,
    "qk_norm_type": "per_layer",
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
    "shared_intermediate_size": 0,
    "scoring_func": "sigmoid",
    "use_routing_bias": True,
    "use_mtp": True,
    "num_mtp_modules": 3,
    "mtp_transformer_layers": 1,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 196608,
    "rotary_dim": 64,
    "rope_theta": 5000000,
    "tie_word_embeddings": False,
    "quantization_config": FP8_BLOCKS
    | {"fmt": "float8_e4m3fn", "modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"]},
}
PHI_4 = {  # microsoft/phi-4; arXiv:2412.08905
    "architectures": ["Phi3ForCausalLM"],
    "model_type": "phi3",
    "vocab_size": 100352,
    "hidden_size": 5120,
    "intermediate_size": 17920,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 10,
    "attention_bias": False,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 16384,
    "original_max_position_embeddings": 16384,
    "rope_theta": 250000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
BAICHUAN2_7B = {  # baichuan-inc/Baichuan2-7B-Chat; arXiv:2309.10305
    "architectures": ["BaichuanForCausalLM"],
    "model_type": "baichuan",
    "vocab_size": 125696,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
MINICPM3_4B = {  # openbmb/MiniCPM3-4B, without the 16 factors of its longrope, which turn angles and shape nothing
    "architectures": ["MiniCPM3ForCausalLM"],
    "vocab_size": 73448,
    "hidden_size": 2560,
    "intermediate_size": 6400,
    "num_hidden_layers": 62,
    "num_attention_heads": 40,
    "num_key_value_heads": 40,
    "q_lora_rank": 768,
    "kv_lora_rank": 256,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "scale_emb": 12,
    "scale_depth": 1.4,
    "dim_model_base": 256,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
}
GPT2_LARGE = {  # openai-community/gpt2-large; "Language Models are Unsupervised Multitask Learners"
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 50257,
    "n_embd": 1280,
    "n_head": 20,
    "n_layer": 36,
    "n_positions": 1024,
    "n_ctx": 1024,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
}

MODELS = {
    "Baichuan2-7B": BAICHUAN2_7B,
    "DeepSeek-R1": DEEPSEEK_V3,
    "DeepSeek-V2-Lite": DEEPSEEK_V2_LITE,
    "DeepSeek-V3": DEEPSEEK_V3,
    "DeepSeek-V3.1-NVFP4": DEEPSEEK_V31,
    "DeepSeek-V3.2": DEEPSEEK_V32,
    "GLM-4.5": GLM_45,
    "Kimi-K2-Instruct": KIMI_K2,
    "Llama-2-7b-hf": LLAMA_2_7B,
    "Llama-3.1-8B": LLAMA_31_8B,
    "Llama-3.2-1B-Instruct": LLAMA_32_1B,
    "Llama-4-Scout-17B-16E-Instruct": LLAMA_4_SCOUT,
    "MiniCPM3-4B": MINICPM3_4B,
    "MiniMax-M2.5": MINIMAX_M25,
    "Mistral-7B-Instruct-v0.3": MISTRAL_7B,
    "Mixtral-8x7B-v0.1": MIXTRAL_8X7B,
    "Qwen-7B-Chat": QWEN_7B_CHAT,
    "Qwen2.5-7B-Instruct": QWEN25_7B,
    "Qwen3-0.6B": QWEN3_06B,
    "Qwen3-235B-A22B-FP8": qwen3_fp8(QWEN3_235B),
    "Qwen3-30B-A3B": QWEN3_30B,
    "Qwen3-30B-A3B-FP8": qwen3_fp8(QWEN3_30B),
    "Qwen3-8B": QWEN3_8B,
    "gemma-2-9b-it": GEMMA_2_9B,
    "gemma-3-4b-it": GEMMA_3_4B,
    "glm-4-9b-chat": GLM_4_9B_CHAT,
    "gpt-oss-20b": GPT_OSS_20B,
    "gpt2-large": GPT2_LARGE,
    "phi-4": PHI_4,
}


def text(config):
    """A key a line, sorted; what a key holds stays on its line."""
    lines = (f"  {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(config.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"


OUT.mkdir(exist_ok=True)
for name, config in MODELS.items():
    (OUT / f"{name}.json").write_text(text(config))
print(f"{len(MODELS)} configs")
