"""Random odd variants of models that see and whose language model stands nowhere alone (check_family_variants.py)."""


def make_wholes(draw, decoder, experts, kinds, flags):
    """The functions of the families, over the caller's `draw`."""

    def chance(probability=0.5):
        return draw.random() < probability

    def text(kind, **options):
        config = {**decoder(**options), "model_type": kind}
        return config, config.pop("tie_word_embeddings")

    def encoder(depth="num_hidden_layers", heads="num_attention_heads", channels="num_channels"):
        count = draw.randint(1, 4)
        return {
            "hidden_size": count * draw.choice([4, 8, 12]),
            heads: count,
            "intermediate_size": draw.randint(5, 60),
            depth: draw.randint(1, 4),
            channels: draw.randint(1, 3),
            "patch_size": draw.randint(2, 5),
        }

    def gemma4_unified_text():
        language, tied = text("gemma4_unified_text")
        language = kinds(language)
        layers = language["num_hidden_layers"]
        language.update(head_dim=draw.choice([4, 8]), global_head_dim=draw.choice([8, 16]))
        if chance():
            language.update(attention_k_eq_v=True)
            divisors = [n for n in range(1, 7) if language["num_attention_heads"] % n == 0]
            language.update(num_global_key_value_heads=draw.choice(divisors))
        if "layer_types" in language:
            language["layer_types"][-1] = "full_attention"
            if layers > 3 and chance():
                language["layer_types"][0] = "sliding_attention"
                language["layer_types"][1] = "full_attention"
                language["num_kv_shared_layers"] = layers - 2
        return flags(language, "attention_bias", "use_double_wide_mlp"), tied

    def diffusion_gemma():
        language = experts(kinds(decoder()), active="top_k_experts")
        tied = language.pop("tie_word_embeddings")
        language.update(model_type="diffusion_gemma_text", global_head_dim=2 * draw.randint(2, 6))
        if chance():
            language["num_global_key_value_heads"] = language["num_key_value_heads"]
        if "layer_types" in language:
            language["layer_types"][-1] = "full_attention"
        heads = draw.choice([1, 2, 3])
        vision = {"model_type": "gemma4_vision", "hidden_size": 4 * draw.randint(2, 9), "intermediate_size": draw.randint(5, 40), "num_hidden_layers": draw.randint(1, 3)}
        vision.update(num_attention_heads=heads, num_key_value_heads=heads, head_dim=4 * draw.randint(1, 3), patch_size=draw.randint(2, 5), position_embedding_size=draw.randint(5, 20))
        return {"text_config": flags(language, "attention_bias"), "vision_config": flags(vision, "standardize"), "tie_word_embeddings": tied}

    def gemma4_unified():
        language, tied = gemma4_unified_text()
        config = {"text_config": language, "tie_word_embeddings": tied, "vision_config": None, "audio_config": None}
        if chance(0.8):
            width = draw.randint(5, 40)
            sizes = {"patch_size": draw.randint(2, 5), "pooling_kernel_size": draw.randint(1, 3), "mm_embed_dim": width}
            config["vision_config"] = {**sizes, "mm_posemb_size": draw.randint(5, 60), "output_proj_dims": width}
        if chance(0.8):
            config["audio_config"] = {"audio_embed_dim": draw.randint(5, 90)}
        return config

    def mllama():
        language, tied = text("mllama_text_model", head_dim=False)
        layers = language["num_hidden_layers"]
        language["cross_attention_layers"] = sorted(draw.sample(range(layers), draw.randint(0, layers)))
        language["pad_token_id"] = 0
        vision = encoder(heads="attention_heads")
        vision.update(image_size=vision["patch_size"] * draw.randint(2, 5) + draw.randint(0, vision["patch_size"] - 1))
        vision.update(num_global_layers=draw.randint(1, 3), vision_output_dim=draw.randint(5, 60))
        if chance():
            vision["max_num_tiles"] = draw.randint(2, 3)
            vision["supported_aspect_ratios"] = [[1, n + 1] for n in range(draw.randint(1, 5))]
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}

    def paddleocr_vl():
        language, tied = text("paddleocr_vl_text")
        vision = encoder()
        vision.update(image_size=vision["patch_size"] * draw.randint(2, 5), spatial_merge_size=draw.randint(1, 3))
        language = flags(language, "use_bias")
        if chance():  # as published
            # The class ties the embeddings of a flat config whatever that says; the checkpoint, which says no, has a head.
            return {**language, "model_type": "paddleocr_vl", "vision_config": vision, "tie_word_embeddings": True}
        language["tie_word_embeddings"] = chance()
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}

    def glm_ocr():
        language, tied = text("glm_ocr_text")
        vision = flags(encoder("depth", "num_heads", "in_channels"), "attention_bias")
        vision.update(out_hidden_size=draw.randint(4, 40), spatial_merge_size=draw.randint(1, 3))
        if chance():
            language["tie_word_embeddings"] = chance()
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}

    def ernie4_5_vl_moe():
        language, tied = text("ernie4_5_vl_moe_text", head_dim=False)
        language = flags(experts(language, "moe_num_experts", "moe_k", None), "use_bias")
        language["moe_intermediate_size"] = [draw.randint(3, 30), draw.randint(3, 30)]
        language["moe_num_shared_experts"] = draw.randint(0, 3)
        side = draw.randint(1, 2)  # of the angles for height and width, behind them two for time
        language["hidden_size"] = language["num_attention_heads"] * (4 * side + 4)
        rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [side, side, 2]}
        language["rope_parameters"] = rope
        language = kinds(language, "mlp_layer_types", ("dense", "sparse"))
        vision = encoder("depth", "num_heads", "in_channels")
        vision.update(spatial_merge_size=draw.randint(1, 3), temporal_merge_size=draw.randint(1, 3))
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}

    def hunyuan_vl():
        language, tied = text("hunyuan_vl_text")
        language["head_dim"] = draw.choice([8, 16])
        language["rope_parameters"] = {"rope_type": "default", "rope_theta": 10000.0}
        language["rope_parameters"]["mrope_section"] = [language["head_dim"] // 8] * 4
        vision = encoder()
        vision.update(max_image_size=vision["patch_size"] * draw.randint(2, 5), spatial_merge_size=draw.randint(1, 3))
        vision["text_hidden_size"] = language["hidden_size"]
        language = flags(language, "attention_bias")
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}

    def glm5_next():
        language, tied = text("glm5_next_text")
        language = experts(language, "n_routed_experts")
        language["n_shared_experts"] = draw.randint(1, 3)
        ranks = {key: draw.randint(4, 20) for key in ("q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim")}
        language.update(ranks, num_key_value_heads=language["num_attention_heads"])
        language.update(linear_num_heads=draw.randint(1, 4), linear_head_dim=draw.randint(2, 8), linear_conv_kernel_dim=draw.randint(2, 5))
        language.update(index_n_heads=draw.randint(1, 4), index_head_dim=draw.randint(4, 12), index_kpool=draw.choice([2, 4, 8]))
        language.update(hc_mult=draw.randint(2, 5), pad_token_id=0)
        language = kinds(kinds(language, of=("linear_attention", "indexed_attention")), "mlp_layer_types", ("dense", "sparse"))
        if chance(0.3):
            language = kinds(language, "indexer_types", ("full", "shared"), 1)
        elif chance(0.4):
            language["index_topk_pattern"] = "".join(draw.choice("FS") for _ in range(language["num_hidden_layers"]))
        elif chance(0.5):
            language.update(index_topk_freq=draw.randint(1, 4), index_skip_topk_offset=draw.randint(0, 3))
        if chance(0.3):
            sizes = {"num_heads": draw.randint(1, 4), "head_dim": draw.randint(2, 8), "short_conv_kernel_size": draw.randint(2, 5)}
            language["linear_attn_config"] = sizes
        vision = flags(encoder("depth", "num_heads", "in_channels"), "attention_bias")
        vision.update(out_hidden_size=draw.randint(4, 40), projection_intermediate_size=draw.randint(4, 40))
        language = flags(language, "attention_bias")
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}

    def muse_vision():
        vision = encoder()
        vision.pop("num_channels")
        return {**vision, "pos_emb_height": draw.randint(2, 6), "pos_emb_width": draw.randint(2, 6), "patch_temporal": draw.randint(1, 3)}

    def muse_glimmer():
        language, tied = text("muse_glimmer_text")
        config = {"text_config": kinds(language), "vision_config": muse_vision(), "tie_word_embeddings": tied}
        return {**config, "out_hidden_size": draw.randint(5, 40), "projector_hidden_size": draw.randint(5, 40)}

    def muse_spark():
        language, tied = text("muse_spark_text")
        language = experts(kinds(language), "num_local_experts")
        language = kinds({**language, "moe_hidden_size": draw.randint(4, 30)}, "mlp_layer_types", ("dense", "sparse"))
        config = {"text_config": language, "vision_config": muse_vision(), "tie_word_embeddings": tied}
        count = draw.randint(1, 3)
        audio = {key: [draw.randint(1, 9) for _ in range(count)] for key in ("patch_sizes", "hidden_sizes", "depths")}
        audio.update(num_hidden_layers=count, conv_kernel_size=draw.randint(2, 7), mlp_ratio=draw.choice([2.0, 3.5, 4.0]))
        config["audio_config"] = {**audio, "out_hidden_size": language["hidden_size"]}
        return {**config, "out_hidden_size": draw.randint(5, 40), "projector_hidden_size": draw.randint(5, 40)}

    def qianfan_ocr():
        language, tied = text("qwen3")
        size = draw.randint(2, 5)
        vision = {**encoder(), "patch_size": [size, size], "image_size": [size * draw.randint(2, 5)] * 2}
        vision = flags(vision, "attention_bias")
        ratio = draw.choice([0.5, 1.0])
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied, "downsample_ratio": ratio}

    def molmo2():
        language, tied = text("molmo2_text")
        language["head_dim"] = draw.choice([4, 6, 8])
        # As many rows of new tokens as of others: transformers writes the joined table in equal halves.
        language["additional_vocab_size"] = language["vocab_size"]
        language["qk_norm_type"] = draw.choice(["qwen3", "olmo"])
        language = flags(language, "attention_bias", "norm_after")

        def heads(config):
            config["num_attention_heads"] = draw.choice([1, 2, 4])
            config.update(num_key_value_heads=draw.choice([1, config["num_attention_heads"]]), head_dim=draw.choice([4, 6]))
            return flags(config, "attention_bias")

        vision = heads({**encoder(), "image_size": [draw.randint(12, 40), draw.randint(12, 40)]})
        deep = [draw.randint(0, vision["num_hidden_layers"] - 1) for _ in range(draw.randint(1, 3))]
        adapter = heads({"hidden_size": draw.randint(5, 40), "intermediate_size": draw.randint(5, 40)})
        adapter = flags({**adapter, "text_hidden_size": draw.randint(5, 40), "vision_feature_layer": deep}, "mlp_bias")
        return {"text_config": language, "vision_config": vision, "adapter_config": adapter, "tie_word_embeddings": tied}

    def cosmos3_omni():
        language, tied = text("qwen3_vl_text", head_dim=True)
        vision = {**encoder(depth="depth", heads="num_heads", channels="in_channels"), "model_type": "qwen3_vl_vision"}
        vision.update(num_position_embeddings=draw.randint(2, 9) ** 2, out_hidden_size=language["hidden_size"])
        vision["deepstack_visual_indexes"] = list(range(draw.randint(0, vision["depth"])))
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}

    def cosmos3_edge():
        language, tied = text("cosmos3_edge_text", head_dim=False)
        language["head_dim"] = 2 * draw.randint(3, 6)
        half = language["head_dim"] // 2
        sections = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [half - 2, 1, 1]}
        language.update(rope_parameters=sections)
        vision = {**encoder(), "num_patches": draw.randint(2, 9) ** 2, "spatial_merge_size": draw.randint(1, 3)}
        config = {"text_config": flags(language, "attention_bias", "mlp_bias"), "vision_config": vision}
        return {**config, "projector_hidden_size": draw.randint(5, 90), "tie_word_embeddings": tied}

    return {
        "cosmos3_omni": ("Cosmos3OmniForConditionalGeneration", cosmos3_omni),
        "cosmos3_edge": ("Cosmos3EdgeForConditionalGeneration", cosmos3_edge),
        "diffusion_gemma": ("DiffusionGemmaForBlockDiffusion", diffusion_gemma),
        "molmo2": ("Molmo2ForConditionalGeneration", molmo2),
        "gemma4_unified": ("Gemma4UnifiedForConditionalGeneration", gemma4_unified),
        "gemma4_unified_text": ("Gemma4UnifiedForCausalLM", lambda: (lambda c, t: {**c, "tie_word_embeddings": t})(*gemma4_unified_text())),
        "mllama": ("MllamaForConditionalGeneration", mllama),
        "paddleocr_vl": ("PaddleOCRVLForConditionalGeneration", paddleocr_vl),
        "glm_ocr": ("GlmOcrForConditionalGeneration", glm_ocr),
        "ernie4_5_vl_moe": ("Ernie4_5_VLMoeForConditionalGeneration", ernie4_5_vl_moe),
        "glm5_next": ("Glm5NextForConditionalGeneration", glm5_next),
        "muse_glimmer": ("MuseGlimmerForConditionalGeneration", muse_glimmer),
        "muse_spark": ("MuseSparkForConditionalGeneration", muse_spark),
        "hunyuan_vl": ("HunYuanVLForConditionalGeneration", hunyuan_vl),
        "qianfan_ocr": ("QianfanOCRForConditionalGeneration", qianfan_ocr),
    }
