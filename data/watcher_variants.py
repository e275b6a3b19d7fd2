"""Random odd variants of classes that detect, cut out, hear and foretell, which came last (check_family_variants.py)."""

import importlib.util

has_timm = importlib.util.find_spec("timm") is not None


def make_watchers(draw, decoder, flags):
    """The functions of the families, over the caller's `draw`."""

    def chance(probability=0.5):
        return draw.random() < probability

    def some(least, most, number):
        return [draw.randint(least, most) for _ in range(number)]

    # What hears.

    def plain_sound(factor, bins=None):
        heads = draw.randint(1, 3)
        config = {"hidden_size": 4 * heads * draw.randint(1, 4), "num_attention_heads": heads}
        config.update(num_hidden_layers=draw.randint(1, 4), intermediate_size=draw.randint(5, 40))
        return {**config, "subsampling_factor": factor, "num_mel_bins": draw.randint(4, 40)}

    def diarization(factor=None):
        factor = factor or draw.randint(1, 9)
        audio, speakers = plain_sound(factor), draw.randint(1, 9)
        head = {"hidden_size": draw.randint(3, 20), "num_speakers": speakers, "subsampling_factor": factor}
        head["audio_hidden_size"] = audio["hidden_size"]
        streams = {"num_speakers": speakers, "subsampling_factor": factor}
        return {"audio_config": audio, "head_config": head, "streaming_config": streams}

    def transcribe():
        language = {**decoder(), "model_type": "nemotron_h", "layers_block_type": 3 * ["mamba", "attention", "moe"]}
        language.update(num_hidden_layers=9, mamba_num_heads=4, mamba_head_dim=6, n_groups=2, ssm_state_size=5)
        language.update(n_routed_experts=draw.randint(2, 5), num_experts_per_tok=2, moe_intermediate_size=draw.randint(3, 20))
        language.update(moe_shared_expert_intermediate_size=draw.randint(3, 20))
        language.pop("tie_word_embeddings")
        factor = draw.randint(1, 9)
        audio = {"asr_config": plain_sound(factor), "model_type": "nemotron3_5_transcribe_audio"}
        audio["diarization_config"] = {"model_type": "nemotron3_diarization", **diarization(factor)}
        times = plain_sound(factor)
        times.update(vocab_size=draw.randint(9, 60), blank_token_id=3, upsampling_factor=draw.randint(1, 4))
        return {"text_config": language, "audio_config": audio, "word_timestamp_config": times}

    def streaming(prompts=False):
        heads = draw.randint(1, 3)
        encoder = {"hidden_size": 2 * heads * draw.randint(2, 6), "num_attention_heads": heads}
        encoder.update(num_hidden_layers=draw.randint(1, 4), intermediate_size=draw.randint(5, 40))
        encoder.update(subsampling_factor=draw.choice([2, 4, 8]), subsampling_conv_channels=draw.randint(2, 9))
        encoder.update(num_mel_bins=draw.randint(8, 40), conv_kernel_size=2 * draw.randint(1, 4) + 1)
        config = {"encoder_config": flags(encoder, "attention_bias", "convolution_bias"), "vocab_size": draw.randint(50, 300)}
        config.update(decoder_hidden_size=draw.randint(5, 40), num_decoder_layers=draw.randint(1, 4))
        if prompts:
            config.update(num_prompts=draw.randint(2, 20), prompt_intermediate_size=draw.randint(3, 30), default_prompt_id=1)
        return {**config, "blank_token_id": config["vocab_size"] - 1}

    # What sees on small machines.

    def of_class(stem, heads, make):
        def drawn():
            labels = {"id2label": {str(number): f"label {number}" for number in range(draw.randint(1, 9))}}
            config = {**make(), **(labels if chance(0.7) else {})}
            return {**config, "architectures": [stem + draw.choice(["Model", *heads])]}

        return drawn

    sees, cuts = "ForImageClassification", "ForSemanticSegmentation"

    def multiplied():
        config = {"num_channels": draw.randint(1, 4), "depth_multiplier": draw.choice([0.25, 0.35, 0.5, 1.0, 1.3])}
        return {**config, "min_depth": draw.choice([1, 3, 8, 16])}

    def mobilenet_v2():
        config = {**multiplied(), "depth_divisible_by": draw.choice([1, 3, 8]), "expand_ratio": draw.choice([1.5, 4, 6.0])}
        return flags(config, "first_layer_is_expansion", "finegrained_output")

    def efficientnet():
        stages = draw.randint(1, 5)
        channels = some(3, 40, stages + 1)
        config = {"in_channels": channels[:-1], "out_channels": channels[1:], "strides": some(1, 2, stages)}
        config.update(num_block_repeats=some(1, 3, stages), expand_ratios=some(1, 4, stages))
        config.update(kernel_sizes=[draw.choice([1, 3, 5]) for _ in range(stages)], num_channels=draw.randint(1, 4))
        config.update(width_coefficient=draw.choice([1.0, 1.1, 1.4, 0.5]), depth_coefficient=draw.choice([1.0, 1.2, 2.6]))
        config.update(depth_divisor=draw.choice([2, 4, 8]), squeeze_expansion_ratio=draw.choice([0.25, 0.1, 0.5]))
        return {**config, "hidden_dim": draw.randint(9, 90)}

    def mobilevit():
        heads = draw.choice([1, 2, 3])
        config = {"num_attention_heads": heads, "hidden_sizes": [heads * n for n in some(3, 12, 3)]}
        config.update(neck_hidden_sizes=some(3, 30, 7), mlp_ratio=draw.choice([1.5, 2.0, 3.0]))
        config.update(expand_ratio=draw.choice([1.5, 2.0, 4.0]), conv_kernel_size=draw.choice([1, 3, 5]))
        config.update(num_channels=draw.randint(1, 4), aspp_out_channels=draw.randint(3, 30))
        return {**flags(config, "qkv_bias"), "output_stride": draw.choice([8, 16, 32])}

    def mobilevitv2():
        config = {"width_multiplier": draw.choice([0.1, 0.5, 0.75, 1.0, 2.0]), "base_attn_unit_dims": some(20, 90, 3)}
        config.update(n_attn_blocks=some(1, 4, 3), ffn_multiplier=draw.randint(2, 4))
        config.update(expand_ratio=draw.choice([1.5, 2.0, 4.0]), conv_kernel_size=draw.choice([1, 3, 5]))
        return {**config, "num_channels": draw.randint(1, 4), "aspp_out_channels": draw.randint(3, 30)}

    # What finds things.

    def labels():
        return {"id2label": {str(number): f"label {number}" for number in range(draw.randint(1, 9))}} if chance(0.7) else {}

    def backbone(pictures=None):
        """A ResNet of transformers' own, or of timm's where that is installed."""
        if has_timm and chance(0.3):
            named = {"backbone": draw.choice(["resnet18", "resnet50"]), "use_timm_backbone": True, "num_channels": draw.randint(1, 4)}
            return {key: value for key, value in named.items() if chance(0.8)}
        widths = [4 * n for n in some(2, 9, 4)]
        resnet = {"model_type": "resnet", "embedding_size": draw.randint(2, 9), "hidden_sizes": widths, "depths": some(1, 3, 4)}
        resnet.update(layer_type=draw.choice(["basic", "bottleneck"]), num_channels=draw.randint(1, 3))
        resnet["out_features"] = [f"stage{n}" for n in (pictures or draw.choice([[4], [1, 2, 3, 4], [2, 4]]))]
        return {"backbone_config": resnet, "use_timm_backbone": False, "backbone": None}

    def detector(width="d_model", of=4):
        heads = draw.choice([1, 2, 4])
        config = {width: of * heads * draw.randint(2, 6), "encoder_attention_heads": heads, "decoder_attention_heads": heads}
        config.update(encoder_layers=draw.randint(1, 3), decoder_layers=draw.randint(1, 4), num_queries=draw.randint(3, 20))
        return {**config, "encoder_ffn_dim": draw.randint(5, 40), "decoder_ffn_dim": draw.randint(5, 40), **labels()}

    def detr(stem, masks=True):
        def drawn():
            kind = draw.choice(["Model", "ForObjectDetection"] + (["ForSegmentation"] if masks else []))
            config = {**detector(), **backbone([1, 2, 3, 4] if kind == "ForSegmentation" else None)}
            if kind == "ForSegmentation":  # its group norms want channels by eights
                config.update(d_model=128 * draw.randint(1, 2), encoder_attention_heads=8, decoder_attention_heads=8)
            elif chance(0.3):
                config["position_embedding_type"] = "learned"
            return {**config, "architectures": [stem + kind]}

        return drawn

    def dab_detr():
        config = {**detector("hidden_size"), **backbone(), "num_patterns": draw.choice([0, 3])}
        config["activation_function"] = draw.choice(["prelu", "relu"])
        return {**flags(config, "normalize_before"), "architectures": ["DabDetr" + draw.choice(["Model", "ForObjectDetection"])]}

    def deformable_detr():
        config = {**detector(of=32), **backbone([2, 3, 4]), "encoder_n_points": draw.randint(1, 5)}
        config.update(decoder_n_points=draw.randint(1, 5), num_feature_levels=draw.randint(3, 6))
        if chance(0.2) and "backbone_config" not in config:
            config["num_feature_levels"] = 1
        config["with_box_refine"] = chance()
        if config["with_box_refine"]:
            config["two_stage"] = chance()
        return {**config, "architectures": ["DeformableDetr" + draw.choice(["Model", "ForObjectDetection"])]}

    # What cuts out.

    def sam2():
        stages = draw.randint(2, 4)
        heads = draw.choice([1, 2])
        widths = [8 * heads * n for n in sorted(some(1, 6, stages))]
        seen = {"model_type": "sam2_hiera_det_model", "hidden_size": widths[0], "embed_dim_per_stage": widths}
        seen.update(blocks_per_stage=some(1, 3, stages), num_attention_heads_per_stage=[heads] * stages)
        seen.update(window_size_per_stage=some(2, 9, stages), mlp_ratio=draw.choice([2.0, 3.5, 4.0]))
        seen.update(patch_kernel_size=some(3, 8, 2), window_positional_embedding_background_size=some(3, 8, 2))
        hidden = 8 * draw.randint(2, 6)
        vision = {"model_type": "sam2_vision_model", "backbone_config": seen, "backbone_channel_list": widths[::-1]}
        vision.update(fpn_hidden_size=hidden, fpn_kernel_size=draw.choice([1, 3]))
        hints = {"hidden_size": hidden, "mask_input_channels": 4 * draw.randint(1, 5), "num_point_embeddings": draw.randint(2, 6)}
        masks = {"hidden_size": hidden, "num_attention_heads": 2, "mlp_dim": draw.randint(5, 40), "num_hidden_layers": draw.randint(1, 3)}
        masks.update(num_multimask_outputs=draw.randint(1, 4), iou_head_depth=draw.randint(2, 4), iou_head_hidden_dim=draw.randint(3, 30))
        masks["attention_downsample_rate"] = draw.choice([1, 2, 4])
        return {"vision_config": vision, "prompt_encoder_config": hints, "mask_decoder_config": masks}

    def sam2_video():
        config = sam2()
        config.update(num_maskmem=draw.randint(2, 8), memory_attention_hidden_size=8 * draw.randint(2, 6))
        config.update(memory_attention_num_layers=draw.randint(1, 4), memory_attention_downsample_rate=draw.choice([1, 2]))
        config.update(memory_attention_feed_forward_hidden_size=draw.randint(5, 40), memory_encoder_hidden_size=draw.randint(5, 40))
        config.update(memory_encoder_output_channels=2 * draw.randint(2, 20), mask_downsampler_embed_dim=draw.randint(5, 40))
        config.update(mask_downsampler_kernel_size=draw.choice([3, 5]), mask_downsampler_total_stride=draw.choice([4, 8, 16]))
        config.update(memory_fuser_num_layers=draw.randint(1, 3), memory_fuser_embed_dim=draw.randint(5, 40))
        config.update(memory_fuser_intermediate_dim=draw.randint(5, 40), memory_fuser_kernel_size=draw.choice([3, 7]))
        return flags(config, "enable_occlusion_spatial_embedding", "enable_temporal_pos_encoding_for_object_pointers")

    def swin_backbone(out):
        """A Swin of as many stages as `out` names the last of."""
        first = draw.randint(1, 3)
        seen = {"model_type": "swin", "embed_dim": 2 * first * draw.randint(2, 4), "depths": some(1, 2, 4)}
        seen.update(num_heads=[first * draw.choice([1, 2]) for _ in range(4)], window_size=draw.randint(2, 5))
        seen.update(mlp_ratio=draw.choice([1.5, 2.0, 4.0]), patch_size=draw.randint(2, 4), num_channels=draw.randint(1, 3))
        return flags({**seen, "out_features": [f"stage{n}" for n in out]}, "qkv_bias")

    def grounding(stem, shares):
        def drawn():
            heads = draw.choice([1, 2])
            words = {"model_type": "bert", "vocab_size": draw.randint(50, 300), "hidden_size": 4 * heads * draw.randint(2, 5)}
            words.update(num_attention_heads=heads, num_hidden_layers=draw.randint(1, 3), intermediate_size=draw.randint(5, 40))
            words.update(max_position_embeddings=draw.randint(9, 60), type_vocab_size=draw.randint(1, 3))
            config = {**detector(of=32), "text_config": words, "backbone_config": swin_backbone([2, 3, 4])}
            config.update(encoder_ffn_dim=8 * draw.randint(2, 8), num_feature_levels=draw.randint(3, 5))
            config.update(encoder_n_points=draw.randint(1, 5), decoder_n_points=draw.randint(1, 5))
            config = flags(config, *shares, "embedding_init_target", "two_stage")
            return {**config, "architectures": [stem + draw.choice(["Model", "ForObjectDetection"])]}

        return drawn

    def mask2former():
        heads = draw.choice([1, 2])
        config = {"backbone_config": swin_backbone([1, 2, 3, 4]), "num_attention_heads": heads, **labels()}
        features = 32 * heads * draw.randint(1, 2)
        config.update(feature_size=features, hidden_dim=draw.choice([features, 12 * heads]), mask_feature_size=draw.randint(5, 40))
        config.update(encoder_feedforward_dim=draw.randint(5, 40), dim_feedforward=draw.randint(5, 40), num_queries=draw.randint(3, 20))
        config.update(encoder_layers=draw.randint(1, 3), decoder_layers=draw.randint(2, 5))
        kind = draw.choice(["Model", "ForUniversalSegmentation"])
        return {**flags(config, "enforce_input_projection"), "architectures": ["Mask2Former" + kind]}

    # What came from others' encoders, and a codec.

    def vjepa2():
        heads, narrow = draw.choice([1, 2]), draw.choice([1, 2])
        config = {"hidden_size": 12 * heads * draw.randint(1, 3), "num_attention_heads": heads, "patch_size": draw.randint(2, 6)}
        config.update(tubelet_size=draw.randint(1, 3), in_chans=draw.randint(1, 4), num_hidden_layers=draw.randint(1, 4))
        config.update(mlp_ratio=draw.choice([1.5, 2.0, 4.0]), pred_mlp_ratio=draw.choice([1.5, 2.0, 4.0]))
        config.update(pred_hidden_size=12 * narrow * draw.randint(1, 3), pred_num_attention_heads=narrow)
        config.update(pred_num_hidden_layers=draw.randint(1, 3), pred_num_mask_tokens=draw.randint(1, 9))
        config.update(num_pooler_layers=draw.randint(0, 3), crop_size=config["patch_size"] * 4)
        kind = draw.choice(["Model", "ForVideoClassification"])
        return {**flags(config, "qkv_bias"), **labels(), "architectures": ["VJEPA2" + kind]}

    def dinov3_convnext():
        stages = 4
        config = {"hidden_sizes": some(3, 20, stages), "depths": some(1, 3, stages), "num_channels": draw.randint(1, 4)}
        return {**config, "layer_scale_init_value": draw.choice([0.0, 1e-6])}

    def words(**more):
        heads = draw.choice([1, 2, 4])
        config = {"vocab_size": draw.randint(50, 300), "hidden_size": 16 * heads * draw.randint(1, 2), "num_attention_heads": heads}
        config.update(num_hidden_layers=draw.randint(1, 4), intermediate_size=draw.randint(5, 40), type_vocab_size=draw.randint(1, 3))
        return {**config, "max_position_embeddings": draw.randint(9, 60), **more}

    def altclip():
        heads, patch = draw.choice([1, 2]), draw.randint(2, 5)
        seen = {"hidden_size": 8 * heads, "num_attention_heads": heads, "num_hidden_layers": draw.randint(1, 3), "patch_size": patch}
        seen.update(intermediate_size=draw.randint(5, 40), image_size=patch * draw.randint(2, 4), num_channels=draw.randint(1, 3))
        read = words(project_dim=draw.randint(4, 40), pad_token_id=1)
        return {"text_config": read, "vision_config": seen, "projection_dim": draw.randint(4, 40)}

    def bros():
        config = {**words(), "dim_bbox": draw.choice([2, 4, 8]), **labels()}
        return {**config, "hidden_size": 64 * draw.randint(1, 2), "architectures": ["Bros" + draw.choice(["Model", "ForTokenClassification"])]}

    def dac():
        steps = draw.randint(1, 4)
        config = {"downsampling_ratios": some(2, 8, steps), "encoder_hidden_size": draw.randint(2, 9)}
        config.update(decoder_hidden_size=2**steps * draw.randint(2, 6), n_codebooks=draw.randint(1, 5))
        return {**config, "codebook_size": 2 ** draw.randint(2, 6), "codebook_dim": draw.randint(2, 9)}

    return {
        "vjepa2": ("", vjepa2),
        "dinov3_convnext": ("DINOv3ConvNextModel", dinov3_convnext),
        "altclip": ("AltCLIPModel", altclip),
        "bros": ("", bros),
        "dac": ("DacModel", dac),
        "grounding-dino": ("", grounding("GroundingDino", ["decoder_bbox_embed_share"])),
        "mm-grounding-dino": ("", grounding("MMGroundingDino", ["decoder_bbox_embed_share", "decoder_cls_embed_share"])),
        "mask2former": ("", mask2former),
        "sam2": ("Sam2Model", sam2),
        "sam2_video": ("Sam2VideoModel", sam2_video),
        "detr": ("", detr("Detr")),
        "table-transformer": ("", detr("TableTransformer", masks=False)),
        "conditional_detr": ("", detr("ConditionalDetr")),
        "dab-detr": ("", dab_detr),
        "deformable_detr": ("", deformable_detr),
        "mobilenet_v1": ("", of_class("MobileNetV1", [sees], multiplied)),
        "mobilenet_v2": ("", of_class("MobileNetV2", [sees, cuts], mobilenet_v2)),
        "efficientnet": ("", of_class("EfficientNet", [sees], efficientnet)),
        "mobilevit": ("", of_class("MobileViT", [sees, cuts], mobilevit)),
        "mobilevitv2": ("", of_class("MobileViTV2", [sees, cuts], mobilevitv2)),
        "nemotron3_diarization": ("Nemotron3DiarizationForAudioFrameClassification", diarization),
        "nemo_speechlm": ("Nemotron3_5TranscribeForConditionalGeneration", transcribe),
        "nemotron_asr_streaming": ("NemotronAsrStreamingForRNNT", streaming),
        "nemotron3_5_asr": ("Nemotron3_5AsrForRNNT", lambda: streaming(True)),
    }
