"""Random odd variants of encoders of images that encoder_variants.py does not have, of text that came after them, and of models
that read pages (check_family_variants.py)."""


def make_images(draw, flags, families):
    """The functions of the families, over the caller's `draw`; `families` are those drawn so far."""

    def chance(probability=0.5):
        return draw.random() < probability

    def labels(most=9):
        return {"id2label": {str(number): f"label {number}" for number in range(draw.randint(1, most))}}

    def of_class(stem, heads, make):
        """The encoder alone, or under one of its heads."""

        def drawn():
            config = {**make(), **(labels() if chance(0.7) else {})}
            return {**config, "architectures": [stem + draw.choice(["Model", *heads])]}

        return drawn

    def vit(heads="num_attention_heads"):
        count, patch = draw.choice([1, 2, 3, 4]), draw.randint(2, 6)
        return {
            "hidden_size": count * 2 * draw.randint(2, 6),
            heads: count,
            "num_hidden_layers": draw.randint(1, 5),
            "intermediate_size": draw.randint(5, 90),
            "patch_size": patch,
            "image_size": patch * draw.randint(2, 5) + draw.randint(0, 1),
            "num_channels": draw.randint(1, 4),
        }

    def beit():
        config = flags(vit(), "use_mask_token", "use_absolute_position_embeddings", "use_relative_position_bias",
                       "use_shared_relative_position_bias", "use_mean_pooling")
        return {**config, "layer_scale_init_value": draw.choice([0.0, 0.1])}

    def yolos():
        config = vit()
        patch = config["patch_size"]
        config["image_size"] = [patch * draw.randint(1, 5) + draw.randint(0, 1), patch * draw.randint(1, 5)]
        config.update(num_detection_tokens=draw.randint(1, 9), num_hidden_layers=draw.randint(2, 5))
        return flags(config, "qkv_bias", "use_mid_position_embeddings")

    def mae():
        heads = draw.randint(1, 3)
        config = {**vit(), "decoder_num_attention_heads": heads, "decoder_hidden_size": 4 * heads * draw.randint(1, 4)}
        config.update(decoder_num_hidden_layers=draw.randint(1, 4), decoder_intermediate_size=draw.randint(5, 50))
        config["image_size"] = config["patch_size"] * draw.randint(2, 5)
        config["hidden_size"] = 4 * config["num_attention_heads"] * draw.randint(1, 4)  # sines for both sides
        return flags(config, "qkv_bias")

    def videomae():
        tubelet = draw.randint(1, 3)
        return flags({**vit(), "tubelet_size": tubelet, "num_frames": tubelet * draw.randint(1, 4)}, "qv_bias", "use_mean_pooling")

    def swin():
        stages, first = draw.randint(1, 4), draw.randint(1, 3)
        heads = [draw.choice([first, 2 * first]) for _ in range(stages)]
        patch = draw.randint(2, 4)
        config = {
            "embed_dim": 2 * first * draw.randint(2, 5),
            "depths": [draw.randint(1, 3) for _ in range(stages)],
            "num_heads": heads,
            "window_size": draw.randint(2, 5),
            "mlp_ratio": draw.choice([1.5, 2.0, 3.7, 4.0]),
            "patch_size": patch,
            "image_size": patch * 2**stages * draw.randint(1, 3),
            "num_channels": draw.randint(1, 4),
            "encoder_stride": draw.randint(2, 6),
        }
        return flags(config, "qkv_bias", "use_absolute_embeddings")

    def donut():
        swin_config = {"model_type": "donut-swin", **swin()}
        heads = draw.randint(1, 3)
        width = draw.choice([swin_config["embed_dim"] * 2 ** (len(swin_config["depths"]) - 1), heads * 12])
        text = {
            "model_type": "mbart",
            "d_model": width,
            "vocab_size": draw.randint(50, 300),
            "decoder_layers": draw.randint(1, 4),
            "decoder_ffn_dim": draw.randint(5, 60),
            "decoder_attention_heads": 1 if width % heads else heads,
            "max_position_embeddings": draw.randint(9, 60),
            "is_decoder": True,
            "add_cross_attention": True,
        }
        return {"encoder": swin_config, "decoder": text}

    def convnext():
        stages = draw.randint(1, 4)
        return {
            "num_stages": stages,
            "hidden_sizes": [draw.randint(3, 20) for _ in range(stages)],
            "depths": [draw.randint(1, 3) for _ in range(stages)],
            "patch_size": draw.randint(2, 4),
            "num_channels": draw.randint(1, 4),
            "layer_scale_init_value": draw.choice([0.0, 1e-6]),
        }

    def segformer():
        stages = draw.randint(1, 4)
        heads = [draw.randint(1, 3) for _ in range(stages)]
        return {
            "num_encoder_blocks": stages,
            "num_attention_heads": heads,
            "hidden_sizes": [count * draw.randint(2, 8) for count in heads],
            "depths": [draw.randint(1, 3) for _ in range(stages)],
            "sr_ratios": [draw.choice([1, 2, 4]) for _ in range(stages)],
            "patch_sizes": [draw.randint(2, 7) for _ in range(stages)],
            "strides": [2] * stages,
            "mlp_ratios": [draw.randint(1, 4) for _ in range(stages)],
            "decoder_hidden_size": draw.randint(5, 40),
            "num_channels": draw.randint(1, 4),
        }

    def text(stem, heads, more=dict):
        def drawn():
            count = draw.choice([1, 2, 3, 4])
            config = {
                "vocab_size": draw.randint(50, 300),
                "hidden_size": count * 2 * draw.randint(2, 6),
                "num_attention_heads": count,
                "num_hidden_layers": draw.randint(1, 5),
                "intermediate_size": draw.randint(5, 90),
                "max_position_embeddings": draw.randint(9, 60),
                "type_vocab_size": draw.randint(1, 3),
                "pad_token_id": 1,
                **more(),
                **(labels(15) if chance(0.7) else {}),
            }
            return {**config, "architectures": [draw.choice([stem + head for head in heads])]}

        return drawn

    heads = ["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering",
             "ForMultipleChoice", "ForCausalLM"]

    def page():
        patch = draw.randint(2, 6)
        sides = {"max_2d_position_embeddings": draw.randint(9, 60), "rel_pos_bins": draw.randint(4, 20)}
        sides.update(rel_2d_pos_bins=draw.randint(4, 20), patch_size=patch, input_size=patch * draw.randint(2, 5))
        sides.update(coordinate_size=draw.randint(2, 5), shape_size=draw.randint(2, 5), num_channels=draw.randint(1, 4))
        return flags(sides, "has_relative_attention_bias", "has_spatial_attention_bias", "visual_embed")

    def layoutlmv3():
        config = text("LayoutLMv3", ["Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"],
                      page)()
        sides = draw.randint(1, 4), draw.randint(1, 4)  # four of the one and two of the other are as wide as words
        config.update(coordinate_size=sides[0], shape_size=sides[1], num_attention_heads=1)
        return {**config, "hidden_size": 4 * sides[0] + 2 * sides[1]}

    def captioner():
        seen = {"model_type": "vit", **vit()}
        heads = draw.randint(1, 3)
        text = {"model_type": "gpt2", "n_embd": draw.choice([seen["hidden_size"], heads * 8]), "n_layer": draw.randint(1, 4)}
        text.update(vocab_size=draw.randint(50, 300), n_positions=draw.randint(9, 60), add_cross_attention=True)
        text["n_head"] = 1 if text["n_embd"] % heads else heads
        if chance():
            text["n_inner"] = draw.randint(5, 60)
        return {"encoder": seen, "decoder": text, "model_type": "vision-encoder-decoder"}

    def sides(encoder="encoder", decoder="decoder", wide=("encoder_ffn_dim", "decoder_ffn_dim"), layers="{}_layers",
              heads="{}_attention_heads"):
        config = {}
        for side, key in zip((encoder, decoder), wide):
            config[key] = draw.randint(5, 90)
            config[layers.format(side)] = draw.randint(1, 4)
            config[heads.format(side)] = draw.choice([1, 2, 4])
        return config

    def fsmt():
        config = {**sides(), "d_model": 4 * draw.randint(1, 6), "max_position_embeddings": draw.randint(9, 60)}
        words = draw.randint(50, 300)
        config.update(src_vocab_size=words, tgt_vocab_size=words, tie_word_embeddings=chance(), langs=["en", "de"])
        if not config["tie_word_embeddings"]:
            config["tgt_vocab_size"] = draw.randint(50, 300)
        return config

    def prophetnet():
        config = sides(layers="num_{}_layers", heads="num_{}_attention_heads")
        config.update(hidden_size=4 * draw.randint(1, 6), vocab_size=draw.randint(50, 300), ngram=draw.randint(1, 4))
        config.update(num_buckets=draw.randint(4, 20), max_position_embeddings=draw.randint(9, 60), pad_token_id=0)
        return {**config, "architectures": ["ProphetNet" + draw.choice(["Model", "ForConditionalGeneration", "ForCausalLM"])]}

    def pix2struct():
        heads, width = draw.randint(1, 4), draw.randint(2, 9)
        text = {"vocab_size": draw.randint(50, 300), "hidden_size": heads * width, "d_kv": width, "num_heads": heads}
        text.update(d_ff=draw.randint(5, 60), num_layers=draw.randint(1, 4))
        text.update(relative_attention_num_buckets=draw.randint(4, 20))
        seen = {"hidden_size": draw.randint(5, 40), "patch_embed_hidden_size": draw.randint(5, 40), "d_ff": draw.randint(5, 60)}
        seen.update(d_kv=draw.randint(2, 9), num_hidden_layers=draw.randint(1, 4), num_attention_heads=draw.randint(1, 4))
        return {"text_config": text, "vision_config": {**seen, "seq_len": draw.randint(9, 60)}}

    def speecht5():
        stages, groups = draw.randint(1, 4), draw.randint(1, 3)
        config = {**sides(), "hidden_size": 4 * groups * draw.randint(1, 4), "vocab_size": draw.randint(50, 200)}
        config.update(conv_dim=[draw.randint(3, 9) for _ in range(stages)], conv_stride=[2] * stages)
        config.update(conv_kernel=[draw.randint(2, 5) for _ in range(stages)], num_conv_pos_embeddings=draw.randint(2, 9))
        config.update(num_conv_pos_embedding_groups=groups, feat_extract_norm=draw.choice(["group", "layer"]))
        for key in ("num_mel_bins", "speech_decoder_prenet_units", "speaker_embedding_dim", "speech_decoder_postnet_units"):
            config[key] = draw.randint(4, 20)
        for key in ("speech_decoder_prenet_layers", "speech_decoder_postnet_layers", "reduction_factor"):
            config[key] = draw.randint(1, 4)
        config["speech_decoder_postnet_kernel"] = draw.choice([3, 5])
        config["encoder_max_relative_position"] = draw.randint(4, 20)
        use = draw.choice(["TextToSpeech", "SpeechToText", "SpeechToSpeech"])
        return flags({**config, "architectures": ["SpeechT5For" + use]}, "conv_bias")

    def qwen2_vl():
        heads, keys = draw.choice([(4, 2), (3, 1), (2, 2)])
        text = {"vocab_size": draw.randint(50, 300), "hidden_size": 8 * heads, "num_attention_heads": heads}
        text.update(num_key_value_heads=keys, num_hidden_layers=draw.randint(1, 4), intermediate_size=draw.randint(5, 60))
        count = draw.randint(1, 3)
        seen = {"depth": draw.randint(1, 3), "embed_dim": 8 * count, "num_heads": count, "hidden_size": 8 * heads}
        seen.update(mlp_ratio=draw.randint(1, 4), patch_size=draw.randint(2, 5), spatial_merge_size=draw.randint(1, 2))
        return {"text_config": text, "vision_config": seen}

    def clip_like(seen_heads=(1, 2, 3)):
        words = {"vocab_size": draw.randint(50, 300), "num_hidden_layers": draw.randint(1, 4)}
        heads, count = draw.choice(seen_heads), draw.choice(seen_heads)
        words.update(hidden_size=4 * heads * draw.randint(1, 4), num_attention_heads=heads)
        words.update(intermediate_size=draw.randint(5, 60), max_position_embeddings=draw.randint(9, 60))
        seen = {"hidden_size": 4 * count * draw.randint(1, 4), "num_attention_heads": count, "num_channels": draw.randint(1, 4)}
        patch = draw.randint(2, 5)
        seen.update(num_hidden_layers=draw.randint(1, 4), intermediate_size=draw.randint(5, 60), patch_size=patch)
        seen["image_size"] = patch * draw.randint(2, 5)
        return {"text_config": words, "vision_config": seen, "projection_dim": draw.randint(4, 40)}

    def owl(stem):
        return lambda: {**clip_like(), "architectures": [stem + draw.choice(["Model", "ForObjectDetection"])]}

    def clap():
        words = clip_like()["text_config"]
        stages, first = draw.randint(1, 4), draw.randint(1, 3)
        sound = {"patch_embeds_hidden_size": 2 * first * draw.randint(2, 5), "window_size": draw.randint(2, 5)}
        sound.update(depths=[draw.randint(1, 3) for _ in range(stages)], num_mel_bins=draw.randint(4, 40))
        sound.update(num_attention_heads=[first] * stages, mlp_ratio=draw.choice([1.5, 2.0, 4.0]), spec_size=256)
        sound["hidden_size"] = sound["patch_embeds_hidden_size"] * 2 ** (stages - 1)
        if chance():
            sound.update(enable_fusion=True, fusion_type="aff_2d", aff_block_r=draw.choice([2, 4]))
        flags(sound, "qkv_bias", "enable_patch_layer_norm")
        words.update(type_vocab_size=draw.randint(1, 3), pad_token_id=1)
        return {"text_config": words, "audio_config": sound, "projection_dim": draw.randint(4, 40)}

    def depth():
        seen = families["dinov2"][1]()
        stages = draw.randint(2, 4)
        depth = max(stages, seen.get("num_hidden_layers", 4))
        seen.update(model_type="dinov2", num_hidden_layers=depth, out_indices=list(range(1, stages + 1)))
        for key in ("architectures", "id2label"):
            seen.pop(key, None)
        config = {"backbone_config": seen, "reassemble_hidden_size": seen["hidden_size"], "fusion_hidden_size": draw.randint(2, 20)}
        config.update(neck_hidden_sizes=[draw.randint(2, 20) for _ in range(stages)], head_hidden_size=draw.randint(2, 9))
        config["reassemble_factors"] = [draw.choice([4, 2, 1, 0.5]) for _ in range(stages)]
        return config

    def seamless(stem):
        def drawn():
            config = {"vocab_size": draw.randint(50, 300), "t2u_vocab_size": draw.randint(20, 90), "pad_token_id": 0}
            config.update(sides(), hidden_size=8 * draw.randint(1, 4), t2u_pad_token_id=1)
            for key, value in sides().items():
                config["t2u_" + key] = value
            config.update(speech_encoder_layers=draw.randint(1, 3), speech_encoder_intermediate_size=draw.randint(5, 60))
            config.update(speech_encoder_attention_heads=draw.choice([1, 2, 4]), num_adapter_layers=draw.randint(1, 3))
            config.update(adaptor_kernel_size=draw.randint(2, 9), conv_depthwise_kernel_size=draw.choice([3, 5, 9]))
            config.update(feature_projection_input_dim=draw.randint(5, 40), char_vocab_size=draw.randint(20, 90))
            config.update(left_max_position_embeddings=draw.randint(3, 20), right_max_position_embeddings=draw.randint(1, 9))
            config.update(t2u_variance_predictor_embed_dim=config["hidden_size"], t2u_variance_predictor_hidden_dim=draw.randint(3, 20))
            stages = draw.randint(1, 4)
            config.update(upsample_rates=[2] * stages, upsample_kernel_sizes=[draw.randint(2, 9) for _ in range(stages)])
            config.update(upsample_initial_channel=2**stages * draw.randint(1, 5))
            kernels = draw.randint(1, 3)
            config["resblock_kernel_sizes"] = [draw.choice([3, 5, 7]) for _ in range(kernels)]
            config["resblock_dilation_sizes"] = [[1] * draw.randint(1, 3) for _ in range(kernels)]
            for key in ("unit_embed_dim", "lang_embed_dim", "spkr_embed_dim", "vocoder_num_langs", "vocoder_num_spkrs",
                        "unit_hifi_gan_vocab_size"):
                config[key] = draw.randint(4, 30)
            if stem == "SeamlessM4T" and chance(0.3):
                config["position_embeddings_type"] = "rotary"
            use = draw.choice(["Model", "ForTextToText", "ForSpeechToText", "ForTextToSpeech", "ForSpeechToSpeech"])
            return flags({**config, "architectures": [stem + use]}, "add_adapter")

        return drawn

    def embedding_gemma2():
        depth, heads = draw.randint(1, 7), draw.choice([2, 4])
        config = {"vocab_size": draw.randint(50, 300), "hidden_size": draw.randint(5, 40), "num_attention_heads": heads}
        config.update(num_hidden_layers=depth, num_key_value_heads=draw.choice([1, 2]), head_dim=2 * draw.randint(2, 6))
        config.update(intermediate_size=draw.randint(5, 60), hidden_size_per_layer_input=draw.randint(3, 20))
        config.update(embedding_dim=draw.randint(5, 40), global_head_dim=2 * draw.randint(2, 6), pad_token_id=0)
        if chance():
            config["layer_types"] = [draw.choice(["sliding_attention", "full_attention"]) for _ in range(depth)]
        elif chance():
            config["sliding_window_pattern"] = draw.randint(1, 4)
        return config

    def privacy():
        heads, dim = draw.choice([(4, 2), (6, 3), (2, 1)]), 2 * draw.randint(2, 5)
        config = {"vocab_size": draw.randint(50, 300), "hidden_size": draw.randint(5, 40), "head_dim": dim}
        config.update(num_attention_heads=heads[0], num_key_value_heads=heads[1], num_hidden_layers=draw.randint(1, 5))
        config.update(intermediate_size=draw.randint(5, 40), num_local_experts=draw.randint(4, 9), pad_token_id=0)
        return flags(config, "attention_bias")

    def sam():
        heads, patch, depth = draw.randint(1, 3), draw.randint(2, 4), draw.randint(1, 4)
        seen = {"hidden_size": 4 * heads * draw.randint(1, 4), "num_attention_heads": heads, "num_hidden_layers": depth}
        seen.update(patch_size=patch, image_size=patch * draw.randint(2, 5), output_channels=8 * draw.randint(1, 4))
        seen.update(window_size=draw.randint(1, 5), global_attn_indexes=[i for i in range(depth) if chance()])
        seen.update(num_pos_feats=draw.randint(3, 20), mlp_ratio=draw.choice([1.5, 2.0, 4.0]))
        if chance():
            seen["mlp_dim"] = draw.randint(5, 60)
        flags(seen, "qkv_bias", "use_abs_pos", "use_rel_pos")
        width = seen["output_channels"] * 2
        hints = {"hidden_size": width, "mask_input_channels": 4 * draw.randint(1, 4), "num_point_embeddings": draw.randint(1, 5)}
        masks = {"hidden_size": width, "mlp_dim": draw.randint(5, 60), "num_hidden_layers": draw.randint(1, 3)}
        masks.update(num_attention_heads=draw.choice([1, 2]), num_multimask_outputs=draw.randint(1, 4))
        masks.update(iou_head_depth=draw.randint(2, 4), iou_head_hidden_dim=draw.randint(5, 40))
        return {"vision_config": seen, "prompt_encoder_config": hints, "mask_decoder_config": masks}

    def retriever(within, model_type):
        def drawn():
            config = {"vlm_config": {"model_type": model_type, **within()}}
            return {**config, "embedding_dim": draw.randint(4, 40)} if chance() else config

        return drawn

    def ijepa():
        return flags(vit(), "qkv_bias")

    def vivit():
        config = flags(vit(), "qkv_bias")
        patch, frames = config.pop("patch_size"), draw.randint(1, 3)
        return {**config, "tubelet_size": [frames, patch, patch], "num_frames": frames * draw.randint(1, 4)}

    def timesformer():
        kind = draw.choice(["divided_space_time", "space_only", "joint_space_time"])
        return flags({**vit(), "attention_type": kind, "num_frames": draw.randint(1, 5)}, "qkv_bias")

    def vilt():
        config = {**vit(), "vocab_size": draw.randint(50, 300), "type_vocab_size": draw.randint(1, 3), **labels()}
        config.update(modality_type_vocab_size=draw.randint(2, 4), max_position_embeddings=draw.randint(9, 60))
        heads = ["Model", "ForQuestionAnswering", "ForImageAndTextRetrieval", "ForImagesAndTextClassification",
                 "ForTokenClassification"]
        config.update(num_images=draw.randint(2, 3), architectures=["Vilt" + draw.choice(heads)])
        return flags(config, "qkv_bias")

    def vitpose():
        seen = vit()
        del seen["intermediate_size"]
        patch = [draw.randint(2, 5), draw.randint(2, 5)]
        seen.update(model_type="vitpose_backbone", patch_size=patch, image_size=[side * draw.randint(1, 4) for side in patch])
        seen["mlp_ratio"] = draw.randint(1, 4)
        if chance():
            seen.update(num_experts=draw.randint(2, 4), part_features=draw.randint(1, seen["hidden_size"] - 1))
        config = {"backbone_config": flags(seen, "qkv_bias"), **labels()}
        return {**config, "use_simple_decoder": chance()}

    def resnet():
        stages = draw.randint(1, 4)
        widths = [4 * draw.randint(1, 6) for _ in range(stages)]
        config = {"embedding_size": draw.choice([widths[0], 12]), "hidden_sizes": widths, "num_channels": draw.randint(1, 4)}
        config.update(depths=[draw.randint(1, 3) for _ in range(stages)], layer_type=draw.choice(["basic", "bottleneck"]))
        return flags(config, "downsample_in_first_stage", "downsample_in_bottleneck")

    def clipseg():
        config = clip_like()
        seen = config["vision_config"]
        layers = sorted(draw.sample(range(seen["num_hidden_layers"]), draw.randint(1, seen["num_hidden_layers"])))
        heads = draw.randint(1, 3)
        config.update(extract_layers=layers, reduce_dim=2 * heads * draw.randint(1, 6), decoder_num_attention_heads=heads)
        config.update(decoder_intermediate_size=draw.randint(5, 60), use_complex_transposed_convolution=chance())
        if config["use_complex_transposed_convolution"]:
            seen.update(patch_size=4 * draw.randint(1, 3) + draw.randint(0, 1), image_size=39)
        return {**config, "architectures": ["CLIPSeg" + draw.choice(["Model", "ForImageSegmentation"])]}

    def chinese_clip():
        config = clip_like()
        config["text_config"]["type_vocab_size"] = draw.randint(1, 3)
        return config

    def git():
        config = clip_like()
        words = {**config["text_config"], "vision_config": config["vision_config"], "tie_word_embeddings": chance()}
        words["pad_token_id"] = 0
        if chance():
            words["num_image_with_embedding"] = draw.randint(1, 4)
        return {**words, "architectures": ["Git" + draw.choice(["Model", "ForCausalLM"])]}

    def dpt():
        stages = draw.randint(2, 4)
        config = {"neck_hidden_sizes": [draw.randint(2, 20) for _ in range(stages)], "fusion_hidden_size": draw.randint(2, 20)}
        config["reassemble_factors"] = [draw.choice([4, 2, 1, 0.5]) for _ in range(stages)]
        config["readout_type"] = draw.choice(["project", "ignore", "add"])
        if chance(0.3):
            config.update(backbone_config=depth()["backbone_config"], architectures=["DPTForDepthEstimation"])
            seen = config["backbone_config"]
            seen["out_indices"] = list(range(1, stages + 1))
            seen["num_hidden_layers"] = max(stages, seen["num_hidden_layers"])
        else:
            depth_of = draw.randint(stages, 5)
            config.update({**vit(), "num_hidden_layers": depth_of, "backbone_out_indices": list(range(stages))})
            config["architectures"] = [draw.choice(["DPTForDepthEstimation", "DPTForSemanticSegmentation"])]
        config.update(labels())
        return flags(config, "qkv_bias", "use_batch_norm_in_fusion_residual", "use_bias_in_fusion_residual", "add_projection",
                     "use_auxiliary_head")

    def hifi_gan(config):
        stages, kernels = draw.randint(1, 4), draw.randint(1, 3)
        config.update(upsample_rates=[2] * stages, upsample_kernel_sizes=[draw.randint(2, 9) for _ in range(stages)])
        config.update(upsample_initial_channel=2**stages * draw.randint(1, 5))
        config["resblock_kernel_sizes"] = [draw.choice([3, 5, 7]) for _ in range(kernels)]
        config["resblock_dilation_sizes"] = [[1] * draw.randint(1, 3) for _ in range(kernels)]
        return config

    def vits():
        heads = draw.randint(1, 3)
        config = {"vocab_size": draw.randint(20, 90), "hidden_size": heads * draw.randint(2, 8), "num_attention_heads": heads}
        for key in ("num_hidden_layers", "ffn_kernel_size", "prior_encoder_num_flows", "prior_encoder_num_wavenet_layers",
                    "posterior_encoder_num_wavenet_layers", "depth_separable_num_layers", "duration_predictor_num_flows"):
            config[key] = draw.randint(1, 4)
        for key in ("ffn_dim", "spectrogram_bins", "duration_predictor_flow_bins", "duration_predictor_filter_channels"):
            config[key] = draw.randint(3, 40)
        config.update(window_size=draw.randint(0, 5), flow_size=2 * draw.randint(1, 9), wavenet_kernel_size=draw.choice([3, 5, 7]))
        config.update(duration_predictor_kernel_size=draw.choice([3, 5]), depth_separable_channels=2 * draw.randint(1, 2))
        if chance():
            config.update(num_speakers=draw.randint(1, 5), speaker_embedding_size=draw.randint(2, 20))
        return flags(hifi_gan(config), "use_bias", "use_stochastic_duration_prediction")

    def with_vision(model_type, deep):
        def drawn():
            heads = draw.randint(1, 4)
            seen = {"depth": draw.randint(1, 4), "hidden_size": 4 * heads * draw.randint(1, 3), "num_heads": heads}
            seen.update(intermediate_size=draw.randint(5, 60), in_channels=draw.randint(1, 3), patch_size=draw.randint(2, 5))
            seen.update(spatial_merge_size=draw.randint(1, 3), temporal_patch_size=draw.randint(1, 3))
            seen.update(out_hidden_size=draw.randint(5, 40), num_position_embeddings=draw.randint(2, 6) ** 2)
            if deep:
                seen["deepstack_visual_indexes"] = draw.sample(range(seen["depth"]), draw.randint(0, seen["depth"]))
            read = {**families[model_type + "_text"][1](), "model_type": model_type + "_text"}
            return {"text_config": read, "vision_config": seen, "tie_word_embeddings": chance()}

        return drawn

    return {
        "ijepa": ("IJepaModel", of_class("IJepa", ["ForImageClassification"], ijepa)),
        "vit_msn": ("ViTMSNModel", of_class("ViTMSN", ["ForImageClassification"], ijepa)),
        "vivit": ("VivitModel", of_class("Vivit", ["ForVideoClassification"], vivit)),
        "timesformer": ("TimesformerModel", of_class("Timesformer", ["ForVideoClassification"], timesformer)),
        "vilt": ("ViltModel", vilt),
        "vitpose": ("VitPoseForPoseEstimation", vitpose),
        "resnet": ("ResNetModel", of_class("ResNet", ["ForImageClassification", "Backbone"], resnet)),
        "clipseg": ("CLIPSegModel", clipseg),
        "chinese_clip": ("ChineseCLIPModel", chinese_clip),
        "git": ("GitForCausalLM", git),
        "metaclip_2": ("MetaClip2Model", of_class("MetaClip2", ["ForImageClassification"], clip_like)),
        "dpt": ("DPTForDepthEstimation", dpt),
        "vits": ("VitsModel", vits),
        "speecht5_hifigan": ("SpeechT5HifiGan", lambda: hifi_gan({"model_in_dim": draw.randint(4, 40)})),
        "cohere_compass": ("CohereCompassForConditionalGeneration", with_vision("cohere_compass", True)),
        "qwen4_exp": ("Qwen4ExpForConditionalGeneration", with_vision("qwen4_exp", False)),
        "captioner": ("VisionEncoderDecoderModel", captioner),
        "owlvit": ("OwlViTModel", owl("OwlViT")),
        "owlv2": ("Owlv2Model", owl("Owlv2")),
        "clap": ("ClapModel", clap),
        "depth_anything": ("DepthAnythingForDepthEstimation", depth),
        "fsmt": ("FSMTForConditionalGeneration", fsmt),
        "prophetnet": ("ProphetNetModel", prophetnet),
        "pix2struct": ("Pix2StructForConditionalGeneration", pix2struct),
        "embedding_gemma2_text": ("EmbeddingGemma2TextModel", embedding_gemma2),
        "openai_privacy_filter": ("OpenAIPrivacyFilterModel", of_class("OpenAIPrivacyFilter", ["ForTokenClassification"], privacy)),
        "sam": ("SamModel", sam),
        "seamless_m4t": ("SeamlessM4TModel", seamless("SeamlessM4T")),
        "seamless_m4t_v2": ("SeamlessM4Tv2Model", seamless("SeamlessM4Tv2")),
        "speecht5": ("SpeechT5ForTextToSpeech", speecht5),
        "colpali": ("ColPaliForRetrieval", retriever(families["paligemma"][1], "paligemma")),
        "colqwen2": ("ColQwen2ForRetrieval", retriever(qwen2_vl, "qwen2_vl")),
        "beit": ("BeitModel", of_class("Beit", ["ForImageClassification"], beit)),
        "data2vec-vision": ("Data2VecVisionModel", of_class("Data2VecVision", ["ForImageClassification"], beit)),
        "yolos": ("YolosModel", of_class("Yolos", ["ForObjectDetection"], yolos)),
        "vit_mae": ("ViTMAEModel", of_class("ViTMAE", ["ForPreTraining"], mae)),
        "videomae": ("VideoMAEModel", of_class("VideoMAE", ["ForVideoClassification"], videomae)),
        "swin": ("SwinModel", of_class("Swin", ["ForImageClassification", "ForMaskedImageModeling"], swin)),
        "swinv2": ("Swinv2Model", of_class("Swinv2", ["ForImageClassification", "ForMaskedImageModeling"], swin)),
        "donut-swin": ("DonutSwinModel", of_class("DonutSwin", ["ForImageClassification"], swin)),
        "donut": ("VisionEncoderDecoderModel", lambda: {**donut(), "model_type": "vision-encoder-decoder"}),
        "convnext": ("ConvNextModel", of_class("ConvNext", ["ForImageClassification"], convnext)),
        "convnextv2": ("ConvNextV2Model", of_class("ConvNextV2", ["ForImageClassification"], convnext)),
        "segformer": ("SegformerModel",
                      of_class("Segformer", ["ForImageClassification", "ForSemanticSegmentation"], segformer)),
        "rembert": ("RemBertModel", text("RemBert", heads, lambda: {
            "input_embedding_size": draw.randint(4, 20), "output_embedding_size": draw.randint(4, 20)})),
        "roberta-prelayernorm": ("RobertaPreLayerNormModel", text("RobertaPreLayerNorm", heads)),
        "layoutlmv3": ("LayoutLMv3Model", layoutlmv3),
        "dpr": ("DPRReader", text("DPR", ["QuestionEncoder", "ContextEncoder", "Reader"],
                                  lambda: {"projection_dim": draw.choice([0, draw.randint(3, 9)])})),
    }
