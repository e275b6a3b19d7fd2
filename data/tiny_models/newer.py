"""Odd tiny configs, drawn at random, of decoders of 2018 to 2022, of those of 2026, and of language models that stand behind
encoders alone (kin.py has the rest, and computes them)."""

import re

import transformers

import check_family_variants as variants

from .kin import BIASES, MULTIPLIERS, activated, dense, experts, factors, old_gpt, rope, shared, small, with_epsilon

draw, chance, flags = variants.draw, variants.chance, variants.flags


# Decoders of 2018 to 2022.


def early(hidden, heads, layers, widths=(4, 6), counts=(1, 2, 3), **more):
    count = draw.choice(counts)
    return {
        "vocab_size": draw.randint(40, 70), hidden: count * draw.choice(widths), heads: count, layers: draw.randint(1, 4),
        "tie_word_embeddings": chance(), **more,
    }


def gpt_neo():
    config = early("hidden_size", "num_heads", "num_layers", window_size=3, max_position_embeddings=33)
    kinds = [draw.choice(["global", "local"]) for _ in range(config["num_layers"])]
    config["attention_types"] = [[kinds, 1]] if chance() else [[[kind], 1] for kind in kinds]
    if chance():
        config["intermediate_size"] = draw.randint(5, 30)
    return activated(with_epsilon(config, "layer_norm_epsilon"), "activation_function")


def codegen():
    config = early("n_embd", "n_head", "n_layer", (4, 8), (4, 8), n_positions=33, rotary_dim=draw.choice([2, 4]))
    if chance():
        config["n_inner"] = draw.randint(5, 30)
    return activated(with_epsilon(config, "layer_norm_epsilon"), "activation_function")


def gpt_neox_japanese():
    config = early("hidden_size", "num_attention_heads", "num_hidden_layers", (8, 16), intermediate_multiple_size=draw.randint(1, 4))
    config |= {"rotary_pct": draw.choice([0.25, 0.5, 1.0]), "rotary_emb_base": draw.choice([100, 10000]), "max_position_embeddings": 33}
    return activated(with_epsilon(config, "layer_norm_eps"))


def xglm():
    config = early("d_model", "attention_heads", "num_layers", (5, 6), ffn_dim=draw.randint(5, 30), max_position_embeddings=33)
    config["pad_token_id"] = draw.choice([None, 1, 5])
    return activated(flags(config, "scale_embedding"), "activation_function")


def biogpt():
    config = early("hidden_size", "num_attention_heads", "num_hidden_layers", (5, 6), intermediate_size=draw.randint(5, 30))
    return activated(flags({**config, "max_position_embeddings": 33}, "scale_embedding"))


def ctrl():
    return early("n_embd", "n_head", "n_layer", (5, 6), dff=draw.randint(5, 30), n_positions=33)


def openai_gpt():
    config = early("n_embd", "n_head", "n_layer", n_positions=33, model_type="openai-gpt")
    return with_epsilon({**config, "afn": draw.choice(["gelu", "relu", "silu", "swish"])}, "layer_norm_epsilon")


# Decoders of 2026.


def granite_swa(config):
    config = factors(*MULTIPLIERS)(config)
    if chance(0.7):
        config["layer_rope_theta"] = [draw.choice([0, 50.0, 1e4]) for _ in range(config["num_hidden_layers"])]
    return config


def granitemoe_swa(config):
    return {**granite_swa(config), "shared_intermediate_size": draw.choice([0, 7, 12])}


def cohere_compass(config):
    pairs = config["hidden_size"] // config["num_attention_heads"] // 2
    config.setdefault("layer_types", ["full_attention"] * config["num_hidden_layers"])
    ropes = {}
    for kind, base in (("full_attention", 5e3), ("sliding_attention", 70.0)):
        last = draw.randint(1, max(1, pairs - 2))
        first = draw.randint(0, pairs - last)
        ropes[kind] = {"rope_type": "default", "rope_theta": base, "mrope_section": [first, pairs - last - first, last]}
    for key in ("rope_theta", "max_position_embeddings"):
        config.pop(key, None)
    return {**config, "rope_parameters": ropes, "pad_token_id": 0}


