"""Random odd variants of families described since: pairs of Gemmas, Kosmos, Granites that see, Emu3 (check_family_variants.py)."""


def make_more(draw, decoder, flags):
    """The functions of the families, over the caller's `draw`."""

    def chance(probability=0.5):
        return draw.random() < probability

    def encoder(kind, **more):
        heads, size = draw.randint(1, 4), draw.randint(2, 6)
        config = {"model_type": kind, "hidden_size": heads * draw.choice([4, 6, 8]), "num_attention_heads": heads}
        config.update(intermediate_size=draw.randint(5, 60), num_hidden_layers=draw.randint(1, 4))
        config.update(num_channels=draw.randint(1, 3), patch_size=size, image_size=size * draw.randint(2, 5))
        return {**config, **more}

    def gemma_side(**shared):
        side = {**decoder(head_dim=False), "head_dim": draw.choice([4, 6, 8]), "pad_token_id": 0, **shared}
        side.pop("tie_word_embeddings")
        if chance():
            kinds = ("sliding_attention", "full_attention")
            side["layer_types"] = [draw.choice(kinds) for _ in range(side["num_hidden_layers"])]
        return flags(side, "attention_bias")

    def t5gemma():
        reads = gemma_side()
        return {"encoder": reads, "decoder": gemma_side(vocab_size=reads["vocab_size"]), "tie_word_embeddings": chance()}

    def t5gemma2():
        heads = draw.choice([1, 2, 3, 4])
        shared = {"num_attention_heads": heads, "num_key_value_heads": 1, "hidden_size": 4 * heads}
        shared.update(vocab_size=draw.randint(50, 300), head_dim=draw.choice([4, 6, 8]))
        vision = flags(encoder("siglip_vision_model"), "vision_use_head")
        reads = {"text_config": gemma_side(**shared), "vision_config": vision, "eoi_token_index": 1}
        return {"encoder": reads, "decoder": gemma_side(**shared), "eoi_token_index": 1}

    def kosmos_text():
        heads = draw.randint(1, 4)
        sizes = {"vocab_size": draw.randint(50, 300), "embed_dim": heads * draw.choice([4, 6, 8])}
        sizes.update(attention_heads=heads, layers=draw.randint(1, 5), ffn_dim=draw.randint(5, 60))
        return {**sizes, "max_position_embeddings": draw.randint(5, 40)}

    def kosmos_2():
        vision = encoder("kosmos_2_vision_model")
        return {"text_config": kosmos_text(), "vision_config": vision, "latent_query_num": draw.randint(2, 20)}

    def kosmos_2_5():
        heads, dim = draw.randint(1, 4), draw.choice([4, 6, 8])
        vision = {"hidden_size": 4 * draw.randint(2, 9), "head_dim": dim, "num_attention_heads": heads}
        vision.update(patch_embed_hidden_size=draw.randint(5, 40), intermediate_size=draw.randint(5, 60))
        vision.update(num_hidden_layers=draw.randint(1, 4), max_num_patches=draw.randint(5, 60))
        return {"text_config": kosmos_text(), "vision_config": vision, "latent_query_num": draw.randint(2, 20)}

    def granite_docling():
        language = flags(decoder(head_dim=False), "attention_bias", "mlp_bias")
        tied = language.pop("tie_word_embeddings")
        vision = encoder("granite_docling_vision", out_hidden_size=language["hidden_size"])
        vision.update(scale_factor=2 * draw.randint(1, 2))
        vision["image_size"] = vision["patch_size"] * vision["scale_factor"] * draw.randint(1, 3)
        vision = flags(vision, "use_fine_route")
        if chance():
            vision["deepstack_visual_indexes"] = list(range(draw.randint(0, vision["num_hidden_layers"])))
        config = {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}
        if chance() and vision.get("use_fine_route", True):
            config["density_router_hidden_size"] = draw.randint(3, 20)
        return config

    def granite4_vision():
        language = {**decoder(head_dim=False), "model_type": "granite4_vision_text"}
        language = flags(language, "attention_bias", "mlp_bias")
        tied = language.pop("tie_word_embeddings")
        vision = encoder("siglip_vision_model", hidden_size=64 * draw.randint(1, 2))
        vision = flags({**vision, "num_attention_heads": 2}, "vision_use_head")
        config = {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}
        config["downsample_rate"] = f"{draw.randint(1, 3)}/{draw.randint(2, 5)}"
        config["deepstack_layer_map"] = [[i, i] for i in range(draw.randint(0, 3))]
        if chance():
            former = {"model_type": "blip_2_qformer", "intermediate_size": draw.randint(5, 60)}
            former.update(num_hidden_layers=draw.randint(1, 3), cross_attention_frequency=draw.randint(1, 2))
            config["qformer_config"] = {**former, "use_qformer_text_input": False}
        return config

    def emu3():
        language, wide = {**decoder(head_dim=False), "pad_token_id": 0}, 32 * draw.randint(1, 2)
        tied = language.pop("tie_word_embeddings")
        levels = draw.randint(1, 3)
        drawn = {"base_channels": wide, "channel_multiplier": [draw.randint(1, 2) for _ in range(levels)]}
        drawn.update(latent_channels=draw.randint(2, 6), embed_dim=draw.randint(2, 6), codebook_size=draw.randint(5, 60))
        drawn.update(num_res_blocks=draw.randint(1, 3), temporal_downsample_factor=draw.choice([1, 2, 4]))
        drawn.update(hidden_size=wide * drawn["channel_multiplier"][-1], attn_resolutions=[levels - 1])
        drawn = flags(drawn, "double_latent")
        words = {"<image>": 1, "<|extra_200|>": 2, "<|visual token 000001|>": 3}
        return {"text_config": language, "vq_config": drawn, "tie_word_embeddings": tied, "vocabulary_map": words}

    def fast_vlm():
        language = {**decoder(head_dim=False), "model_type": "qwen2"}
        # The tower's sizes are timm's.
        vision = {"model_type": "timm_wrapper", "architecture": "fastvit_mci3", "hidden_size": 3072}
        vision.update(do_pooling=True, global_pool="avg", model_args={"inference_mode": True})
        config = {"text_config": language, "vision_config": vision, "tie_word_embeddings": chance()}
        return flags(config, "multimodal_projector_bias")

    def parakeet():
        heads = draw.choice([1, 2, 4])
        hears = {"model_type": "parakeet_encoder", "hidden_size": 8 * heads, "num_attention_heads": heads}
        hears.update(num_hidden_layers=draw.randint(1, 3), intermediate_size=draw.randint(5, 40))
        hears.update(num_mel_bins=8 * draw.randint(1, 4), subsampling_conv_channels=draw.randint(3, 9))
        return flags({**hears, "conv_kernel_size": 2 * draw.randint(1, 4) + 1}, "attention_bias", "convolution_bias")

    def cohere_asr():
        writes = {**decoder(), "max_position_embeddings": draw.randint(5, 40)}
        return {**flags(writes, "attention_bias"), "encoder_config": parakeet()}

    def canary():
        hears, heads = parakeet(), draw.choice([1, 2, 4])
        writes = {**decoder(head_dim=False), "hidden_size": hears["hidden_size"], "num_attention_heads": heads}
        writes.update(num_key_value_heads=heads, head_dim=draw.choice([4, 6, 8]))
        tied = writes.pop("tie_word_embeddings")
        writes = flags(writes, "attention_bias")
        config = {"vocab_size": writes["vocab_size"], "encoder_config": hears, "decoder_config": writes}
        return {**config, "pad_token_id": 2, "tie_word_embeddings": tied}

    def moonshine():  # heads of both sides are equal: the class mixes them up
        language = decoder(head_dim=False, layers="decoder_num_hidden_layers")
        heads, keys = language.pop("num_attention_heads"), language.pop("num_key_value_heads")
        for side in ("encoder", "decoder"):
            language.update({f"{side}_num_attention_heads": heads, f"{side}_num_key_value_heads": keys})
        return flags({**language, "encoder_num_hidden_layers": draw.randint(1, 4)}, "attention_bias")

    def chameleon():
        words = {"base_channels": 32, "channel_multiplier": [draw.randint(1, 3) for _ in range(draw.randint(1, 4))]}
        words.update(embed_dim=draw.randint(3, 20), latent_channels=draw.randint(3, 20))
        words.update(num_embeddings=draw.randint(9, 40), num_res_blocks=draw.randint(1, 3), in_channels=draw.randint(1, 3))
        config = {**decoder(head_dim=False), "vq_config": flags(words, "double_latent")}
        return flags({**config, "vocabulary_map": {"<image>": 5}}, "attention_bias", "mlp_bias", "swin_norm")

    def perception_lm():
        language = {**decoder(), "model_type": "llama"}
        tied = language.pop("tie_word_embeddings")
        name, width, patch = draw.choice([("core_base_patch16_224", 768, 16), ("core_large_patch14_336", 1024, 14),
                                          ("core_gigantic_patch14_448", 1536, 14), ("lang_large_patch14_448", 1024, 14)])
        side = draw.randint(2, 5)
        args = {"embed_dim": width, "img_size": [side * patch] * 2, "depth": draw.randint(1, 2), "global_pool": ""}
        args.update(use_post_transformer_norm=False, init_values=0.1, ref_feat_shape=[side, side])
        vision = {"model_type": "timm_wrapper", "architecture": f"vit_pe_{name}", "model_args": args}
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": tied}

    def omni_talker():
        """Qwen2.5-Omni whole."""
        heads = draw.choice([1, 2, 4])
        hears = {"d_model": 8 * heads, "encoder_attention_heads": heads, "encoder_layers": 1, "encoder_ffn_dim": 9}
        sees = {"depth": 1, "hidden_size": 32, "num_heads": 4, "intermediate_size": 11, "out_hidden_size": 12}
        reads = {**decoder(head_dim=False), "model_type": "qwen2_5_omni_text"}
        reads.pop("tie_word_embeddings")
        speaks = {**decoder(), "embedding_size": draw.randint(5, 40)}
        speaks.pop("tie_word_embeddings")
        thinker = {"text_config": reads, "audio_config": hears, "vision_config": sees}
        blocks = draw.randint(2, 5)
        dit = {"hidden_size": draw.randint(5, 40), "num_hidden_layers": draw.randint(1, 4), "num_attention_heads": draw.randint(1, 4)}
        dit.update(head_dim=draw.randint(3, 9), ff_mult=draw.randint(1, 4), emb_dim=draw.randint(3, 20), num_embeds=draw.randint(5, 30))
        dit.update(mel_dim=draw.randint(3, 20), enc_dim=draw.randint(3, 20), enc_emb_dim=draw.randint(3, 20))
        dit.update(enc_channels=[draw.randint(6, 30) for _ in range(blocks)], enc_kernel_sizes=[draw.randint(1, 5) for _ in range(blocks)])
        dit.update(enc_dilations=[1] * blocks, enc_attention_channels=draw.randint(3, 20), enc_se_channels=draw.randint(3, 20))
        dit.update(enc_res2net_scale=draw.randint(1, 4), look_ahead_layers=[0], look_backward_layers=[0])
        stretches, kinds = draw.randint(1, 3), draw.randint(1, 3)
        sounds = {"mel_dim": dit["mel_dim"], "upsample_initial_channel": draw.randint(8, 40), "upsample_rates": [2] * stretches}
        sounds.update(upsample_kernel_sizes=[draw.randint(2, 9) for _ in range(stretches)])
        sounds.update(resblock_kernel_sizes=[draw.choice([3, 5, 7]) for _ in range(kinds)], resblock_dilation_sizes=[[1, 3, 5]] * kinds)
        whole = {"thinker_config": thinker, "talker_config": speaks, "token2wav_config": {"dit_config": dit, "bigvgan_config": sounds}}
        return flags(whole, "enable_audio_output")

    def omni3_talker():
        """Qwen3-Omni whole."""
        heads = draw.choice([1, 2, 4])
        hears = {"d_model": 8 * heads, "encoder_attention_heads": heads, "encoder_layers": 1, "encoder_ffn_dim": 9, "output_dim": 12}
        hears.update(downsample_hidden_size=5, num_mel_bins=16)
        sees = {"depth": 2, "hidden_size": 32, "num_heads": 4, "intermediate_size": 11, "out_hidden_size": 12, "deepstack_visual_indexes": [0]}

        def mixture():
            return {"num_experts": draw.randint(2, 6), "num_experts_per_tok": 2, "moe_intermediate_size": draw.randint(3, 20)}

        reads, words, guesses = ({**decoder(), **kind} for kind in (mixture(), mixture(), {}))
        for part in (reads, words, guesses):
            part.pop("tie_word_embeddings")
        reads["model_type"] = "qwen3_omni_moe_text"
        words.update(shared_expert_intermediate_size=draw.randint(3, 20), decoder_sparse_step=draw.choice([1, 1, 2]), attention_bias=chance())
        if chance():
            words["mlp_only_layers"] = [0]
        guesses.update(num_code_groups=draw.randint(2, 5), attention_bias=chance())
        speaks = {"text_config": words, "code_predictor_config": guesses, "thinker_hidden_size": draw.randint(5, 40)}
        speaks.update(spatial_merge_size=2, accept_hidden_layer=1, num_code_groups=guesses["num_code_groups"])
        sound = decoder(head_dim=False)
        for key in ("vocab_size", "tie_word_embeddings", "pad_token_id"):
            sound.pop(key)
        sound.update(codebook_size=draw.randint(5, 30), num_quantizers=draw.randint(1, 5), decoder_dim=draw.randint(8, 40))
        sound.update(upsample_rates=[draw.randint(2, 5) for _ in range(draw.randint(1, 3))], attention_bias=chance())
        sound.update(upsampling_ratios=[draw.randint(2, 3) for _ in range(draw.randint(1, 3))])
        thinker = {"text_config": reads, "audio_config": hears, "vision_config": sees}
        return flags({"thinker_config": thinker, "talker_config": speaks, "code2wav_config": sound}, "enable_audio_output")

    def dots3_towers():
        """Of the published text, two layers; what it sees and hears with."""
        blocks, heads, out = draw.randint(1, 6), draw.choice([1, 2, 4]), 8 * draw.randint(2, 5)
        width = heads * draw.choice([4, 6, 8])
        kinds = [draw.choice(["dense", "sparse"]) for _ in range(blocks)]
        sees = {"hidden_size": width, "num_attention_heads": heads, "num_hidden_layers": blocks, "intermediate_size": draw.randint(5, 40)}
        sees.update(moe_intermediate_size=draw.randint(3, 20), num_local_experts=draw.randint(2, 6), num_experts_per_tok=2)
        sees.update(mlp_layer_types=kinds, adapter_in_dim=width, adapter_out_dim=out, attention_bias=chance(), patch_size=draw.randint(2, 5))
        sees["spatial_merge_size"] = sees["adapter_merge_size"] = draw.randint(1, 3)
        own = {str(i): {"num_local_experts": draw.randint(2, 6)} for i, kind in enumerate(kinds) if kind == "sparse" and chance()}
        if own:
            sees["per_layer_config"] = own
        if "sparse" not in kinds:
            sees["mlp_bias"] = chance()
        hears = {"hidden_size": 8 * heads, "num_attention_heads": heads, "num_hidden_layers": draw.randint(1, 3), "intermediate_size": draw.randint(5, 40)}
        hears.update(feature_size=draw.randint(5, 40), downsample_hidden_size=draw.randint(3, 9), attention_bias=chance())
        hears.update(adapter_input_size=8 * heads, adapter_out_dim=out)
        words = {"vocab_size": draw.randint(50, 300), "hidden_size": out, "num_hidden_layers": 2, "n_routed_experts": 4, "num_experts_per_tok": 2}
        words.update(intermediate_size=draw.randint(5, 40), moe_intermediate_size=draw.randint(3, 20), pad_token_id=None)
        return {"text_config": words, "vision_config": sees, "audio_config": hears}

    def series(stem, *options):
        """TimesFM, alone and with what tells the numbers that follow."""
        heads = draw.choice([1, 2, 4])
        config = {"patch_length": draw.randint(2, 9), "horizon_length": draw.randint(2, 9), "num_hidden_layers": draw.randint(1, 4)}
        config.update(hidden_size=2 * draw.randint(3, 20), intermediate_size=draw.randint(3, 40), head_dim=2 * draw.randint(1, 5))
        config.update(num_attention_heads=heads, num_key_value_heads=draw.choice([n for n in (1, 2, 4) if heads % n == 0]))
        if chance():
            config["quantiles"] = [number / 10 for number in range(1, draw.randint(2, 9))]
        return flags({**config, "architectures": [stem + draw.choice(["Model", "ModelForPrediction"])]}, *options)

    def rt_detr(second=False):
        stages, hidden, heads = draw.randint(1, 4), 4 * draw.randint(1, 6), draw.choice([1, 2, 4])
        taken = sorted(draw.sample(range(stages), draw.randint(1, min(stages, 3))))
        seen = {"model_type": "rt_detr_resnet", "embedding_size": 2 * draw.randint(2, 9), "num_channels": draw.randint(1, 3)}
        seen.update(hidden_sizes=[4 * draw.randint(1, 6) for _ in range(stages)], layer_type=draw.choice(["basic", "bottleneck"]))
        seen.update(depths=[draw.randint(1, 3) for _ in range(stages)], out_features=[f"stage{i + 1}" for i in taken])
        flags(seen, "downsample_in_first_stage", "downsample_in_bottleneck")
        levels = draw.randint(len(taken), 4)
        config = {"backbone_config": seen, "encoder_hidden_dim": hidden, "encoder_in_channels": [5] * len(taken)}
        config.update(encoder_attention_heads=1, num_attention_heads=1, encoder_layers=draw.randint(1, 3))
        config.update(encode_proj_layers=draw.choice([[0], [len(taken) - 1]]), hidden_expansion=draw.choice([0.5, 1.0, 1.5]))
        config.update(d_model=4 * heads * draw.randint(1, 4), decoder_attention_heads=heads, decoder_layers=draw.randint(1, 4))
        config.update(decoder_in_channels=[hidden] * len(taken), num_feature_levels=levels, decoder_n_points=draw.randint(1, 4))
        config.update(encoder_ffn_dim=draw.randint(5, 60), decoder_ffn_dim=draw.randint(5, 60), num_queries=draw.randint(5, 40))
        config.update(num_denoising=draw.choice([0, 7]), id2label={str(i): f"thing {i}" for i in range(draw.randint(1, 9))})
        if second:
            config["decoder_n_levels"] = draw.randint(1, 4)
        return flags(config, "learn_initial_query", "freeze_backbone_batch_norms")

    return {
        "rt_detr": ("RTDetrForObjectDetection", rt_detr),
        "rt_detr_v2": ("RTDetrV2ForObjectDetection", lambda: rt_detr(True)),
        "timesfm": ("TimesFmModel", lambda: {**series("TimesFm", "use_positional_embedding"), "freq_size": draw.randint(1, 5)}),
        "timesfm2_5": ("TimesFm2_5Model", lambda: {**series("TimesFm2_5", "attention_bias", "use_bias"), "output_quantile_len": draw.randint(2, 9)}),
        "qwen2_5_omni": ("Qwen2_5OmniForConditionalGeneration", omni_talker),
        "dots3_note": ("Dots3NoteForConditionalGeneration", dots3_towers),
        "qwen3_omni_moe": ("Qwen3OmniMoeForConditionalGeneration", omni3_talker),
        "emu3": ("Emu3ForConditionalGeneration", emu3),
        "fast_vlm": ("FastVlmForConditionalGeneration", fast_vlm),
        "cohere_asr": ("CohereAsrForConditionalGeneration", cohere_asr),
        "canary": ("CanaryForConditionalGeneration", canary),
        "moonshine": ("MoonshineForConditionalGeneration", moonshine),
        "chameleon": ("ChameleonForConditionalGeneration", chameleon),
        "perception_lm": ("PerceptionLMForConditionalGeneration", perception_lm),
        "t5gemma": ("T5GemmaForConditionalGeneration", t5gemma),
        "t5gemma2": ("T5Gemma2ForConditionalGeneration", t5gemma2),
        "kosmos-2": ("Kosmos2ForConditionalGeneration", kosmos_2),
        "kosmos-2.5": ("Kosmos2_5ForConditionalGeneration", kosmos_2_5),
        "granite_docling": ("GraniteDoclingForConditionalGeneration", granite_docling),
        "granite4_vision": ("Granite4VisionForConditionalGeneration", granite4_vision),
    }
