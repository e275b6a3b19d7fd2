"""Random odd variants of models that see: a language model's config and a tower's (check_family_variants.py)."""


def make_sighted(draw, decoder, flags):
    """The functions of the families, over the caller's `draw`."""

    def chance(probability=0.5):
        return draw.random() < probability

    def text(kind, **more):
        config = {**decoder(head_dim=kind in ("qwen3", "mistral")), "model_type": kind, **more}
        config.pop("tie_word_embeddings")
        return config

    def llama():
        return text(draw.choice(["llama", "qwen2", "qwen3", "mistral"]))

    def encoder(kind, patch="square", **more):
        heads = draw.randint(1, 4)
        size = draw.randint(2, 6)
        config = {
            "model_type": kind,
            "hidden_size": heads * draw.choice([4, 6, 8]),
            "num_attention_heads": heads,
            "intermediate_size": draw.randint(5, 60),
            "num_hidden_layers": draw.randint(1, 4),
            "num_channels": draw.randint(1, 3),
            "patch_size": size,
            **more,
        }
        if patch == "square":
            config["image_size"] = size * draw.randint(2, 5) + draw.randint(0, size - 1)
        return config

    def model(vision, language, **document):
        return {"text_config": language, "vision_config": vision, "tie_word_embeddings": chance(), **document}

    def clip_or_siglip():
        kind = draw.choice(["clip_vision_model", "siglip_vision_model", "pixtral"])
        vision = encoder(kind)
        return flags(vision, "vision_use_head") if kind == "siglip_vision_model" else vision

    def layers_joined():
        return {"vision_feature_layer": draw.choice([-1, -2, [-1, -2], [0, 1, -1]])} if chance() else {}

    def llava():
        return flags(model(clip_or_siglip(), llama(), **layers_joined()), "multimodal_projector_bias")

    def vipllava():
        vision = {**encoder("clip_vision_model"), "num_hidden_layers": 4}
        return model(vision, text("llama"), vision_feature_layer=draw.choice([[-1, -2], [-1, -2, -3]]))

    def internvl():
        size = draw.randint(2, 5)
        vision = encoder("internvl_vision", None)
        vision.update(patch_size=[size, size], image_size=[size * draw.randint(2, 5)] * 2)
        vision = flags(vision, "attention_bias", "use_qk_norm", "use_mask_token", "use_absolute_position_embeddings")
        if chance(0.4):
            vision["norm_type"] = "rms_norm"
        return flags(model(vision, llama(), downsample_ratio=draw.choice([0.5, 1.0])))

    def paligemma():
        config = model(encoder("siglip_vision_model", vision_use_head=False), text(draw.choice(["gemma", "gemma2"])))
        config["text_config"]["head_dim"] = draw.choice([4, 6])
        return {**config, "projection_dim": draw.randint(4, 40)}

    def cohere(factor="downsample_factor"):
        vision = flags(encoder("siglip_vision_model"), "vision_use_head")
        config = model(vision, text("cohere2"), **{factor: draw.randint(1, 3)})
        return {**config, "alignment_intermediate_size": 2 * draw.randint(3, 30), "tie_word_embeddings": True}

    def idefics3(kind="idefics3_vision"):
        return model(encoder(kind), text("llama"), scale_factor=draw.randint(1, 3))

    def lfm2_vl():
        language = text("lfm2", conv_L_cache=3)
        language["layer_types"] = [draw.choice(["conv", "full_attention"]) for _ in range(language["num_hidden_layers"])]
        language["block_auto_adjust_ff_dim"] = False
        vision = flags(encoder("siglip2_vision_model", None, num_patches=draw.randint(2, 9) ** 2), "vision_use_head")
        config = model(vision, language, downsample_factor=draw.randint(1, 3), projector_hidden_size=draw.randint(4, 40))
        return flags({**config, "tie_word_embeddings": True}, "projector_bias", "projector_use_layernorm")

    def lighton_ocr():
        return model(encoder("pixtral"), text("qwen3"), spatial_merge_size=draw.randint(1, 3))

    def glm4v_vision(kind):
        vision = encoder(kind, num_heads=1)
        vision["depth"] = vision.pop("num_hidden_layers")
        vision["num_heads"] = vision.pop("num_attention_heads")
        vision["in_channels"] = vision.pop("num_channels")
        vision.update(out_hidden_size=draw.randint(4, 40), spatial_merge_size=draw.randint(1, 3))
        return flags(vision, "attention_bias")

    def glm4v():
        return model(glm4v_vision("glm4v_vision"), {**decoder(head_dim=False), "model_type": "glm4v_text"})

    def glm4v_moe():
        number = draw.randint(2, 6)
        language = {**decoder(), "model_type": "glm4v_moe_text", "n_routed_experts": number, "n_group": 1}
        language.update(num_experts_per_tok=draw.randint(1, number), moe_intermediate_size=draw.randint(3, 30))
        language.update(first_k_dense_replace=draw.randint(0, 3), n_shared_experts=draw.randint(1, 3), topk_group=1)
        return model(glm4v_vision("glm4v_moe_vision"), flags(language, "attention_bias"))

    def video_llama_3():
        return model(encoder("video_llama_3_vision", None), text("qwen2"))

    def qwen_vision(kind, **more):
        vision = glm4v_vision(kind)
        vision.update(hidden_size=8 * draw.randint(1, 3), num_heads=4, fullatt_block_indexes=[0], window_size=8, **more)
        vision.pop("attention_bias", None)
        return vision

    def exaone4_5():
        return model(qwen_vision("exaone4_5_vision", num_key_value_heads=draw.choice([1, 2, 4])), text("exaone4"))

    def hyperclovax_vision_v2():
        return model(qwen_vision("qwen2_5_vl_vision"), text("hyperclovax"))

    def audio(kind, **more):
        config = {"model_type": kind, "d_model": 8 * draw.randint(1, 4), "encoder_attention_heads": draw.choice([1, 2, 4])}
        config.update(encoder_layers=draw.randint(1, 3), encoder_ffn_dim=draw.randint(5, 40), **more)
        return {**config, "num_mel_bins": draw.randint(3, 40), "output_dim": draw.randint(4, 40)}

    def omni():
        language = {**decoder(head_dim=False), "model_type": "qwen2_5_omni_text"}
        config = model(qwen_vision("qwen2_5_omni_vision_encoder"), language, audio_config=audio("qwen2_5_omni_audio_encoder"))
        return config

    def omni3():
        number = draw.randint(2, 6)
        language = {**decoder(), "model_type": "qwen3_omni_moe_text", "num_experts": number}
        language.update(num_experts_per_tok=draw.randint(1, number), moe_intermediate_size=draw.randint(3, 30))
        language = flags(language, "attention_bias")
        if chance():
            language["decoder_sparse_step"] = draw.randint(1, 3)
        if chance():
            language["mlp_only_layers"] = [0]
        vision = qwen_vision("qwen3_omni_moe_vision_encoder", num_position_embeddings=draw.randint(2, 6) ** 2)
        if chance():
            vision["deepstack_visual_indexes"] = list(range(draw.randint(0, vision["depth"])))
        hearing = audio("qwen3_omni_moe_audio_encoder", downsample_hidden_size=draw.randint(3, 9))
        return model(vision, language, audio_config=hearing)

    def aria():
        language = text("aria_text", moe_num_experts=draw.randint(2, 5), moe_topk=2, moe_num_shared_experts=draw.randint(1, 3))
        vision = {**encoder("idefics3_vision"), "num_attention_heads": 1}
        return {**model(vision, language), "max_value_projector_patch_to_query_dict": draw.randint(3, 20)}

    def blip(kind):
        vision = flags(encoder(kind + "_vision_model"), "qkv_bias")
        vision.pop("num_channels")
        heads, width = draw.randint(1, 3), vision["hidden_size"]
        former = {"hidden_size": 6 * heads, "num_attention_heads": heads, "num_hidden_layers": draw.randint(1, 5)}
        former.update(intermediate_size=draw.randint(5, 40), encoder_hidden_size=width, vocab_size=draw.randint(9, 50))
        former.update(cross_attention_frequency=draw.randint(1, 3), max_position_embeddings=draw.randint(5, 40))
        language = {"model_type": "opt", "vocab_size": 99, "hidden_size": 24, "num_attention_heads": 2, "ffn_dim": 30}
        language.update(num_hidden_layers=draw.randint(1, 3), max_position_embeddings=17, word_embed_proj_dim=24)
        config = model(vision, language, qformer_config=former, num_query_tokens=draw.randint(2, 9))
        config.pop("tie_word_embeddings")
        return config

    def idefics2():
        language = text("mistral")
        head, kv = draw.randint(1, 3), draw.randint(1, 3)
        resampler = {"hidden_size": language["hidden_size"], "resampler_head_dim": draw.randint(3, 9)}
        resampler.update(resampler_n_heads=head * kv, num_key_value_heads=kv, resampler_depth=draw.randint(1, 4))
        resampler.update(resampler_n_latents=draw.randint(2, 9))
        return model({**encoder("idefics2_vision"), "num_attention_heads": 1}, language, perceiver_config=resampler)

    def sam(kind):
        vision = encoder(kind, output_channels=draw.randint(3, 20), mlp_dim=draw.randint(5, 40))
        vision.pop("intermediate_size")
        vision["global_attn_indexes"] = draw.choice([[0], [0, 3], [1, 2]])
        vision["window_size"] = draw.randint(2, 9)
        return flags(vision, "qkv_bias", "use_abs_pos", "use_rel_pos")

    def deepseek_vl(hybrid=False):
        language = text("llama")
        language["hidden_size"], language["num_attention_heads"] = 2 * draw.randint(3, 20), 1
        language["num_key_value_heads"] = 1
        vision = flags(encoder("siglip_vision_model"), "vision_use_head")
        return model(vision, language, **({"high_res_vision_config": sam("sam_vision_model")} if hybrid else {}))

    def janus():
        language = text("llama")
        width = language["hidden_size"]
        vision = encoder("janus_vision_model", depth=draw.randint(1, 3), projection_dim=width, mlp_ratio=draw.choice([2.0, 3.5]))
        vision.pop("intermediate_size")
        base = 32
        drawn = {"base_channels": base, "latent_channels": draw.randint(3, 20), "embed_dim": draw.randint(2, 9)}
        drawn.update(channel_multiplier=draw.choice([[1, 2], [1, 1, 2], [2, 1, 3]]), num_res_blocks=draw.randint(1, 3))
        drawn.update(num_embeddings=draw.randint(9, 50), projection_dim=draw.randint(5, 20), num_hidden_layers=draw.randint(1, 3))
        drawn.update(image_token_embed_dim=draw.randint(5, 20))
        return model(flags(vision, "attention_bias", "use_qk_norm"), language, vq_config=flags(drawn, "double_latent"))

    def qwen3_5():
        language = {**decoder(), "model_type": "qwen3_5_text", "linear_num_key_heads": 2, "linear_num_value_heads": 4}
        language.update(linear_key_head_dim=4, linear_value_head_dim=6)
        language.setdefault("head_dim", 8)
        language.pop("tie_word_embeddings")
        return language

    def minicpm_v(kind):
        window = [draw.randint(1, 3), draw.randint(1, 3)]
        vision = encoder(kind + "_vision", window_kernel_size=window, insert_layer_id=0)
        return model(vision, qwen3_5(), merger_times=draw.randint(1, 3), insert_layer_id=0)

    def nemotron_h_omni():
        language = {**decoder(), "model_type": "nemotron_h", "layers_block_type": 3 * ["mamba", "attention", "mlp"]}
        language.update(num_hidden_layers=9, mamba_num_heads=4, mamba_head_dim=6, n_groups=2, ssm_state_size=5)
        language.pop("tie_word_embeddings")
        vision = encoder("radio", None, mlp_ratio=draw.choice([2.0, 3.5]), num_cls_tokens=draw.randint(1, 4))
        vision.pop("intermediate_size")
        frames = draw.randint(2, 4)
        vision.update(max_img_size=vision["patch_size"] * draw.randint(2, 6), video_temporal_patch_size=frames)
        vision.update(num_registers=draw.randint(1, 5))
        config = model(flags(vision, "qkv_bias"), language, vision_hidden_size=vision["hidden_size"])
        if chance():
            heads = draw.randint(1, 3)
            sound = {"hidden_size": 8 * heads, "num_attention_heads": heads, "num_key_value_heads": heads}
            sound.update(num_hidden_layers=draw.randint(1, 3), intermediate_size=draw.randint(5, 40))
            sound.update(subsampling_conv_channels=draw.randint(3, 9), subsampling_factor=draw.choice([2, 4, 8]))
            sound.update(num_mel_bins=draw.randint(8, 40), projection_hidden_size=draw.randint(5, 40))
            sound = flags({**sound, "projection_bias": chance()}, "attention_bias", "convolution_bias")
            config["audio_config"] = {**sound, "conv_kernel_size": 2 * draw.randint(1, 4) + 1}
        return {**config, "video_temporal_patch_size": frames, "projector_hidden_size": draw.randint(5, 40)}

    def ovis2():
        language = text("qwen2")
        vision = encoder("ovis2_vision", vocab_size=draw.randint(20, 60), hidden_stride=draw.randint(1, 3))
        vision["num_visual_indicator_tokens"] = draw.randint(1, 7)
        config = model(flags(vision, "qkv_bias", "mlp_bias"), language, hidden_size=language["hidden_size"])
        return {**config, "vocab_size": language["vocab_size"]}

    def video_llava():
        return flags(model(encoder("clip_vision_model"), text("llama")), "multimodal_projector_bias")

    def fuyu():
        language = text("persimmon")
        for key in ("num_key_value_heads", "head_dim"):
            language.pop(key, None)
        return {"text_config": language, "patch_size": draw.randint(2, 6), "num_channels": draw.randint(1, 3)}

    def phi4_multimodal():
        vision = {**encoder("phi4_multimodal_vision"), "crop_size": 8}
        vision["num_attention_heads"], heads = 1, draw.randint(1, 3)
        sound = {"model_type": "phi4_multimodal_audio", "hidden_size": 4 * heads, "num_attention_heads": heads}
        sound.update(intermediate_size=draw.randint(5, 40), num_blocks=draw.randint(1, 3), input_size=draw.randint(8, 40))
        sound.update(time_reduction=draw.choice([2, 4, 8]), nemo_conv_channels=draw.randint(3, 9))
        sound.update(kernel_size=draw.randint(2, 5), bias_max_distance=draw.randint(3, 20))
        sound.update(ext_pw_out_channel=4 * heads, depthwise_separable_out_channel=4 * heads)
        sound.update(depthwise_multiplier=draw.randint(1, 3))
        language = {**decoder(head_dim=False), "vision_config": vision, "audio_config": flags(sound, "bias_symmetric")}
        return {**language, "original_max_position_embeddings": 64, "max_position_embeddings": 64}

    return {
        "phi4_multimodal": ("Phi4MultimodalForCausalLM", phi4_multimodal),
        "aria": ("AriaForConditionalGeneration", aria),
        "blip-2": ("Blip2ForConditionalGeneration", lambda: blip("blip_2")),
        "instructblip": ("InstructBlipForConditionalGeneration", lambda: blip("instructblip")),
        "idefics2": ("Idefics2ForConditionalGeneration", idefics2),
        "got_ocr2": ("GotOcr2ForConditionalGeneration", lambda: model(sam("got_ocr2_vision"), text("qwen2"))),
        "deepseek_vl": ("DeepseekVLForConditionalGeneration", deepseek_vl),
        "deepseek_vl_hybrid": ("DeepseekVLHybridForConditionalGeneration", lambda: deepseek_vl(True)),
        "janus": ("JanusForConditionalGeneration", janus),
        "minicpmv4_6": ("MiniCPMV4_6ForConditionalGeneration", lambda: minicpm_v("minicpmv4_6")),
        "minicpm_ocr": ("MiniCPMOcrForConditionalGeneration", lambda: minicpm_v("minicpm_ocr")),
        "nemotron_h_omni": ("NemotronH_Omni_Reasoning_V3", nemotron_h_omni),
        "ovis2": ("Ovis2ForConditionalGeneration", ovis2),
        "video_llava": ("VideoLlavaForConditionalGeneration", video_llava),
        "fuyu": ("FuyuForCausalLM", fuyu),
        "qwen2_5_omni_thinker": ("Qwen2_5OmniThinkerForConditionalGeneration", omni),
        "qwen3_omni_moe_thinker": ("Qwen3OmniMoeThinkerForConditionalGeneration", omni3),
        "exaone4_5": ("Exaone4_5_ForConditionalGeneration", exaone4_5),
        "hyperclovax_vision_v2": ("HyperCLOVAXVisionV2ForConditionalGeneration", hyperclovax_vision_v2),
        "llava": ("LlavaForConditionalGeneration", llava),
        "llava_next": ("LlavaNextForConditionalGeneration", llava),
        "llava_onevision": ("LlavaOnevisionForConditionalGeneration", llava),
        "vipllava": ("VipLlavaForConditionalGeneration", vipllava),
        "internvl": ("InternVLForConditionalGeneration", internvl),
        "paligemma": ("PaliGemmaForConditionalGeneration", paligemma),
        "aya_vision": ("AyaVisionForConditionalGeneration", cohere),
        "cohere2_vision": ("Cohere2VisionForConditionalGeneration", cohere),
        "idefics3": ("Idefics3ForConditionalGeneration", idefics3),
        "smolvlm": ("SmolVLMForConditionalGeneration", lambda: idefics3("smolvlm_vision")),
        "lfm2_vl": ("Lfm2VlForConditionalGeneration", lfm2_vl),
        "lighton_ocr": ("LightOnOcrForConditionalGeneration", lighton_ocr),
        "glm4v": ("Glm4vForConditionalGeneration", glm4v),
        "glm4v_moe": ("Glm4vMoeForConditionalGeneration", glm4v_moe),
        "video_llama_3": ("VideoLlama3ForConditionalGeneration", video_llama_3),
    }