def nanochat(config):
    return {**config, "final_logit_softcapping": draw.choice([None, 3.0, 15.0])}


def diffllama(config):
    kv_heads = 2 * draw.randint(1, 2)
    heads = kv_heads * draw.randint(1, 2)
    return {**config, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "hidden_size": heads * 6, "head_dim": draw.choice([6, 8])}


def laguna(config):
    kv_heads, count = draw.randint(1, 2), config["num_hidden_layers"]
    for key in ("rope_theta", "rope_parameters"):
        config.pop(key, None)
    config |= {
        "num_key_value_heads": kv_heads, "num_attention_heads": 2 * kv_heads, "head_dim": draw.choice([8, 12]),
        "shared_expert_intermediate_size": draw.randint(3, 12), "gating": draw.choice([True, "per-head", "per-element"]),
        "mlp_layer_types": [draw.choice(["sparse", "sparse", "dense"]) for _ in range(count)],
        "moe_routed_scaling_factor": draw.choice([1.0, 2.5]), "moe_router_logit_softcapping": draw.choice([0.0, 1.5]),
    }
    if chance(0.7):
        config["num_attention_heads_per_layer"] = [kv_heads * draw.randint(1, 3) for _ in range(count)]
    if chance(0.7):
        full = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 8, "partial_rotary_factor": 0.5}
        full = draw.choice([full, {"rope_type": "default", "rope_theta": 900.0}])
        config["rope_parameters"] = {"full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": 70.0}}
    return config


def modernbert_decoder():
    heads = draw.randint(1, 3)
    config = {
        "model_type": "modernbert-decoder", "vocab_size": draw.randint(40, 70), "hidden_size": heads * draw.choice([4, 8]),
        "num_attention_heads": heads, "num_hidden_layers": draw.randint(2, 4), "intermediate_size": draw.randint(5, 30),
        "tie_word_embeddings": chance(), "pad_token_id": 1, "local_attention": draw.choice([6, 10]), "max_position_embeddings": 64,
        "classifier_activation": draw.choice(["gelu", "relu", "silu"]),
    }
    if chance():
        config["layer_types"] = [draw.choice(["sliding_attention", "full_attention"]) for _ in range(config["num_hidden_layers"])]
    if chance():
        bases = {"full_attention": 5e3, "sliding_attention": 70.0}
        config["rope_parameters"] = {kind: {"rope_type": "default", "rope_theta": base} for kind, base in bases.items()}
    elif chance():
        config |= {"global_rope_theta": 5e3, "local_rope_theta": 70.0}
    config = activated(with_epsilon(config, "norm_eps"), "hidden_activation")
    return flags(config, "norm_bias", "attention_bias", "mlp_bias", "decoder_bias", "classifier_bias")


def axk2(config):
    """Few keys are picked, so that a short text has more; by many heads, of which one at least gives a score."""
    config.pop("head_dim", None)
    groups = draw.randint(1, 2)
    config |= {
        "num_key_value_heads": config["num_attention_heads"], "q_lora_rank": draw.choice([6, 8]), "kv_lora_rank": draw.choice([5, 8]),
        "qk_nope_head_dim": draw.choice([3, 8]), "qk_rope_head_dim": draw.choice([2, 4]), "v_head_dim": draw.choice([5, 8]),
        "n_routed_experts": groups * 3, "n_shared_experts": draw.randint(1, 2), "num_experts_per_tok": draw.randint(1, 3),
        "index_topk": draw.choice([7, 16]), "index_head_dim": draw.choice([6, 8]), "index_n_heads": draw.randint(6, 8),
        "gated_norm_rank": draw.randint(2, 5), "mlp_layer_types": [draw.choice(["dense", "sparse"]) for _ in range(config["num_hidden_layers"])],
        "routed_scaling_factor": draw.choice([1.0, 2.5]),
    }
    return flags({**config, "n_group": groups, "topk_group": 1} if chance() else config, "norm_topk_prob")


