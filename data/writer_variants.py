"""Random odd variants of models that write of what they hear, see or play, beside those of hearing_variants.py and
image_variants.py (check_family_variants.py)."""

import math


def make_writers(draw, flags):
    """The functions of the families, over the caller's `draw`."""

    def chance(probability=0.5):
        return draw.random() < probability

    def width(config, heads="num_attention_heads", hidden="hidden_size", step=4):
        config[heads] = draw.choice([1, 2, 3, 4])
        config[hidden] = config[heads] * step * draw.randint(1, 4)
        return config

    def speech_to_text():
        layers = draw.randint(1, 3)
        config = width({"vocab_size": draw.randint(50, 300), "num_conv_layers": layers}, "encoder_attention_heads", "d_model")
        config["decoder_attention_heads"] = draw.choice([1, 2, 4])
        for side in ("encoder", "decoder"):
            config.update({side + "_layers": draw.randint(1, 4), side + "_ffn_dim": draw.randint(5, 60)})
        config["conv_kernel_sizes"] = [draw.choice([3, 5, 7]) for _ in range(layers)]
        config.update(conv_channels=2 * draw.randint(2, 20), input_feat_per_channel=draw.randint(5, 40), input_channels=draw.randint(1, 3))
        config.update(max_source_positions=draw.randint(9, 60), max_target_positions=draw.randint(9, 60))
        config.update(decoder_start_token_id=2, tie_word_embeddings=chance())
        if config["d_model"] % config["decoder_attention_heads"]:
            config["decoder_attention_heads"] = 1
        return config

    def t5():
        config = {"vocab_size": draw.randint(50, 300), "d_model": draw.randint(4, 40), "d_kv": draw.randint(3, 9)}
        config.update(d_ff=draw.randint(5, 60), num_layers=draw.randint(1, 5), num_heads=draw.randint(1, 4))
        config.update(relative_attention_num_buckets=2 * draw.randint(2, 20), pad_token_id=0)
        if chance():
            config["num_decoder_layers"] = draw.randint(1, 5)
        if chance():
            config["feed_forward_proj"] = draw.choice(["relu", "gated-gelu"])
        return config

    def pop2piano():
        return {**t5(), "composer_vocab_size": draw.randint(2, 30)}

    def udop():
        config = {**t5(), "max_2d_position_embeddings": draw.randint(9, 60), "num_channels": draw.randint(1, 4)}
        config.update(patch_size=draw.randint(2, 5), image_size=draw.randint(5, 30))
        if chance():
            config["relative_bias_args"] = [{"type": "1d"}, {"type": "horizontal"}, {"type": "vertical"}][: draw.randint(1, 3)]
        return {**config, "architectures": ["Udop" + draw.choice(["ForConditionalGeneration", "Model", "EncoderModel"])]}

    def idefics():
        config = width({"vocab_size": draw.randint(50, 300), "intermediate_size": draw.randint(5, 90)})
        config.update(num_hidden_layers=draw.randint(2, 7), cross_layer_interval=draw.randint(1, 3), pad_token_id=0)
        config.update(alpha_type=draw.choice(["float", "vector"]), tie_word_embeddings=chance())
        if chance():
            config["additional_vocab_size"] = draw.randint(0, 5)
        seen = width({"intermediate_size": draw.randint(5, 60), "num_hidden_layers": draw.randint(1, 4)}, hidden="embed_dim")
        seen.update(patch_size=draw.randint(2, 5), num_channels=3, image_size=draw.randint(10, 30))
        asks = flags({"resampler_depth": draw.randint(1, 4), "resampler_n_heads": draw.randint(1, 4)}, "qk_layer_norms_perceiver")
        asks.update(resampler_head_dim=draw.randint(2, 9), resampler_n_latents=draw.randint(2, 9))
        return {**flags(config, "qk_layer_norms", "use_resampler"), "vision_config": seen, "perceiver_config": asks}

    def gemma(vocabulary=None):
        heads = draw.choice([1, 2, 3, 4])
        config = {"model_type": "gemma", "hidden_size": 2 * draw.randint(3, 20), "num_attention_heads": heads, "head_dim": 2 * draw.randint(2, 6)}
        config.update(num_key_value_heads=draw.choice([n for n in (1, heads) if heads % n == 0]), num_hidden_layers=draw.randint(1, 4))
        config.update(intermediate_size=draw.randint(5, 90), vocab_size=vocabulary or draw.randint(50, 300), pad_token_id=0)
        return flags(config, "attention_bias")

    def pi0():
        seen = width({"model_type": "siglip_vision_model", "num_hidden_layers": draw.randint(1, 3), "vision_use_head": False})
        seen.update(intermediate_size=draw.randint(5, 60), patch_size=draw.randint(2, 5), image_size=draw.randint(10, 30))
        text = gemma()
        looks = {"model_type": "paligemma", "text_config": text, "vision_config": seen, "projection_dim": text["hidden_size"]}
        acts = {**gemma(), "num_hidden_layers": text["num_hidden_layers"]}
        config = {"vlm_config": looks, "dit_config": acts}
        return {**config, "max_state_dim": draw.randint(3, 20), "max_action_dim": draw.randint(3, 20)}

    def blt():
        def side(**more):
            config = width({"num_hidden_layers": draw.randint(1, 4), **more})
            if config["num_attention_heads"] == 4 and chance():
                config["num_key_value_heads"] = 2
            if chance(0.7):
                config["intermediate_size"] = draw.randint(5, 60)
            return config

        words, crossing, wide = draw.randint(50, 300), draw.randint(1, 3), side()
        reads = flags(side(vocab_size=words, cross_attn_k=crossing), "cross_attn_all_layers")
        writes = flags(side(cross_attn_k=crossing, hidden_size_global=wide["hidden_size"]), "cross_attn_all_layers")
        config = {"vocab_size": words, "cross_attn_k": crossing, "encoder_config": reads, "decoder_config": writes, "global_config": wide}
        if chance():
            config["encoder_hash_byte_group_size"] = [3, 4, 5][: draw.randint(1, 3)]
        config.update(encoder_hash_byte_group_vocab=draw.randint(5, 60), encoder_hash_byte_group_nb_functions=draw.randint(1, 3))
        return {**flags(config, "patch_in_forward"), "patcher_config": side(vocab_size=draw.randint(50, 300))}

    def moshi():
        config = width({"vocab_size": draw.randint(50, 300), "num_hidden_layers": draw.randint(1, 4), "ffn_dim": 2 * draw.randint(5, 40)})
        return {**config, "tie_word_embeddings": False, "pad_token_id": 1}

    def reformer():
        kinds = [["lsh"], ["local"], ["local", "lsh"]][draw.randint(0, 2)]
        config = {"attn_layers": kinds + [draw.choice(kinds) for _ in range(draw.randint(0, 4))], "is_decoder": True}
        parts = draw.randint(3, 9), draw.randint(3, 9)
        config.update(hidden_size=sum(parts), axial_pos_embds_dim=list(parts), axial_pos_shape=[draw.randint(2, 9), draw.randint(2, 9)])
        config.update(num_attention_heads=draw.randint(1, 4), attention_head_size=draw.randint(3, 9), feed_forward_size=draw.randint(5, 60))
        config.update(vocab_size=draw.randint(50, 300), max_position_embeddings=draw.randint(9, 60))
        config["architectures"] = [draw.choice(["ReformerModelWithLMHead", "ReformerModel"])]
        return flags(config, "axial_pos_embds")

    def codec():
        config = {"model_type": "encodec", "num_filters": 2 * draw.randint(1, 5), "hidden_size": draw.randint(5, 40)}
        config.update(upsampling_ratios=[draw.randint(2, 5) for _ in range(draw.randint(1, 4))], audio_channels=draw.randint(1, 2))
        config.update(kernel_size=draw.choice([3, 5, 7]), last_kernel_size=draw.choice([3, 5, 7]), num_residual_layers=draw.randint(0, 3))
        config.update(codebook_size=draw.choice([8, 16, 64]), num_lstm_layers=draw.randint(1, 3), residual_kernel_size=draw.choice([3, 5]))
        hop, books = math.prod(config["upsampling_ratios"]), draw.randint(1, 40)
        bits = math.ceil(24000 / hop) * math.log2(config["codebook_size"])
        config.update(target_bandwidths=[0.1, (books + 0.5) * bits / 1000], norm_type=draw.choice(["weight_norm", "time_group_norm"]))
        return flags(config, "use_conv_shortcut")

    def music_decoder():
        config = width({"vocab_size": draw.randint(50, 300), "num_hidden_layers": draw.randint(1, 4), "ffn_dim": draw.randint(5, 60)})
        config.update(num_codebooks=draw.randint(1, 5), max_position_embeddings=draw.randint(9, 60))
        return {**config, "pad_token_id": None, "bos_token_id": None}

    def musicgen(kind):
        def of():
            decoder = {**music_decoder(), "model_type": kind + "_decoder"}
            words = {**t5(), "model_type": "t5"}
            if chance():
                words["d_model"] = decoder["hidden_size"]
            config = {"text_encoder": words, "audio_encoder": codec(), "decoder": decoder}
            return {**config, "num_chroma": draw.randint(4, 20)} if kind.endswith("melody") else config

        return of

    def bark():
        def part():
            config = width({"input_vocab_size": draw.randint(50, 300), "num_layers": draw.randint(1, 4)}, "num_heads")
            return flags({**config, "output_vocab_size": draw.randint(50, 300), "block_size": draw.randint(9, 60)}, "bias")

        fine = {**part(), "n_codes_total": draw.randint(3, 9), "tie_word_embeddings": chance()}
        if fine["tie_word_embeddings"]:
            fine["output_vocab_size"] = fine["input_vocab_size"]
        return {"semantic_config": part(), "coarse_acoustics_config": part(), "fine_acoustics_config": fine, "codec_config": codec()}

    def pp_formulanet():
        heads, patch = draw.choice([1, 2, 4]), draw.randint(2, 4)
        text = {"vocab_size": draw.randint(50, 300), "d_model": heads * 4 * draw.randint(1, 4), "decoder_attention_heads": heads}
        text.update(decoder_layers=draw.randint(1, 4), decoder_ffn_dim=draw.randint(5, 60), max_position_embeddings=draw.randint(9, 60))
        seen = width({"num_hidden_layers": draw.randint(1, 4), "mlp_dim": draw.randint(5, 60), "patch_size": patch})
        seen.update(image_size=patch * draw.randint(2, 6), window_size=draw.randint(1, 4), global_attn_indexes=[0, 2])
        seen.update(output_channels=draw.randint(3, 20), decoder_hidden_size=text["d_model"], num_channels=draw.randint(1, 4))
        seen["post_conv_in_channels"] = seen["output_channels"]
        seen.update(post_conv_mid_channels=draw.randint(3, 20), post_conv_out_channels=draw.randint(3, 20))
        return {"text_config": text, "vision_config": flags(seen, "qkv_bias", "use_abs_pos", "use_rel_pos")}

    def evolla():
        config = width({"vocab_size": draw.randint(50, 300), "intermediate_size": draw.randint(5, 90), "num_hidden_layers": draw.randint(1, 7)})
        config["num_key_value_heads"] = draw.choice([n for n in (1, 2, 3, 4) if config["num_attention_heads"] % n == 0])
        config.update(aligner_num_add_layers=draw.randint(1, 8), aligner_ffn_mult=draw.randint(1, 4), pad_token_id=0)
        config.update(resampler_depth=draw.randint(1, 3), resampler_dim_head=draw.randint(3, 9), resampler_heads=draw.randint(1, 4))
        config.update(resampler_num_latents=draw.randint(2, 9), resampler_ff_mult=draw.randint(1, 4), bos_token_id=1, eos_token_id=2)
        protein = width({"num_hidden_layers": draw.randint(1, 4), "intermediate_size": draw.randint(5, 60), "vocab_size": draw.randint(50, 300)})
        return {**flags(config, "attention_bias", "mlp_bias", "aligner_enable_bias", "tie_word_embeddings"), "protein_encoder_config": protein}

    return {
        "moshi_words": ("MoshiForCausalLM", lambda: {**moshi(), "model_type": "moshi"}),
        "reformer": ("ReformerModelWithLMHead", reformer),
        "encodec": ("EncodecModel", codec),
        "musicgen_decoder": ("MusicgenForCausalLM", music_decoder),
        "musicgen": ("MusicgenForConditionalGeneration", musicgen("musicgen")),
        "musicgen_melody_decoder": ("MusicgenMelodyForCausalLM", music_decoder),
        "musicgen_melody": ("MusicgenMelodyForConditionalGeneration", musicgen("musicgen_melody")),
        "bark": ("BarkModel", bark),
        "pp_formulanet": ("PPFormulaNetForConditionalGeneration", pp_formulanet),
        "evolla": ("EvollaForProteinText2Text", evolla),
        "speech_to_text": ("Speech2TextForConditionalGeneration", speech_to_text),
        "pop2piano": ("Pop2PianoForConditionalGeneration", pop2piano),
        "udop": ("UdopForConditionalGeneration", udop),
        "idefics": ("IdeficsForVisionText2Text", idefics),
        "pi0": ("PI0ForConditionalGeneration", pi0),
        "blt": ("BltForCausalLM", blt),
    }
