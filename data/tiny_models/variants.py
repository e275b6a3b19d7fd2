"""Changes to the config.json of a model of data/models that leave its tensors as they are: one key after another that a
class of `transformers` reads, or ignores though others read it."""

REMOVED = object()  # the key is taken out

ACTIVATIONS = ["gelu", "relu", "gelu_pytorch_tanh"]
MORE_ACTIVATIONS = ["gelu_new", "gelu_fast", "gelu_accurate", "gelu_python", "swish"]  # of llama only
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
GATED = {
    "llama": "hidden_act", "mistral": "hidden_act", "qwen2": "hidden_act", "qwen3": "hidden_act",
    "qwen3-moe-unnormalized": "hidden_act", "mixtral": "hidden_act", "phi3": "hidden_act", "olmo2": "hidden_act",
    "minicpm3": "hidden_act", "deepseek-v2": "hidden_act", "deepseek-v3": "hidden_act", "gpt-oss": "hidden_act",
    "gemma2": "hidden_activation", "gemma3": "hidden_activation", "gpt2": "activation_function",
}
# Keys that some family's class reads, given to all of them.
ELSEWHERE = {
    "partial_rotary_factor": 0.5, "attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0, "sliding_window": 5,
    "layer_types": "alternating", "attention_multiplier": 0.5, "residual_multiplier": 0.5, "logits_scaling": 4.0,
    "embedding_multiplier": 3.0, "logit_scale": 0.25, "query_pre_attn_scalar": 7, "attention_chunk_size": 4,
    "use_qk_norm": True, "rope_interleave": False, "swiglu_limit": 0.5, "swiglu_alpha": 1.0, "scale_emb": 3,
    "scale_depth": 0.5, "dim_model_base": 64, "routed_scaling_factor": 3.0, "norm_topk_prob": True,
    "scale_attn_by_inverse_layer_idx": True, "scale_attn_weights": False, "reorder_and_upcast_attn": True,
    "rms_norm_eps": 0.05, "layer_norm_epsilon": 0.05, "layer_norm_eps": 0.05, "norm_eps": 0.05, "rope_theta": 50.0,
    "use_sliding_window": True, "max_window_layers": 0, "clip_qkv": 0.1, "is_causal": False,
    "use_bidirectional_attention": True, "attention_dropout": 0.5, "pretraining_tp": 2, "router_jitter_noise": 0.5,
    "hidden_act": "gelu", "hidden_activation": "relu", "activation_function": "relu", "topk_method": "greedy",
    "scoring_func": "softmax", "n_group": 1, "topk_group": 1, "rope_local_base_freq": 100.0,
    "original_max_position_embeddings": 8, "max_position_embeddings": 64, "num_experts_per_tok": 1,
    "rope_scaling": {"rope_type": "linear", "factor": 3.0},
    "rope_parameters": {"rope_type": "default", "rope_theta": 77.0},
}
MODELS = [*GATED, "deepseek-v2-lite", "qwen3-moe"]
# Not tried: a property of the class, which nothing may set; an alias that the value of n_positions contradicts.
LEFT_OUT = {("minicpm3", "logits_scaling"), ("gpt2", "max_position_embeddings")}


def refused_by_assay(model, key):
    """Switches whose other positions `transformers` computes, or leaves alone in eager attention, and assay names."""
    return (
        key in ("is_causal", "add_cross_attention")
        or (model == "gpt-oss" and key == "swiglu_alpha")
        or (model.startswith("gemma") and key == "use_bidirectional_attention")
        or (model == "deepseek-v3" and key in ("topk_method", "scoring_func"))
    )



def _alternating(config):
    count = config.get("num_hidden_layers", config.get("n_layer"))
    return [("sliding_attention", "full_attention")[i % 2] for i in range(count)]