def latent_sizes():
    return {
        "q_lora_rank": draw.choice([6, 8]), "kv_lora_rank": draw.choice([5, 8]), "qk_nope_head_dim": draw.choice([3, 8]),
        "qk_rope_head_dim": draw.choice([2, 4]), "v_head_dim": draw.choice([5, 8]),
    }


def dots3_note(config):
    """Layers of every kind; few keys are picked, as in axk2."""
    groups, count, heads = draw.randint(1, 2), config["num_hidden_layers"], draw.randint(1, 3)
    config |= latent_sizes() | {f"swa_{key}": value for key, value in latent_sizes().items()}
    config |= {
        "num_key_value_heads": config["num_attention_heads"], "head_dim": config["qk_nope_head_dim"] + config["qk_rope_head_dim"],
        "swa_num_attention_heads": heads, "swa_num_key_value_heads": heads, "sliding_window": draw.choice([3, 5]),
        "swa_head_dim": config["swa_qk_nope_head_dim"] + config["swa_qk_rope_head_dim"], "shared_experts_intermediate_size": draw.randint(3, 9),
        "n_routed_experts": groups * 3, "n_shared_experts": draw.randint(1, 2), "num_experts_per_tok": draw.randint(1, 3),
        "index_topk": draw.choice([7, 16]), "index_head_dim": draw.choice([6, 8]), "index_n_heads": draw.randint(6, 8), "pad_token_id": 0,
        "layer_types": ["sliding_attention", "full_attention", *(draw.choice(["sliding_attention", "full_attention"]) for _ in range(count - 2))][:count],
        "mlp_layer_types": [draw.choice(["dense", "sparse"]) for _ in range(count)], "routed_scaling_factor": draw.choice([1.0, 2.5]),
    }
    if chance():
        config["swa_rope_theta"] = draw.choice([70.0, 900.0])
    if chance(0.3):
        config["use_dsa"] = False
    return flags({**config, "n_group": groups, "topk_group": 1} if chance() else config, "norm_topk_prob")


def hy_v4(config):
    count, widths = config["num_hidden_layers"], latent_sizes()
    config |= widths | {
        "num_key_value_heads": config["num_attention_heads"], "index_head_dim": widths["qk_rope_head_dim"] + draw.choice([2, 5]),
        "n_routed_experts": draw.randint(3, 6), "n_shared_experts": draw.randint(1, 2), "num_experts_per_tok": draw.randint(1, 3),
        "index_topk": draw.choice([7, 16]), "index_n_heads": draw.randint(6, 8), "pad_token_id": 0, "hidden_act": "silu",
        "mlp_layer_types": [draw.choice(["dense", "sparse"]) for _ in range(count)], "routed_scaling_factor": draw.choice([1.0, 2.5]),
        "hc_mult": draw.randint(2, 5), "hc_magnitude": draw.choice([1.0, 2.0]), "swiglu_limit": draw.choice([0.02, 0.5, 10.0]),
    }
    if chance(0.7):
        config["indexer_types"] = ["full", *(draw.choice(["full", "shared"]) for _ in range(count - 1))]
    return flags(config, "norm_topk_prob")


def glm5_next_text():
    """Whose layers without an indexer stand right behind one that has it: the class keeps no choice longer."""
    config = small(variants.decoder(head_dim=False))
    count, kinds = draw.randint(2, 5), ["linear_attention", "indexed_attention"]
    types = draw.sample([*kinds, *draw.choices(kinds, k=count - 2)], count)
    owns = ["shared" if i > 0 and types[i] == types[i - 1] == kinds[1] and chance() else "full" for i in range(count)]
    pool = draw.choice([1, 2, 3])
    config.update(num_hidden_layers=count, layer_types=types, indexer_types=owns, num_key_value_heads=config["num_attention_heads"])
    config |= {
        "q_lora_rank": draw.choice([6, 8]), "kv_lora_rank": draw.choice([5, 8]), "qk_nope_head_dim": draw.choice([3, 8]), "v_head_dim": draw.choice([5, 8]),
        "linear_num_heads": draw.randint(1, 3), "linear_head_dim": draw.choice([4, 6]), "linear_conv_kernel_dim": draw.choice([2, 4]),
        "linear_lower_bound": draw.choice([-5.0, -2.0]), "index_n_heads": draw.randint(6, 8), "index_head_dim": draw.choice([6, 8]),
        "index_kpool": pool, "index_topk": pool * draw.choice([2, 3, 8]), "n_routed_experts": draw.randint(3, 6), "n_shared_experts": draw.randint(1, 2),
        "num_experts_per_tok": draw.randint(1, 3), "moe_intermediate_size": draw.choice([5, 9]), "pad_token_id": 0, "max_position_embeddings": 64,
        "mlp_layer_types": [draw.choice(["dense", "sparse"]) for _ in range(count)], "routed_scaling_factor": draw.choice([1.0, 2.5]),
        "hc_mult": draw.randint(2, 5), "hc_sinkhorn_iters": draw.choice([1, 3, 20]), "swiglu_limit": draw.choice([0.02, 0.5, 10.0]),
    }
    return flags(with_epsilon(config, "rms_norm_eps"), "attention_bias", "norm_topk_prob")


