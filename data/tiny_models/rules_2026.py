"""Odd tiny configs, drawn at random, of families of 2026 with forward rules of their own (kin.py has the rest, and computes them)."""

from contextlib import contextmanager

import check_family_variants as variants

draw, chance, flags = variants.draw, variants.chance, variants.flags


def sources_of(rotating):
    """Whose keys and values each layer takes: its own, or those of the last before it that turns as it does and keeps its own."""
    sources = []
    for layer, turns in enumerate(rotating):
        before = [i for i in range(layer) if rotating[i] == turns and sources[i] == i]
        sources.append(before[-1] if before and chance(0.8) else layer)
    return sources


def mistral_large4():
    """Few keys are picked, so that a short text has more; by many heads, of which one at least gives a score."""
    heads, layers, groups = draw.randint(1, 3), draw.choice([3, 4, 4]), draw.choice([1, 1, 2])
    rotating = [1, 0, *(draw.randint(0, 1) for _ in range(layers - 2))]
    text = {
        "model_type": "mistral_large4_text", "vocab_size": draw.randint(40, 70), "hidden_size": heads * draw.choice([6, 8]), "pad_token_id": None,
        "num_attention_heads": heads, "num_key_value_heads": heads, "num_hidden_layers": layers, "intermediate_size": draw.randint(5, 30),
        "moe_intermediate_size": draw.choice([5, 9]), "n_routed_experts": groups * 3, "n_shared_experts": draw.randint(1, 2),
        "num_experts_per_tok": draw.randint(1, 3), "n_group": groups, "topk_group": 1, "routed_scaling_factor": draw.choice([1.0, 2.5]),
        "kv_lora_rank": draw.choice([5, 8]), "qk_nope_head_dim": draw.choice([3, 8]), "qk_rope_head_dim": draw.choice([2, 4]),
        "v_head_dim": draw.choice([5, 8]), "index_topk": draw.choice([7, 8]), "index_head_dim": draw.choice([6, 8]),
        "index_n_heads": draw.randint(6, 8), "no_rope_layers": rotating, "kv_source_layers": sources_of(rotating),
        "indexer_types": ["full", *(draw.choice(["full", "shared"]) for _ in range(layers - 1))],
        "tie_word_embeddings": False, "final_logit_softcapping": draw.choice([3.0, 30.0]), "rms_norm_eps": draw.choice([1e-5, 1e-3]),
        "max_position_embeddings": 64,
    }
    if chance():
        text["mlp_layer_types"] = [draw.choice(["dense", "dense", "sparse"]) for _ in range(layers)]
    if chance():
        text["rope_parameters"] = {
            "rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 8, "mscale_all_dim": 1.0, "mscale": 0.7,
        }
    elif chance():
        text["rope_parameters"] = {"rope_type": "default", "rope_theta": 100.0}
    vision = {"model_type": "pixtral", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    text = flags(text, "attention_bias")
    return {"text_config": text, "vision_config": vision, "tie_word_embeddings": False}


def qwen4_exp():
    """Blocks of keys are picked in the middle of a short text, and every n-gram is looked up in a few hundred rows. Where words are few,
    texts hold the one that ends n-grams; tables begin at a prime, or at the next one."""
    kv_heads, layers = draw.randint(1, 2), draw.choice([3, 3, 4])
    kinds = ["linear_attention", "indexed_attention", *(draw.choice(["linear_attention", "full_attention"]) for _ in range(layers - 2))]
    key_heads, ratio = draw.randint(1, 2), draw.choice([2, 3])
    config = {
        "model_type": "qwen4_exp_text", "vocab_size": draw.choice([9, 12, draw.randint(40, 70)]), "hidden_size": 8 * draw.randint(1, 2), "num_hidden_layers": layers,
        "num_attention_heads": kv_heads * draw.randint(1, 2), "num_key_value_heads": kv_heads, "head_dim": 8, "pad_token_id": None,
        "layer_types": draw.sample(kinds, layers), "tie_word_embeddings": chance(), "rms_norm_eps": draw.choice([1e-6, 1e-3]),
        "linear_num_key_heads": key_heads, "linear_num_value_heads": key_heads * draw.randint(1, 2), "linear_key_head_dim": draw.choice([4, 6]),
        "linear_value_head_dim": draw.choice([3, 8]), "linear_conv_kernel_dim": draw.choice([2, 4]), "moe_intermediate_size": draw.choice([5, 9]),
        "shared_expert_intermediate_size": draw.randint(3, 12), "num_experts": draw.randint(3, 5), "num_experts_per_tok": draw.randint(1, 3),
        "hc_count": draw.randint(2, 4), "hc_lowrank": draw.randint(2, 9), "indexer_n_heads": draw.randint(7, 9), "indexer_kv_heads": 1,
        "indexer_head_dim": draw.choice([8, 10]), "indexer_budget": ratio * (7 // ratio), "indexer_compress_ratio": ratio, "max_position_embeddings": 64,
        "rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": draw.choice([0.5, 1.0]), "mrope_section": [2, 1, 1]},
    }
    if chance():
        config["output_gate_type"] = draw.choice(["sigmoid", "silu"])
    linear = [i + 1 for i, kind in enumerate(config["layer_types"]) if kind == "linear_attention"]
    if chance(0.8):
        each, size = draw.randint(1, 3), draw.randint(2, 3)
        config |= {
            "ple_layer_ids": draw.sample(linear, draw.randint(1, len(linear))), "ngram_size": size, "heads_per_ngram": each, "eos_token_id": draw.choice([1, [5, 1]]),
            "ple_embed_dim": each * (size - 1) * draw.randint(2, 6), "ngram_vocab_size_base": draw.choice([23, 101, draw.randint(20, 300)]), "split_ngram_parts": draw.choice([1, 2, 4]),
            "ple_conv_kernel_size": draw.randint(2, 4), "seed": draw.choice([7, 1234]),
        }
    return flags(config, "attention_bias", "norm_topk_prob")


def hrm_text():
    """The stacks are few layers deep, for a token passes them many times."""
    heads = draw.randint(1, 3)
    return {
        "vocab_size": draw.randint(40, 70), "hidden_size": heads * draw.choice([6, 8]), "num_attention_heads": heads, "head_dim": draw.choice([6, 8]),
        "num_hidden_layers": draw.randint(1, 2), "intermediate_size": draw.randint(5, 30), "H_cycles": draw.randint(1, 2), "L_cycles": draw.randint(1, 3),
        "tie_word_embeddings": chance(), "pad_token_id": None, "max_position_embeddings": 64, "rms_norm_eps": draw.choice([1e-6, 1e-3]),
        "prefix_lm": chance(), "rope_parameters": {"rope_type": "default", "rope_theta": draw.choice([100.0, 1e4])},
        **draw.choice([{}, {"embedding_scale": 3.5}, {"initializer_range": 0.5}]),
    }


def behind_mistral3(mistral4):
    """Mistral Small 4 within the class of Mistral 3; of `pixtral` no weights are drawn that text would meet."""

    def make():
        text = {"model_type": "mistral4", **mistral4()}
        vision = {"model_type": "pixtral", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "patch_size": 7}
        return {"model_type": "mistral3", "text_config": text, "vision_config": vision, "tie_word_embeddings": text["tie_word_embeddings"]}

    return {"mistral3_mistral4": ("Mistral3ForConditionalGeneration", make)}


KIN = {
    "mistral_large4": ("MistralLarge4ForConditionalGeneration", mistral_large4),
    "qwen4_exp": ("Qwen4ExpForCausalLM", qwen4_exp),
    "hrm_text": ("HrmTextForCausalLM", hrm_text),
}

# A layer's children -> the tap that is their output, as kin.OF_FAMILY.
TAPS = {
    "qwen4_exp_text": {
        "linear_attn": "attn_out", "attn_hyper_connection": "attn_in", "mlp_hyper_connection": "mlp_in", "ple": "ngrams",
    },
}

# Rotated parts of queries lie in another order in these classes.
TURNED = ("mistral_large4", "mistral3")


@contextmanager
def recorded_passes(model):
    """HRM-Text's taps: its layers are numbered by passes, in their order, each of which has a cache of its own."""
    base, taken, handles, passed = model.model, {}, [], [0]

    def keep(tap, module, of=lambda inputs, output: output):
        def hook(_module, inputs, output):
            value = of(inputs, output)
            value = value[0] if isinstance(value, (tuple, list)) else value
            taken[f"layers.{passed[0]}.{tap}"] = value.detach().clone()
            passed[0] += tap == "out"

        handles.append(module.register_forward_hook(hook))

    for stack in (base.L_module, base.H_module):
        for layer in stack.layers:
            for child, tap in (("input_layernorm", "attn_norm"), ("self_attn", "attn_out"), ("post_attention_layernorm", "mlp_norm"), ("mlp", "mlp_out")):
                keep(tap, getattr(layer, child))
            keep("out", layer)

    def last(_module, _inputs, output):
        taken["final_norm"] = output.detach().clone()

    handles.append(base.H_module.register_forward_hook(last))
    try:
        yield taken
    finally:
        for handle in handles:
            handle.remove()
