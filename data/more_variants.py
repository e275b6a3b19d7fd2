"""Random odd variants of families described since: pairs of Gemmas, Kosmos, Granites that see (check_family_variants.py)."""


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

    return {
        "t5gemma": ("T5GemmaForConditionalGeneration", t5gemma),
        "t5gemma2": ("T5Gemma2ForConditionalGeneration", t5gemma2),
        "kosmos-2": ("Kosmos2ForConditionalGeneration", kosmos_2),
        "kosmos-2.5": ("Kosmos2_5ForConditionalGeneration", kosmos_2_5),
        "granite_docling": ("GraniteDoclingForConditionalGeneration", granite_docling),
        "granite4_vision": ("Granite4VisionForConditionalGeneration", granite4_vision),
    }