def glm5_next():
    config = variants.FAMILIES["glm5_next"][1]()
    text = {**glm5_next_text(), "model_type": "glm5_next_text"}
    return {**config, "text_config": text, "tie_word_embeddings": text["tie_word_embeddings"]}


def flint(config):
    config |= {"shared_expert_intermediate_size": draw.randint(3, 12), "head_dim": config.get("head_dim", 8)}
    config["mlp_only_layers"] = draw.choice([[], [0], [1]])
    return config


def kolibri1(config):
    for key in ("intermediate_size",):
        config.pop(key, None)
    return {**config, "shared_expert_intermediate_size": draw.randint(5, 14), "head_dim": config.get("head_dim", 8)}


def lfm3():
    heads, kv_heads = draw.choice([(1, 1), (2, 1), (4, 2)])
    count = draw.randint(3, 5)
    kinds = ["conv", "full_attention", "sliding_attention", *(draw.choice(["conv", "full_attention", "sliding_attention"]) for _ in range(count - 3))]
    config = {
        "vocab_size": draw.randint(40, 70), "hidden_size": heads * draw.choice([6, 8]), "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "head_dim": draw.choice([8, 12]), "num_hidden_layers": count, "intermediate_size": draw.randint(5, 30), "pad_token_id": 0,
        "conv_L_cache": draw.choice([2, 4, 7]), "layer_types": draw.sample(kinds, count), "sliding_window": draw.choice([3, 5]),
        "tie_word_embeddings": chance(),
    }
    if chance():
        config["rope_parameters"] = {
            "sliding_attention": {"rope_type": "default", "rope_theta": 70.0},
            "full_attention": {"rope_type": "proportional", "rope_theta": 5e3, "partial_rotary_factor": draw.choice([0.25, 0.75])},
        }
    return flags(with_epsilon(config, "norm_eps"), "conv_bias", "attention_bias", "use_sandwich_norm", "use_attention_gate")


def bailing_hybrid():
    config = small(variants.bailing_hybrid())
    groups = draw.randint(1, 2)
    for key in ("rope_theta", "num_experts_per_token", "num_expert_group"):
        config.pop(key, None)
    count = config["num_hidden_layers"] = draw.randint(2, 4)
    config |= {
        "layer_types": ["linear_attention", "full_attention", *(draw.choice(["linear_attention", "full_attention"]) for _ in range(count - 2))],
        "num_experts": groups * 3, "num_experts_per_token": draw.randint(1, 3), "num_expert_group": groups, "topk_group": 1,
        "linear_head_dim": draw.choice([4, 6]), "routed_scaling_factor": draw.choice([1.0, 2.5]), "kda_safe_gate": chance(0.7),
        "kda_lower_bound": draw.choice([-5.0, -2.0]), "num_nextn_predict_layers": 0,
        "rope_parameters": {"rope_type": "default", "rope_theta": draw.choice([100.0, 5e5])},
    }
    return with_epsilon(config, "rms_norm_eps")