def _special():
    """(model, key that is at stake, changes)"""
    both = {"rope_parameters": {"rope_type": "default", "rope_theta": 77.0}}
    for model in ("llama", "mistral", "qwen3", "olmo2", "qwen3-moe", "mixtral"):
        plain = {"rope_scaling": REMOVED}
        for scaling in (
            {"rope_type": "linear", "factor": 3.0}, {"rope_type": "dynamic", "factor": 3.0}, YARN, LLAMA3,
            {**YARN, "attention_factor": 1.7}, {**YARN, "mscale": 0.7, "mscale_all_dim": 1.1}, {**YARN, "mscale": 0.7},
            {**YARN, "beta_fast": 4, "beta_slow": 2}, {**YARN, "truncate": False}, {**YARN, "rope_theta": 99.0},
        ):
            yield model, "rope_scaling", {"rope_scaling": scaling}
            yield model, "rope_parameters", {**plain, "rope_parameters": {"rope_theta": 500.0, **scaling}}
            yield model, "partial_rotary_factor", {"rope_scaling": scaling, "partial_rotary_factor": 0.5}
            if model != "llama":
                break
        yield model, "rope_parameters", {"rope_scaling": {"rope_type": "linear", "factor": 3.0}, **both}
        yield model, "rope_scaling", {"rope_scaling": {"rope_type": "spiral", "factor": 3.0}}
        yield model, "rope_scaling", {"rope_scaling": {"rope_type": "default"}}
        yield model, "alpha", {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "alpha": 3.0}}
    yield "llama", "rope_scaling", {"rope_scaling": {"type": "dynamic", "factor": 3.0}, "max_position_embeddings": 16}
    yield "llama", "max_position_embeddings", {"rope_scaling": {"type": "dynamic", "factor": 3.0}, "max_position_embeddings": REMOVED}
    yield "llama", "rms_norm_eps", {"rms_norm_eps": REMOVED, "layer_norm_eps": 0.1}
    yield "mistral", "sliding_window", {"sliding_window": REMOVED}
    yield "mistral", "sliding_window", {"sliding_window": None}
    yield "qwen2", "use_sliding_window", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}
    yield "qwen2", "max_window_layers", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
    yield "qwen2", "layer_types", {"use_sliding_window": True, "sliding_window": 5, "layer_types": "alternating"}
    yield "qwen3", "use_sliding_window", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
    yield "qwen3", "layer_types", {"use_sliding_window": True, "sliding_window": 5, "layer_types": "alternating"}
    yield "qwen3-moe", "use_sliding_window", {"use_sliding_window": True, "sliding_window": 5}
    yield "qwen3-moe", "layer_types", {"use_sliding_window": True, "sliding_window": 5, "layer_types": "alternating"}
    yield "qwen3-moe", "norm_topk_prob", {"norm_topk_prob": REMOVED}
    yield "phi3", "layer_types", {"sliding_window": 5, "layer_types": "alternating"}
    yield "mixtral", "layer_types", {"sliding_window": 5, "layer_types": "alternating"}
    yield "phi3", "partial_rotary_factor", {"partial_rotary_factor": 0.5, "rope_scaling": None}
    yield "phi3", "rope_scaling", {"rope_scaling": None}
    factors = {"short_factor": [1.0, 1.02, 1.05, 1.1, 1.25, 1.4], "long_factor": [1.0, 1.6, 2.4, 3.6, 5.5, 9.0]}
    stated = {**factors, "original_max_position_embeddings": 32}
    yield "phi3", "rope_scaling", {"rope_scaling": {"type": "su", **stated}}
    yield "phi3", "rope_scaling", {"rope_scaling": {"type": "yarn", **factors}}
    yield "phi3", "rope_scaling", {"rope_scaling": {"type": "linear", "factor": 2.0}}
    yield "phi3", "attention_factor", {"rope_scaling": {"type": "longrope", **factors, "attention_factor": 1.3}}
    yield "phi3", "factor", {"rope_scaling": {"type": "longrope", **factors, "factor": 2.0}}
    yield "phi3", "original_max_position_embeddings", {"original_max_position_embeddings": REMOVED}
    inner = {"type": "longrope", **factors, "original_max_position_embeddings": 16}
    yield "phi3", "original_max_position_embeddings", {"original_max_position_embeddings": REMOVED, "rope_scaling": inner}
    yield "gemma2", "attn_logit_softcapping", {"attn_logit_softcapping": None}
    yield "gemma2", "final_logit_softcapping", {"final_logit_softcapping": None}
    yield "gemma2", "hidden_activation", {"hidden_activation": REMOVED, "hidden_act": "relu"}
    nested = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 123.0},
        "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 4567.0},
    }
    yield "gemma3", "rope_parameters", {"rope_scaling": REMOVED, "rope_parameters": nested}
    yield "gemma3", "rope_parameters", {"rope_parameters": nested}
    yield "gemma3", "rope_parameters", {"rope_scaling": REMOVED, "rope_theta": REMOVED, "rope_parameters": nested}
    yield "gemma3", "rope_scaling", {"rope_scaling": YARN}
    yield "gemma3", "sliding_window_pattern", {"sliding_window_pattern": 2}
    yield "gemma3", "sliding_window_pattern", {"sliding_window_pattern": REMOVED}
    yield "gemma3", "sliding_window", {"sliding_window": REMOVED}
    yield "gemma3", "query_pre_attn_scalar", {"query_pre_attn_scalar": REMOVED}
    yield "qwen2", "rope_parameters", {"rope_parameters": nested, "rope_scaling": REMOVED}
    yield "gpt2", "scale_attn_weights", {"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True}
    yield "gpt2", "layer_norm_epsilon", {"layer_norm_epsilon": 0.1}
    yield "gpt2", "add_cross_attention", {"add_cross_attention": True}
    yield "gpt-oss", "rope_scaling", {"rope_scaling": REMOVED}
    yield "gpt-oss", "rope_parameters", {"rope_scaling": REMOVED, "rope_parameters": {**YARN, "rope_theta": 1500.0, "truncate": False}}
    yield "gpt-oss", "truncate", {"rope_scaling": {**YARN}}
    yield "gpt-oss", "layer_types", {"layer_types": REMOVED}
    yield "gpt-oss", "sliding_window", {"sliding_window": REMOVED}
    for model in ("deepseek-v2", "deepseek-v3", "minicpm3"):
        for scaling in ({"rope_type": "linear", "factor": 3.0}, {"type": "dynamic", "factor": 3.0}, YARN, None):
            yield model, "rope_scaling", {"rope_scaling": scaling}
        yield model, "rope_scaling", {"rope_scaling": {"type": "dynamic", "factor": 3.0}, "max_position_embeddings": 16}
        yield model, "mscale_all_dim", {"rope_scaling": {**YARN, "mscale_all_dim": 0.8}}
        yield model, "mscale_all_dim", {"rope_scaling": {"type": "linear", "factor": 3.0, "mscale_all_dim": 0.8}}
        yield model, "mscale", {"rope_scaling": {**YARN, "mscale": 0.8}}
        yield model, "rms_norm_eps", {"rms_norm_eps": REMOVED}
        yield model, "rope_theta", {"rope_theta": REMOVED}
    yield "deepseek-v2", "topk_method", {"topk_method": REMOVED}
    yield "deepseek-v3", "norm_topk_prob", {"norm_topk_prob": False}
    yield "deepseek-v3", "routed_scaling_factor", {"routed_scaling_factor": REMOVED}
    yield "deepseek-v2", "routed_scaling_factor", {"routed_scaling_factor": REMOVED}
    yield "minicpm3", "scale_depth", {"scale_depth": None}
    yield "minicpm3", "scale_depth", {"scale_depth": REMOVED}
    yield "minicpm3", "scale_emb", {"scale_emb": REMOVED}
    yield "minicpm3", "dim_model_base", {"dim_model_base": None}
    yield "minicpm3", "dim_model_base", {"dim_model_base": REMOVED}


def all_variants(configs):
    """(model, key, config) of every variant, each only once."""
    seen = set()

    def changed(model, key, changes):
        config = dict(configs[model])
        for name, value in changes.items():
            if value is REMOVED:
                config.pop(name, None)
            else:
                config[name] = _alternating(config) if isinstance(value, str) and value == "alternating" else value
        mark = (model, repr(sorted(config.items(), key=lambda item: item[0])))
        if config == configs[model] or mark in seen:
            return []
        seen.add(mark)
        return [(model, key, config)]

    for model, key in GATED.items():
        for activation in ACTIVATIONS + (MORE_ACTIVATIONS if model == "llama" else []):
            yield from changed(model, key, {key: activation})
    for model in MODELS:
        for key, value in ELSEWHERE.items():
            if (model, key) not in LEFT_OUT:
                yield from changed(model, key, {key: value})
    for model, key, changes in _special():
        yield from changed(model, key, changes)
