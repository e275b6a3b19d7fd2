"""Random odd variants of models that hear, of readers of documents by SAM, of those that read and write, and of those that speak
(check_family_variants.py)."""


def make_hearing(draw, decoder, flags):
    """The functions of the families, over the caller's `draw`."""

    def chance(probability=0.5):
        return draw.random() < probability

    def text(kind, **more):
        config = {**decoder(head_dim=kind in ("qwen3", "mistral")), "model_type": kind, **more}
        config.pop("tie_word_embeddings")
        return config

    def llama():
        return text(draw.choice(["llama", "qwen2", "qwen3", "mistral"]))

    def whisper_side(kind, short):
        """Under either of the two names that each size has."""
        heads = draw.choice([1, 2, 4])
        sizes = {"d_model": 8 * heads * draw.randint(1, 2), "encoder_layers": draw.randint(1, 3)}
        sizes.update(encoder_attention_heads=heads, encoder_ffn_dim=draw.randint(5, 40))
        if not short:
            names = {"d_model": "hidden_size", "encoder_layers": "num_hidden_layers"}
            names.update(encoder_attention_heads="num_attention_heads", encoder_ffn_dim="intermediate_size")
            sizes = {names[key]: value for key, value in sizes.items()}
        sizes.update(num_mel_bins=draw.randint(3, 40), max_source_positions=draw.randint(5, 60))
        return {"model_type": kind, **sizes}

    def hearing(audio, language, **document):
        config = {"text_config": language, "audio_config": audio, **document}
        return {**config, "tie_word_embeddings": chance()} if chance(0.7) else config

    def qwen2_audio():
        return hearing(whisper_side("qwen2_audio_encoder", True), llama())

    def voxtral():
        return hearing(whisper_side("voxtral_encoder", False), text("llama", head_dim=draw.choice([4, 6])))

    def audioflamingo3():
        return flags(hearing(whisper_side("audioflamingo3_encoder", False), text("qwen2")), "projector_bias")

    def moss_transcribe_diarize():
        config = hearing(whisper_side("moss_transcribe_diarize_audio", False), text("qwen3"))
        return flags({**config, "audio_merge_size": draw.randint(1, 4)}, "projector_bias")

    def qwen3_asr():
        audio = whisper_side("qwen3_asr_encoder", True)
        audio.pop("max_source_positions")
        audio.update(downsample_hidden_size=draw.randint(3, 9), output_dim=draw.randint(4, 40))
        return hearing(audio, text("qwen3"))

    def rotated(kind):
        heads = draw.choice([2, 4])
        audio = {"model_type": kind, "num_attention_heads": heads, "hidden_size": 4 * heads * draw.randint(1, 3)}
        audio.update(num_hidden_layers=draw.randint(1, 3), intermediate_size=draw.randint(5, 40))
        return {**audio, "num_mel_bins": draw.randint(3, 40)}

    def glmasr():
        audio = rotated("glmasr_encoder")
        if chance():
            audio["num_key_value_heads"] = 2
        return hearing(audio, text("llama"))

    def voxtral_realtime():
        audio = {**rotated("voxtral_realtime_encoder"), "head_dim": draw.choice([4, 6, 8])}
        language = {**decoder(), "model_type": "voxtral_realtime_text"}
        language.pop("tie_word_embeddings")
        return {**hearing(audio, language), "downsample_factor": draw.randint(1, 5)}

    def fun_asr_nano():
        language = text("qwen3")
        language["hidden_size"] = 8 * draw.randint(1, 6)
        hidden = language["hidden_size"]
        audio = {"model_type": "fun_asr_nano_encoder", "hidden_size": 8 * draw.randint(1, 4), "num_attention_heads": 2}
        audio.update(num_mel_bins=2 * draw.randint(2, 5), num_stacked_frames=draw.randint(1, 5))
        audio.update(num_hidden_layers=draw.randint(2, 6), num_timestamp_prediction_layers=draw.randint(0, 1))
        audio.update(intermediate_size=draw.randint(5, 40), fsmn_kernel_size=draw.randint(2, 9))
        adaptor = {"hidden_size": hidden, "intermediate_size": hidden // 4, "num_attention_heads": 2}
        adaptor.update(num_hidden_layers=draw.randint(1, 3), projector_hidden_size=draw.randint(5, 40))
        return hearing(audio, language, adaptor_config=adaptor)

    def omniasr():
        groups, convolutions = draw.choice([1, 2, 4]), draw.randint(1, 4)
        audio = {"model_type": "omniasr_audio", "hidden_size": 8 * groups, "num_attention_heads": 2}
        audio.update(conv_dim=[draw.randint(3, 9) for _ in range(convolutions)])
        audio.update(conv_kernel=[draw.randint(2, 6) for _ in range(convolutions)], conv_stride=[2] * convolutions)
        audio.update(num_conv_pos_embeddings=draw.randint(3, 20), num_conv_pos_embedding_groups=groups)
        audio.update(num_hidden_layers=draw.randint(1, 3), intermediate_size=draw.randint(5, 40))
        return hearing(flags(audio, "conv_bias"), text("llama"))

    def granite_speech(kind="granite_speech"):
        heads = draw.choice([1, 2, 4])
        audio = {"model_type": kind + "_encoder", "hidden_dim": 8 * heads, "num_heads": heads, "context_size": 4}
        audio.update(input_dim=draw.randint(3, 40), num_layers=draw.randint(1, 4), feedforward_mult=draw.randint(1, 4))
        audio.update(output_dim=draw.randint(3, 20), max_pos_emb=draw.randint(5, 20))
        audio.update(conv_kernel_size=2 * draw.randint(1, 4) + 1, conv_expansion_factor=draw.randint(1, 3))
        if chance():
            audio["dim_head"] = draw.randint(3, 9)
        width, heads = audio["hidden_dim"], draw.randint(1, 3)
        former = {"model_type": "blip_2_qformer", "hidden_size": 6 * heads, "num_attention_heads": heads}
        former.update(num_hidden_layers=draw.randint(1, 4), intermediate_size=draw.randint(5, 40))
        former.update(cross_attention_frequency=draw.randint(1, 3), encoder_hidden_size=width)
        rate = draw.randint(1, 4)
        config = {"text_config": text("granite"), "encoder_config": audio, "projector_config": former}
        config.update(downsample_rate=rate, window_size=rate * draw.randint(1, 4))
        return {**config, "tie_word_embeddings": chance()} if chance() else config

    def vibevoice_asr():
        def encoder():
            stages = draw.randint(1, 3)
            config = {"model_type": "vibevoice_acoustic_tokenizer_encoder", "hidden_size": draw.randint(3, 20)}
            config.update(num_filters=draw.randint(2, 6), kernel_size=draw.randint(4, 9), channels=draw.randint(1, 2))
            config.update(downsampling_ratios=[draw.randint(1, 4) for _ in range(stages)])
            config.update(depths=[draw.randint(1, 3) for _ in range(stages + 1)], ffn_expansion=draw.randint(1, 4))
            return config

        acoustic = encoder()
        hop = 1
        for ratio in acoustic["downsampling_ratios"]:
            hop *= ratio
        config = {"text_config": text("qwen2"), "acoustic_tokenizer_encoder_config": acoustic}
        config.update(semantic_tokenizer_encoder_config=encoder(), acoustic_tokenizer_chunk_size=hop * 10)
        return {**config, "tie_word_embeddings": chance()}

    def vibevoice():
        def samples(kind):
            stages = draw.randint(1, 3)
            config = {"model_type": kind, "hidden_size": draw.randint(3, 20), "ffn_expansion": draw.randint(1, 4)}
            config.update(num_filters=draw.randint(2, 6), kernel_size=draw.randint(4, 9), channels=draw.randint(1, 2))
            config.update(downsampling_ratios=[draw.randint(1, 4) for _ in range(stages)])
            return {**config, "depths": [draw.randint(1, 3) for _ in range(stages + 1)]}

        heard, words = samples("vibevoice_acoustic_tokenizer"), text("qwen2")
        head = {"num_hidden_layers": draw.randint(1, 4), "intermediate_size": draw.randint(5, 60), "mlp_bias": chance()}
        head.update(hidden_size=words["hidden_size"], latent_size=heard["hidden_size"], frequency_embedding_size=2 * draw.randint(2, 30))
        config = {"text_config": words, "audio_config": heard, "diffusion_head_config": head}
        return {**config, "semantic_model_config": samples("vibevoice_acoustic_tokenizer_encoder")}

    def whisper():
        config = whisper_side("whisper", True)
        config.pop("model_type")
        heads = draw.choice([1, 2, 4])
        config.update(decoder_layers=draw.randint(1, 4), decoder_attention_heads=heads, decoder_ffn_dim=draw.randint(5, 40))
        config.update(vocab_size=draw.randint(50, 300), max_target_positions=draw.randint(5, 60), pad_token_id=0)
        config["architectures"] = ["WhisperFor" + draw.choice(["ConditionalGeneration", "CausalLM"])]
        return {**config, "bos_token_id": 1, "eos_token_id": 1, "decoder_start_token_id": 1}

    def sam(kind):
        heads, size = draw.randint(1, 3), draw.randint(2, 5)
        config = {"model_type": kind, "hidden_size": 4 * heads, "num_attention_heads": heads, "patch_size": size}
        config.update(num_hidden_layers=draw.randint(1, 4), output_channels=draw.randint(3, 20), window_size=draw.randint(2, 9))
        config.update(image_size=size * draw.randint(2, 5), mlp_dim=16 * heads, global_attn_indexes=draw.choice([[0], [1, 3]]))
        return {**config, "downsample_channels": [draw.randint(3, 20), 2 * draw.randint(2, 9)]}

    def ocr_text(kind, **more):
        number = draw.randint(2, 5)
        language = {**decoder(head_dim=False), "model_type": kind, "n_routed_experts": number, **more}
        language.update(num_experts_per_tok=draw.randint(1, number), moe_intermediate_size=draw.randint(3, 30))
        language.update(n_shared_experts=draw.randint(1, 3), n_group=1, topk_group=1)
        layers = language["num_hidden_layers"]
        language["mlp_layer_types"] = [draw.choice(["dense", "sparse"]) for _ in range(layers)]
        language.pop("tie_word_embeddings")
        return flags(language, "mlp_bias") if chance(0.2) else language

    def deepseek_ocr2():
        eyes = sam("deepseek_ocr2_sam_vision_model")
        heads, kv = draw.choice([(1, 1), (2, 1), (2, 2)])
        hidden = heads * 2 * draw.randint(2, 6)
        eyes["downsample_channels"][1] = hidden
        order = {"hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv}
        order.update(num_hidden_layers=draw.randint(1, 3), intermediate_size=draw.randint(5, 40), vocab_size=9)
        vision = {"sam_config": eyes, "encoder_config": {**order, "model_type": "deepseek_ocr2_encoder"}}
        language = ocr_text("deepseek_ocr2_text")
        return {"text_config": language, "vision_config": {**vision, "model_type": "deepseek_ocr2_vision"}}

    def unlimited_ocr():
        eyes, heads, size = sam("unlimited_ocr_sam_vision_model"), draw.randint(1, 3), draw.randint(2, 5)
        clip = {"hidden_size": 4 * heads, "intermediate_size": 16 * heads, "num_attention_heads": heads}
        clip.update(num_hidden_layers=draw.randint(1, 3), patch_size=size, image_size=size * draw.randint(2, 5))
        eyes["downsample_channels"][1] = clip["hidden_size"]  # it stands in for CLIP's own patches
        vision = {"sam_config": eyes, "encoder_config": {**clip, "model_type": "unlimited_ocr_vision_encoder"}}
        language = ocr_text("unlimited_ocr_text")
        return {"text_config": language, "vision_config": {**vision, "model_type": "unlimited_ocr_vision"}}

    def bart():
        config = {"vocab_size": draw.randint(50, 300), "d_model": 8 * draw.randint(1, 4), "pad_token_id": 1}
        for side in ("encoder", "decoder"):
            config.update({side + "_layers": draw.randint(1, 4), side + "_ffn_dim": draw.randint(5, 60)})
            config[side + "_attention_heads"] = draw.choice([1, 2, 4])
        return {**config, "max_position_embeddings": draw.randint(5, 60), "forced_eos_token_id": 2}

    def florence2():
        language = {**bart(), "model_type": "bart"}
        stages = draw.randint(1, 3)
        vision = {"embed_dim": [4 * draw.randint(1, 5) for _ in range(stages)], "depths": [draw.randint(1, 2) for _ in range(stages)]}
        vision.update(patch_size=[draw.randint(2, 5) for _ in range(stages)], patch_stride=[2] * stages)
        vision.update(patch_padding=[1] * stages, patch_prenorm=[chance() for _ in range(stages)])
        vision.update(num_heads=[2] * stages, num_groups=[2] * stages, in_channels=draw.randint(1, 3))
        vision.update(projection_dim=language["d_model"], max_temporal_embeddings=draw.randint(3, 9))
        vision.update(max_position_embeddings=draw.randint(5, 20), mlp_ratio=draw.choice([2.0, 3.5, 4.0]))
        return {"text_config": language, "vision_config": flags(vision, "qkv_bias")}

    def parakeet(**more):
        heads, factor = draw.choice([1, 2, 3]), draw.choice([2, 4, 8])
        sound = {
            "num_attention_heads": heads,
            "hidden_size": 2 * heads * draw.randint(2, 6),
            "num_hidden_layers": draw.randint(1, 3),
            "intermediate_size": draw.randint(5, 40),
            "conv_kernel_size": 2 * draw.randint(1, 4) + 1,
            "subsampling_factor": factor,
            "subsampling_conv_channels": draw.randint(2, 9),
            "num_mel_bins": factor * draw.randint(2, 9),
        }
        return {"encoder_config": flags(sound, "attention_bias", "convolution_bias"), "vocab_size": draw.randint(50, 300), **more}

    def transducer(**more):
        config = parakeet(decoder_hidden_size=draw.randint(5, 30), num_decoder_layers=draw.randint(1, 3), **more)
        return {**config, "blank_token_id": config["vocab_size"] - 1}

    def tdt():
        return transducer(durations=list(range(draw.randint(1, 6)))) if chance(0.8) else transducer()

    # Models that speak, by codes of a codec.

    def mimi():
        heads = draw.choice([1, 2, 3])
        hidden = 2 * heads * draw.randint(2, 5)
        ratios = [draw.randint(2, 5) for _ in range(draw.randint(1, 4))]
        hop = 1
        for ratio in ratios:
            hop *= ratio
        config = {
            "hidden_size": hidden,
            "num_attention_heads": heads,
            "num_key_value_heads": draw.choice([n for n in (1, 2, 3) if heads % n == 0]),
            "num_hidden_layers": draw.randint(1, 3),
            "intermediate_size": draw.randint(5, 40),
            "num_filters": 4 * draw.randint(1, 3),
            "upsampling_ratios": ratios,
            "sampling_rate": hop * draw.randint(2, 9) * 2,
            "kernel_size": draw.randint(3, 8),
            "last_kernel_size": draw.randint(2, 5),
            "residual_kernel_size": draw.randint(2, 5),
            "num_residual_layers": draw.randint(0, 2),
            "compress": draw.choice([1, 2, 4]),
            "audio_channels": draw.randint(1, 2),
            "codebook_size": 2 ** draw.randint(2, 6),
            "codebook_dim": draw.randint(3, 20),
            "num_quantizers": draw.randint(3, 9),
            "num_semantic_quantizers": draw.randint(1, 2),
            "vector_quantization_hidden_dimension": draw.choice([hidden, hidden + 3]),
            "upsample_groups": draw.choice([1, 2, hidden]),
        }
        if chance():
            config["head_dim"] = draw.choice([4, 6])
        return flags(config, "use_conv_shortcut", "attention_bias")

    def codec():
        return {"model_type": "mimi", **mimi()}

    def small_decoder(**more):
        config = {**decoder(), **more}
        for key in ("vocab_size", "tie_word_embeddings", "pad_token_id"):
            config.pop(key)
        return config

    def csm():
        books, codes = draw.randint(2, 5), draw.randint(20, 60)
        config = flags(decoder(), "attention_bias", "mlp_bias")
        config.pop("tie_word_embeddings")
        config.update(vocab_size=codes, num_codebooks=books, text_vocab_size=draw.randint(50, 300))
        depth = flags(small_decoder(), "attention_bias", "mlp_bias")
        depth.update(vocab_size=codes, num_codebooks=books, backbone_hidden_size=config["hidden_size"])
        config.update(depth_decoder_config=depth, codec_config=codec())
        return flags(config, "tie_codebooks_embeddings")

    def kyutai(**more):
        config = decoder(intermediate=False)
        config["hidden_size"] = config["num_attention_heads"] * 2 * draw.randint(2, 5)
        return {**config, "ffn_dim": 2 * draw.randint(5, 40), **more}

    def kyutai_stt():
        config = kyutai(num_codebooks=draw.randint(1, 5), codebook_vocab_size=draw.randint(9, 40), codec_config=codec())
        return {**config, "audio_pad_token_id": 1}

    def moshi():
        audio = codec()
        depth = {key: value for key, value in kyutai().items() if key not in ("vocab_size", "tie_word_embeddings")}
        config = kyutai(num_codebooks=draw.randint(2, 3), audio_encoder_config=audio, depth_decoder_config=depth)
        config["tie_word_embeddings"] = False
        return {**config, "audio_vocab_size": draw.randint(9, 60)} if chance() else config

    def dia():
        encoder = {**small_decoder(), "vocab_size": draw.randint(50, 300), "head_dim": draw.choice([4, 6])}
        writes = {**small_decoder(), "vocab_size": draw.randint(50, 300), "head_dim": draw.choice([4, 6])}
        writes.update(num_channels=draw.randint(1, 5), cross_num_attention_heads=4, cross_head_dim=draw.choice([4, 8]))
        writes.update(cross_num_key_value_heads=draw.choice([1, 2, 4]), cross_hidden_size=encoder["hidden_size"])
        return {"encoder_config": encoder, "decoder_config": writes, "delay_pattern": [0] * writes["num_channels"]}

    def higgs():
        config = decoder(head_dim=False)
        config["head_dim"] = draw.choice([None, 4, 6])
        config.update(num_codebooks=draw.randint(1, 5), codebook_size=draw.randint(9, 60), tie_word_embeddings=False)
        return flags(config, "attention_bias", "mlp_bias")

    return {
        "florence2": ("Florence2ForConditionalGeneration", florence2),
        "qwen2_audio": ("Qwen2AudioForConditionalGeneration", qwen2_audio),
        "voxtral": ("VoxtralForConditionalGeneration", voxtral),
        "voxtral_realtime": ("VoxtralRealtimeForConditionalGeneration", voxtral_realtime),
        "audioflamingo3": ("AudioFlamingo3ForConditionalGeneration", audioflamingo3),
        "glmasr": ("GlmAsrForConditionalGeneration", glmasr),
        "qwen3_asr": ("Qwen3ASRForConditionalGeneration", qwen3_asr),
        "fun_asr_nano": ("FunAsrNanoForConditionalGeneration", fun_asr_nano),
        "moss_transcribe_diarize": ("MossTranscribeDiarizeForConditionalGeneration", moss_transcribe_diarize),
        "omniasr": ("OmniASRForConditionalGeneration", omniasr),
        "granite_speech": ("GraniteSpeechForConditionalGeneration", granite_speech),
        "granite_speech_plus": ("GraniteSpeechPlusForConditionalGeneration", lambda: granite_speech("granite_speech_plus")),
        "vibevoice_asr": ("VibeVoiceAsrForConditionalGeneration", vibevoice_asr),
        "vibevoice": ("VibeVoiceForConditionalGeneration", vibevoice),
        "whisper": ("WhisperForConditionalGeneration", whisper),
        "deepseek_ocr2": ("DeepseekOcr2ForConditionalGeneration", deepseek_ocr2),
        "unlimited_ocr": ("UnlimitedOcrForConditionalGeneration", unlimited_ocr),
        "parakeet_ctc": ("ParakeetForCTC", lambda: parakeet(pad_token_id=1)),
        "parakeet_rnnt": ("ParakeetForRNNT", transducer),
        "parakeet_tdt": ("ParakeetForTDT", tdt),
        "mimi": ("MimiModel", mimi),
        "csm": ("CsmForConditionalGeneration", csm),
        "kyutai_speech_to_text": ("KyutaiSpeechToTextForConditionalGeneration", kyutai_stt),
        "moshi": ("MoshiForConditionalGeneration", moshi),
        "dia": ("DiaForConditionalGeneration", dia),
        "higgs_audio_v2": ("HiggsAudioV2ForConditionalGeneration", higgs),
    }