def minimax(config):
    """Blocks of two tokens, so that a short text has several."""
    config["layer_types"] = [draw.choice(["linear_attention", "full_attention"]) for _ in range(config["num_hidden_layers"])]
    config["layer_types"][0] = "linear_attention"
    config["block_size"] = draw.choice([2, 256])
    names = ("full_attn_alpha_factor", "full_attn_beta_factor", "linear_attn_alpha_factor", "linear_attn_beta_factor", "mlp_alpha_factor", "mlp_beta_factor")
    return {**config, **{name: draw.choice([0.7, 1.5, 3.5]) for name in names if chance(0.7)}}


def zamba2():
    heads, kv_heads = draw.choice([(1, 1), (2, 1), (2, 2), (4, 2)])
    count, hidden = draw.randint(4, 5), heads * draw.choice([4, 6])
    scans = draw.choice([n for n in (1, 2, 4) if 2 * hidden % n == 0])
    config = {
        "vocab_size": draw.randint(40, 70), "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "num_hidden_layers": count, "intermediate_size": draw.randint(5, 20), "tie_word_embeddings": chance(), "pad_token_id": None,
        "layers_block_type": ["mamba", "hybrid", *(draw.choice(["mamba", "hybrid", "hybrid"]) for _ in range(count - 3)), "hybrid"],
        "mamba_d_state": draw.choice([3, 8]), "mamba_d_conv": draw.choice([2, 4]), "mamba_expand": 2, "n_mamba_heads": scans,
        "mamba_ngroups": draw.choice([n for n in (1, 2) if scans % n == 0]), "num_mem_blocks": draw.randint(1, 2),
        "adapter_rank": draw.randint(2, 5), "time_step_min": draw.choice([0.001, 0.7]), "chunk_size": draw.choice([4, 64]),
    }
    return flags(activated(with_epsilon(config, "rms_norm_eps")), "add_bias_linear", "use_shared_attention_adapter", "use_mem_rope")


def recurrent_gemma():
    heads, kv_heads = draw.choice([(1, 1), (2, 1), (2, 2), (3, 1)])
    config = {
        "vocab_size": draw.randint(40, 70), "hidden_size": heads * 8, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "num_hidden_layers": draw.randint(2, 4), "intermediate_size": 2 * draw.randint(5, 15), "pad_token_id": None,
        "attention_window_size": draw.choice([3, 64]), "conv1d_width": draw.choice([2, 4]), "tie_word_embeddings": True,
        "logits_soft_cap": draw.choice([3.0, 30.0]), "block_types": draw.choice([["recurrent", "attention"], ["attention", "recurrent", "recurrent"]]),
    }
    if chance():
        config["lru_width"] = heads * draw.choice([4, 12])
    return flags(activated(with_epsilon(config, "rms_norm_eps"), "hidden_activation"), "attention_bias")


def nemotron_nas(config):
    """A block of each kind, here and there."""
    config["num_attention_heads"] = heads = draw.choice([2, 4])
    config |= {"model_type": "nemotron-nas", "hidden_size": heads * 8}
    for key in ("intermediate_size", "num_key_value_heads"):
        config.pop(key, None)
    groups = [n for n in (1, 2, 4) if heads % n == 0]
    attends = [{"n_heads_in_group": draw.choice(groups)}, {"n_heads_in_group": draw.choice(groups)}, {"no_op": True}, {"replace_with_linear": True}]
    feeds = [{"intermediate_size": draw.randint(5, 20)}, {"intermediate_size": draw.randint(5, 20)}, {"no_op": True}, {"replace_with_linear": True}]
    count = config["num_hidden_layers"] = draw.randint(3, 5)
    pairs = zip([attends[0], *draw.choices(attends, k=count - 1)], draw.choices(feeds, k=count))
    return {**config, "block_configs": [{"attention": attention, "ffn": mlp} for attention, mlp in pairs]}


# Language models behind encoders.


def behind(family, change=lambda text: None):
    """A variant of check_family_variants.py, whose text is made small."""

    def make():
        config = {}
        while "text_config" not in config:  # some are flat as well
            config = variants.FAMILIES[family][1]()
        text = small(config["text_config"])
        change(text)
        return config

    return make


def axes(pairs):
    third = pairs // 3
    return [pairs - 2 * third, third, third]


