"""Random odd variants of models put together of two families, and of halves that stand alone (check_family_variants.py)."""

READERS = ["bert", "roberta", "electra", "bert-generation", "distilbert", "big_bird", "rembert", "xlm-roberta", "bart"]
SEEING = ["vit", "deit", "beit", "swin", "swinv2", "donut-swin", "dinov2", "vit_msn"]
HEARING = ["wav2vec2", "hubert", "wavlm", "unispeech-sat", "data2vec-audio", "wav2vec2-bert"]
WRITERS = ["bert", "roberta", "bert-generation", "xlm-roberta", "electra", "megatron-bert", "xlm-roberta-xl", "data2vec-text", "gpt2",
           "camembert", "trocr", "bart", "mbart", "blenderbot", "blenderbot-small", "marian", "pegasus", "plbart", "mvp",
           "bigbird_pegasus", "prophetnet", "ernie", "roformer", "rembert", "big_bird", "roberta-prelayernorm"]


def make_composed(draw, flags, families):
    """The functions of the families, over the caller's `draw`; `families` are those drawn so far."""

    def chance(probability=0.5):
        return draw.random() < probability

    def bert_generation():
        heads = draw.choice([1, 2, 3, 4])
        config = {"vocab_size": draw.randint(50, 300), "hidden_size": heads * 2 * draw.randint(2, 6), "num_attention_heads": heads}
        config.update(num_hidden_layers=draw.randint(1, 5), intermediate_size=draw.randint(5, 90))
        config["max_position_embeddings"] = draw.randint(9, 60)
        if chance():
            config.update(is_decoder=True, add_cross_attention=chance())
            return {**config, "architectures": ["BertGenerationDecoder"]}
        return {**config, "architectures": ["BertGenerationEncoder"]}

    def gpt2():
        heads = draw.choice([1, 2, 3, 4])
        config = {"n_embd": heads * 4 * draw.randint(1, 5), "n_head": heads, "n_layer": draw.randint(1, 4)}
        config.update(vocab_size=draw.randint(50, 300), n_positions=draw.randint(9, 60))
        return {**config, "n_inner": draw.randint(5, 60)} if chance() else config

    def trocr():
        heads = draw.choice([1, 2, 4])
        config = {"vocab_size": draw.randint(50, 300), "d_model": heads * 4 * draw.randint(1, 4)}
        config.update(decoder_layers=draw.randint(1, 4), decoder_attention_heads=heads, decoder_ffn_dim=draw.randint(5, 60))
        config.update(max_position_embeddings=draw.randint(9, 60), tie_word_embeddings=chance())
        return flags(config, "use_learned_position_embeddings", "layernorm_embedding")

    own = {"bert-generation": bert_generation, "gpt2": gpt2, "trocr": trocr}

    def half(kind):
        config = own[kind]() if kind in own else families[kind][1]()
        for key in ("architectures", "id2label"):
            config.pop(key, None)
        return {**config, "model_type": kind}

    def composed(readers):
        def of():
            reads, writes = half(draw.choice(readers)), half(draw.choice(WRITERS))
            writes.update(is_decoder=True, add_cross_attention=True)
            width = reads.get("hidden_size", reads.get("d_model"))
            if writes["model_type"] == "trocr" and width and chance():
                writes["cross_attention_hidden_size"] = width
            return {"encoder": reads, "decoder": writes, "is_encoder_decoder": True}

        return of

    def with_type(kind, make):
        return lambda: {**make(), "model_type": kind}

    return {
        "bert-generation": ("BertGenerationEncoder", bert_generation),
        "trocr": ("TrOCRForCausalLM", trocr),
        "encoder-decoder": ("EncoderDecoderModel", composed(READERS)),
        "seen-and-told": ("VisionEncoderDecoderModel", with_type("vision-encoder-decoder", composed(SEEING))),
        "speech-encoder-decoder": ("SpeechEncoderDecoderModel", composed(HEARING)),
    }