def with_axes(text, part=1.0, **more):
    width = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    pairs = int(width * part) // 2
    parameters = {"rope_type": "default", "rope_theta": draw.choice([100.0, 5e5]), "mrope_section": axes(pairs), **more}
    text["rope_parameters"] = {**parameters, **({"partial_rotary_factor": part} if part != 1 else {})}


def glm4v(text):
    text["hidden_size"] = text["num_attention_heads"] * 8
    with_axes(text, draw.choice([0.5, 1.0]))


def glm4v_moe(text):
    text["head_dim"] = 8
    with_axes(text, 0.5)


def hunyuan_vl(text):
    if chance():
        text["rope_parameters"] |= {"rope_type": "dynamic", "alpha": 50.0, "factor": 1.0}


def mllama(text):
    text |= {"pad_token_id": 1, "num_hidden_layers": draw.randint(2, 4)}
    text["cross_attention_layers"] = sorted(draw.sample(range(text["num_hidden_layers"]), draw.randint(0, 1)))


KIN = {
    "biogpt": ("BioGptForCausalLM", biogpt),
    "codegen": ("CodeGenForCausalLM", codegen),
    "ctrl": ("CTRLLMHeadModel", ctrl),
    "gpt_neo": ("GPTNeoForCausalLM", gpt_neo),
    "gpt_neox_japanese": ("GPTNeoXJapaneseForCausalLM", gpt_neox_japanese),
    "openai_gpt": ("OpenAIGPTLMHeadModel", openai_gpt),
    "xglm": ("XGLMForCausalLM", xglm),
    "aria_text": ("AriaTextForCausalLM", experts(*BIASES, head_dim=False, count="moe_num_experts", active="moe_topk", width=None, more=shared("moe_num_shared_experts"))),
    "bitnet": ("BitNetForCausalLM", dense("attention_bias", head_dim=False)),
    "cohere_compass_text": (
        "CohereCompassForCausalLM",
        dense("attention_bias", head_dim=False, windows=True, epsilon="layer_norm_eps", more=lambda config: cohere_compass(factors("logit_scale")(config))),
    ),
    "diffllama": ("DiffLlamaForCausalLM", dense("attention_bias", more=diffllama)),
    "emu3_text_model": ("Emu3ForCausalLM", dense(*BIASES, more=lambda config: {**config, "pad_token_id": 1})),
    "granite_swa": ("GraniteSWAForCausalLM", dense(*BIASES, windows=True, more=granite_swa)),
    "granitemoe_swa": (
        "GraniteMoeSWAForCausalLM", experts("attention_bias", head_dim=False, windows=True, count="num_local_experts", width=None, more=granitemoe_swa),
    ),
    "laguna": ("LagunaForCausalLM", experts("attention_bias", windows=True, more=laguna)),
    "dots3_note_text": ("Dots3NoteForCausalLM", experts("attention_bias", head_dim=False, scaled=False, count="n_routed_experts", more=dots3_note)),
    "hy_v4": ("HYV4ForCausalLM", experts("attention_bias", head_dim=False, scaled=False, count="n_routed_experts", more=hy_v4)),
    "glm5_next": ("Glm5NextForConditionalGeneration", glm5_next),
    "axk2": ("AXK2ForCausalLM", experts("attention_bias", head_dim=False, scaled=False, count="n_routed_experts", more=axk2)),
    "nemotron_nas": ("DeciLMForCausalLM", dense(*BIASES, head_dim=False, more=nemotron_nas)),
    "flint": ("FlintForCausalLM", experts("attention_bias", "norm_topk_prob", windows=True, more=flint)),
    "kolibri1": ("Kolibri1ForCausalLM", experts("norm_topk_prob", windows=True, more=kolibri1)),
    "lfm3": ("Lfm3ForCausalLM", lfm3),
    "bailing_hybrid": ("BailingHybridForCausalLM", bailing_hybrid),
    "minimax": ("MiniMaxForCausalLM", experts(scaled=False, count="num_local_experts", width=None, more=minimax)),
    "zamba2": ("Zamba2ForCausalLM", zamba2),
    "recurrent_gemma": ("RecurrentGemmaForCausalLM", recurrent_gemma),
    "mllama": ("MllamaForConditionalGeneration", behind("mllama", mllama)),
    "modernbert_decoder": ("ModernBertDecoderForCausalLM", modernbert_decoder),
    "nanochat": ("NanoChatForCausalLM", dense("attention_bias", head_dim=False, more=nanochat)),
    "glm4v": ("Glm4vForConditionalGeneration", behind("glm4v", glm4v)),
    "glm4v_moe": ("Glm4vMoeForConditionalGeneration", behind("glm4v_moe", glm4v_moe)),
    "glm_ocr": ("GlmOcrForConditionalGeneration", behind("glm_ocr", glm4v)),
    "hunyuan_vl": ("HunYuanVLForConditionalGeneration", behind("hunyuan_vl", hunyuan_vl)),
    "paddleocr_vl": ("PaddleOCRVLForConditionalGeneration", behind("paddleocr_vl", with_axes)),
    "qwen2_5_omni_thinker": ("Qwen2_5OmniThinkerForConditionalGeneration", behind("qwen2_5_omni_thinker", with_axes)),
    "qwen3_omni_moe_thinker": ("Qwen3OmniMoeThinkerForConditionalGeneration", behind("qwen3_omni_moe_thinker", with_axes)),
}


def is_stored(config, name):
    """Zamba2's blocks in the layers that have them first, as published; which a model without weights does not say."""
    found = re.search(r"layers\.(\d+)\.shared_transformer", name)
    if config["model_type"] != "zamba2" or not found:
        return True
    hybrid = [index for index, kind in enumerate(config["layers_block_type"]) if kind == "hybrid"]
    return int(found[1]) in hybrid[: config.get("num_mem_blocks", 1)]


def with_shared_blocks(model):
    """Zamba2's class says which blocks are one (_tied_weights_keys), and leaves those of two turns apart when it loads."""
    if model.config.model_type == "zamba2":
        layers = model.model.layers
        hybrid = [layer for layer in layers if hasattr(layer, "shared_transformer")]
        for turn, layer in enumerate(hybrid):
            layer.shared_transformer = hybrid[turn % model.config.num_mem_blocks].shared_transformer
    return model


# A layer's children -> the tap that is their output, as kin.OF_FAMILY.
NORMS_BEHIND = {"post_self_attn_layernorm": "attn_post_norm", "post_mlp_layernorm": "mlp_post_norm"}
TAPS = {
    "xglm": {"fc2": "mlp_out"},
    "biogpt": {"fc2": "mlp_out"},
    "ctrl": {"layernorm1": "attn_norm", "layernorm2": "mlp_norm", "multi_head_attention": "attn_out", "ffn": "mlp_out"},
    "openai-gpt": {"ln_1": "attn_post_norm", "ln_2": "mlp_post_norm"},
    "gpt_neox_japanese": {"attention": None},  # the last one's bias is added behind it
    "granitemoe_swa": {"block_sparse_moe": None},
    "modernbert-decoder": {"attn_norm": "attn_norm", "mlp_norm": "mlp_norm"},
    "zamba2": {"input_layernorm": None, "self_attn": None},
    "recurrent_gemma": {
        "temporal_pre_norm": "attn_norm", "channel_pre_norm": "mlp_norm", "temporal_block": "attn_out", "mlp_block": "mlp_out",
    },
    "kolibri1": {"post_attn_norm": "attn_post_norm", "post_ffn_norm": "mlp_post_norm", **NORMS_BEHIND},
    "lfm3": {"operator_norm": "attn_norm", "conv": "attn_out", "ffn_norm": "mlp_norm", "post_operator_norm": "attn_post_norm", "post_ffn_norm": "mlp_post_norm"},
    "glm4v": NORMS_BEHIND,
    "glm_ocr": NORMS_BEHIND,
}
# Classes that no AutoModel knows as what computes the text.
UNLISTED = {
    kind: getattr(transformers, KIN[kind][0])
    for kind in ("mllama", "qwen2_5_omni_thinker", "qwen3_omni_moe_thinker", "paddleocr_vl", "hunyuan_vl", "glm_ocr", "emu3_text_model")
}
