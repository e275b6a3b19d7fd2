"""Random odd variants of encoders by themselves: of text, of images and words, of sound, with each head that transformers has
for them (check_family_variants.py)."""

HEADS = {
    "Model": "Model",
    "m": "ForMaskedLM",
    "s": "ForSequenceClassification",
    "t": "ForTokenClassification",
    "q": "ForQuestionAnswering",
    "c": "ForMultipleChoice",
    "n": "ForNextSentencePrediction",
    "p": "ForPreTraining",
    "l": "ForCausalLM",
}


def make_encoders(draw, flags):
    """The functions of the families, over the caller's `draw`."""

    def chance(probability=0.5):
        return draw.random() < probability

    def labels():
        return {"id2label": {str(number): f"label {number}" for number in range(draw.randint(1, 9))}}

    def sizes(hidden="hidden_size", wide="intermediate_size", layers="num_hidden_layers", heads="num_attention_heads"):
        count = draw.choice([1, 2, 3, 4, 6])
        config = {"vocab_size": draw.randint(50, 300), hidden: count * 2 * draw.randint(2, 6), heads: count}
        config.update({wide: draw.randint(5, 90), layers: draw.randint(1, 5)})
        if chance():
            config["max_position_embeddings"] = draw.randint(9, 60)
        return config

    def encoder(stem, heads, *options, keys=(), types=True, more=dict):
        """A function that draws the class, too: heads are letters of HEADS, the encoder alone is always among them."""

        def make():
            config = {**sizes(*keys), "pad_token_id": 1}
            if types and chance():
                config["type_vocab_size"] = draw.randint(1, 3)
            if chance(0.7):
                config.update(labels())
            head = HEADS[draw.choice(["Model", *heads])]
            return flags({**config, **more(), "architectures": [stem + head]}, *options)

        return make

    def positive(**choices):
        return lambda: {key: draw.randint(*bounds) for key, bounds in choices.items() if chance(0.7)}

    def distilbert():
        config = encoder("DistilBert", "mstqc", keys=("dim", "hidden_dim", "n_layers", "n_heads"), types=False)()
        if config["architectures"][0].endswith("QuestionAnswering"):
            config.pop("id2label", None)  # the class takes two alone
        return config

    def tapas():
        config = encoder("Tapas", "msq", types=False, more=positive(num_aggregation_labels=(0, 4)))()
        return config | ({"type_vocab_sizes": [draw.randint(1, 9) for _ in range(7)]} if chance() else {})

    def funnel():
        config = {"vocab_size": draw.randint(50, 300), "d_model": 2 * draw.randint(2, 20), "n_head": draw.randint(1, 4), "d_head": draw.randint(2, 9)}
        config.update(d_inner=draw.randint(5, 60), block_sizes=[draw.randint(1, 3) for _ in range(draw.randint(1, 4))], pad_token_id=0)
        heads = ["Model", "BaseModel", *(HEADS[letter] for letter in "mstqcp")]
        config.update(num_decoder_layers=draw.randint(1, 3), tie_word_embeddings=chance(), architectures=["Funnel" + draw.choice(heads)])
        return config | (labels() if chance() else {})

    ways = positive(max_depth=(1, 5), xpath_unit_hidden_size=(1, 9), max_xpath_tag_unit_embeddings=(220, 240), max_xpath_subs_unit_embeddings=(1002, 1010))
    sounds = positive(pronunciation_embed_dim=(3, 9), pronunciation_vocab_size=(9, 40), shape_embed_dim=(3, 9), shape_vocab_size=(9, 40))

    def roformer():
        config = encoder("RoFormer", "mstqcl", more=positive(embedding_size=(5, 40)))()
        if config["architectures"][0].endswith("QuestionAnswering"):
            config.pop("id2label", None)
        return config

    def esm():
        return {"position_embedding_type": draw.choice(["absolute", "rotary"])}

    def deberta():
        config = {"relative_attention": chance(0.8), "type_vocab_size": draw.randint(0, 2)}
        if chance(0.8):
            kinds = [kind for kind in ("c2p", "p2c") if chance(0.7)]
            config["pos_att_type"] = kinds if chance() else "|".join(kinds)
        if chance():
            config["max_relative_positions"] = draw.choice([-1, draw.randint(5, 40)])
        return flags(config, "position_biased_input", "legacy")

    def deberta_v2():
        config = flags(deberta(), "share_att_key")
        if chance():
            config["position_buckets"] = draw.choice([-1, draw.randint(5, 40)])
        if chance():
            config["norm_rel_ebd"] = draw.choice(["none", "layer_norm"])
        if chance():
            config["conv_kernel_size"] = draw.choice([0, 3, 5])
        return config

    def albert():
        return {"embedding_size": draw.randint(5, 40), "num_hidden_groups": 1}

    def albert_groups():
        config = encoder("Albert", "mstqcp", more=albert)()
        return {**config, "num_hidden_groups": draw.randint(1, config["num_hidden_layers"])}

    # What compares images with words, and its halves.

    def half(**more):
        heads = draw.choice([1, 2, 3, 4])
        config = {"hidden_size": heads * 2 * draw.randint(2, 6), "num_attention_heads": heads}
        config.update(intermediate_size=draw.randint(5, 60), num_hidden_layers=draw.randint(1, 4))
        return {**config, **more}

    def words():
        return half(vocab_size=draw.randint(50, 300), max_position_embeddings=draw.randint(9, 60), eos_token_id=2)

    def images(flat=False):
        patch = draw.randint(2, 5)
        config = half(patch_size=patch, num_channels=draw.randint(1, 3))
        config.update({"num_patches": draw.randint(2, 6) ** 2} if flat else {"image_size": patch * draw.randint(2, 6)})
        return config

    def modernvbert_parts():
        text = encoder("ModernBert", "", "attention_bias", "mlp_bias", "norm_bias", "classifier_bias", "decoder_bias", types=False)()
        for key in ("architectures", "id2label", "tie_word_embeddings"):
            text.pop(key, None)
        vision = {**images(), "model_type": "siglip_vision_model"}
        vision["image_size"] = vision["patch_size"] * 2 * draw.randint(1, 3)
        config = {"text_config": {**text, "model_type": "modernbert"}, "vision_config": vision}
        return {**config, "pixel_shuffle_factor": draw.randint(1, 2)}

    def modernvbert():
        head = draw.choice(["Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"])
        config = flags({**modernvbert_parts(), "architectures": ["ModernVBert" + head]}, "tie_word_embeddings")
        return {**config, **labels()} if chance(0.7) else config

    def colmodernvbert():
        whole = {"model_type": "modernvbert", **modernvbert_parts()}
        return {"vlm_config": whole, "embedding_dim": draw.randint(5, 40)}

    def colbert():
        config = {**encoder("Bert", "")(), "architectures": ["HF_ColBERT"]}
        return {**config, "dim": draw.randint(5, 40)} if chance() else config

    def clip():
        return {"text_config": words(), "vision_config": images(), "projection_dim": draw.randint(5, 40)}

    def clip_images():
        return {**clip(), **labels(), "architectures": ["CLIPForImageClassification"]} if chance(0.3) else clip()

    def siglip(stem, flat):
        text = words()
        if chance():
            text["projection_size"] = draw.randint(5, 40)
        vision = images(flat) if flat or chance() else {**images(), "vision_use_head": chance()}
        config = {"text_config": text, "vision_config": vision}
        if chance(0.3):
            config["vision_config"].pop("vision_use_head", None)
            config.update(labels(), architectures=[stem + "ForImageClassification"])
        return config

    def clip_half(stem, make):
        def of():
            head = draw.choice(["Model", "ModelWithProjection"])
            return {**make(), "projection_dim": draw.randint(5, 40), "architectures": [stem + head]}

        return of

    # Images and sound alone.

    def classified(stem, heads, make):
        def of():
            config = {**make(), "architectures": [stem + draw.choice(["Model", *heads])]}
            return {**config, **labels()} if chance(0.7) else config

        return of

    def seen():
        patch = draw.randint(2, 5)
        config = half(patch_size=patch, image_size=patch * draw.randint(2, 6) + draw.randint(0, patch - 1))
        if chance(0.3):
            config["image_size"] = [patch * draw.randint(2, 6), patch * draw.randint(2, 6)]
        return flags({**config, "num_channels": draw.randint(1, 3)}, "qkv_bias")

    def vit():
        config = seen()
        return {**config, "pooler_output_size": draw.randint(5, 40)} if chance() else config

    def dinov2(registers=False):
        config = flags(seen(), "use_swiglu_ffn", *([] if registers else ["use_mask_token"]))
        config.pop("intermediate_size")
        config["mlp_ratio"] = draw.randint(1, 4)
        return {**config, "num_register_tokens": draw.randint(1, 6)} if registers and chance() else config

    def dinov3():
        config = flags(seen(), "query_bias", "key_bias", "value_bias", "proj_bias", "mlp_bias", "use_gated_mlp")
        config["hidden_size"] = 4 * config["num_attention_heads"] * draw.randint(1, 4)
        return {**config, "num_register_tokens": draw.randint(1, 6)}

    def spectrogram():
        config = flags(half(patch_size=draw.randint(2, 5)), "qkv_bias")
        config.update(frequency_stride=draw.randint(1, 5), time_stride=draw.randint(1, 5))
        return {**config, "max_length": draw.randint(9, 60), "num_mel_bins": draw.randint(5, 40)}

    def sound(stem, heads, *options, more=dict):
        def of():
            config, groups = half(vocab_size=draw.randint(20, 60)), draw.randint(1, 3)
            config["hidden_size"] *= groups
            config.update(num_conv_pos_embedding_groups=groups, num_conv_pos_embeddings=2 * draw.randint(2, 9))
            if chance():
                count = draw.randint(1, 5)
                for key in ("conv_dim", "conv_kernel", "conv_stride"):
                    config[key] = [draw.randint(1, 9) for _ in range(count)]
            config["feat_extract_norm"] = draw.choice(["group", "layer"])
            config.update({"classifier_proj_size": draw.randint(5, 40)} if chance() else {})
            config.update({"mask_time_prob": 0.0} if chance(0.2) else {})
            config.update(more())
            return flags(config, "conv_bias", "do_stable_layer_norm", "use_weighted_layer_sum", *options)

        return classified(stem, heads, of)

    def wav2vec2():
        groups = draw.randint(1, 3)
        config = {"num_codevector_groups": groups, "codevector_dim": groups * draw.randint(2, 9)}
        config.update(num_codevectors_per_group=draw.randint(2, 9), proj_codevector_dim=draw.randint(2, 20))
        return {**config, "adapter_attn_dim": draw.randint(2, 20)} if chance() else config

    def wav2vec2_conformer():
        config = {"position_embeddings_type": draw.choice(["relative", "rotary", None]), **wav2vec2()}
        config.pop("adapter_attn_dim", None)
        return {**config, "conv_depthwise_kernel_size": 2 * draw.randint(1, 6) + 1}

    # What reads a text and writes another.

    def reader(stem, *heads, more=dict):
        def of():
            config = {"vocab_size": draw.randint(50, 300), "d_model": 8 * draw.randint(1, 4), "pad_token_id": 1}
            for side in ("encoder", "decoder"):
                config.update({side + "_layers": draw.randint(1, 4), side + "_ffn_dim": draw.randint(5, 60)})
                config[side + "_attention_heads"] = draw.choice([1, 2, 4])
            config.update(max_position_embeddings=draw.randint(5, 60), forced_eos_token_id=2)
            head = draw.choice(["ForConditionalGeneration", "Model", *heads])
            if head != "ForQuestionAnswering" and chance():
                config.update(labels())
            return {**config, **more(), "architectures": [stem + head]}

        return of

    def t5(stem, *heads, more=dict):
        def of():
            config = {"vocab_size": draw.randint(50, 300), "d_model": draw.randint(4, 40), "d_kv": draw.randint(3, 9)}
            config.update(d_ff=draw.randint(5, 60), num_layers=draw.randint(1, 5), num_heads=draw.randint(1, 4))
            config.update(relative_attention_num_buckets=2 * draw.randint(2, 20), pad_token_id=0)
            config["num_decoder_layers"] = draw.randint(1, 5)
            head = draw.choice(["ForConditionalGeneration", "Model", "EncoderModel", *heads])
            if heads and chance():
                config.update(labels())
            return {**config, **more(), "architectures": [stem + head]}

        return of

    def gated():
        return {"feed_forward_proj": draw.choice(["relu", "gated-gelu", "gated-silu"])}

    def switch():
        sparse = {f"num_sparse_{side}_layers": 0 for side in ("encoder", "decoder")}
        config = t5("SwitchTransformers", more=lambda: {"num_experts": draw.randint(2, 5), "router_bias": chance(), **sparse})()
        for side, depth in (("encoder", "num_layers"), ("decoder", "num_decoder_layers")):
            config[f"num_sparse_{side}_layers"] = draw.randint(0, config[depth])
        return config

    def nllb_moe():
        return {"num_experts": draw.randint(2, 5), "encoder_sparse_step": draw.randint(0, 3), "decoder_sparse_step": draw.randint(0, 3),
                "router_bias": chance()}

    def led():
        return {"max_encoder_position_embeddings": draw.randint(9, 60), "max_decoder_position_embeddings": draw.randint(9, 60),
                "attention_window": 2}

    # What sees and writes.

    def w2v_bert():
        config = half(vocab_size=draw.randint(20, 60), feature_projection_input_dim=draw.randint(5, 40))
        config.update(conv_depthwise_kernel_size=draw.choice([3, 5, 7]), classifier_proj_size=draw.randint(5, 40))
        config.update(left_max_position_embeddings=draw.randint(2, 9), right_max_position_embeddings=draw.randint(2, 9))
        config["position_embeddings_type"] = draw.choice(["relative_key", "relative", "rotary", None])
        return flags(config, "use_weighted_layer_sum")

    def blip():
        text = half(vocab_size=draw.randint(50, 300), max_position_embeddings=draw.randint(9, 60), bos_token_id=1, sep_token_id=2)
        patch = draw.randint(2, 5)
        vision = half(patch_size=patch, image_size=patch * draw.randint(2, 6))
        text["encoder_hidden_size"] = vision["hidden_size"]
        architecture = draw.choice(["BlipForConditionalGeneration", "BlipForQuestionAnswering"])
        return {"text_config": text, "vision_config": vision, "architectures": [architecture]}

    def trocr():
        heads = draw.choice([1, 2, 4])
        decoder = {"model_type": "trocr", "vocab_size": draw.randint(50, 300), "d_model": heads * 4 * draw.randint(1, 4)}
        decoder.update(decoder_layers=draw.randint(1, 4), decoder_attention_heads=heads, decoder_ffn_dim=draw.randint(5, 60))
        decoder.update(max_position_embeddings=draw.randint(9, 60), tie_word_embeddings=True)
        decoder = flags(decoder, "use_learned_position_embeddings", "layernorm_embedding")
        encoder = {**vit(), "model_type": draw.choice(["vit", "deit"])}
        if chance():
            decoder["cross_attention_hidden_size"] = encoder["hidden_size"]
        return {"encoder": encoder, "decoder": {**decoder, "is_decoder": True, "add_cross_attention": True}, "is_encoder_decoder": True}

    # BERTs with something beside, and those whose layers are their own.

    def fixed_answers(make):
        """The class that finds answers takes two whatever the config says."""

        def of():
            config = make()
            if config["architectures"][0].endswith("ForQuestionAnswering"):
                config.pop("id2label", None)
            return config

        return of

    def lilt():
        config = encoder("Lilt", "stq", more=positive(channel_shrink_ratio=(1, 4), max_2d_position_embeddings=(9, 60)))()
        return {**config, "hidden_size": config["num_attention_heads"] * 12}

    def kernel(key):
        return lambda: {key: draw.choice([None, draw.randint(1, 9)])} if chance(0.8) else {}

    def xmod():
        return {"languages": draw.sample(["en_XX", "de_DE", "fr_XX"], draw.randint(1, 3)), "adapter_reduction_factor": draw.randint(1, 3)}

    def luke():
        config = encoder("Luke", "mstqc", "use_entity_aware_attention")()
        config.update(entity_vocab_size=draw.randint(5, 60), entity_emb_size=draw.choice([config["hidden_size"], draw.randint(4, 20)]))
        if chance(0.3):
            config["architectures"] = [f"LukeForEntity{kind}Classification" for kind in [draw.choice(["", "Pair", "Span"])]]
        return config

    def splinter():
        return {**encoder("Splinter", "q")(), "architectures": ["Splinter" + draw.choice(["Model", answers, "ForPreTraining"])]}

    def convbert():
        config = encoder("ConvBert", "mstqc", more=positive(head_ratio=(1, 4), conv_kernel_size=(1, 9), embedding_size=(5, 40)))()
        if chance(0.3):
            groups = draw.choice([2, 3])
            config.update(num_groups=groups, intermediate_size=groups * draw.randint(2, 20), num_attention_heads=groups,
                          hidden_size=groups * 4 * draw.randint(1, 4))
        return config

    def mobilebert():
        config = encoder("MobileBert", "mstqcnp", "trigram_input", "use_bottleneck", "use_bottleneck_attention",
                         "key_query_shared_bottleneck", "classifier_activation")()
        config.update(embedding_size=draw.randint(2, config["hidden_size"] - 1), num_feedforward_networks=draw.randint(1, 4))
        return {**config, "intra_bottleneck_size": config["num_attention_heads"] * draw.randint(2, 9)}

    def squeezebert():
        config = encoder("SqueezeBert", "mstqc")()
        config.update(embedding_size=config["hidden_size"], intermediate_size=2 * draw.randint(2, 40))
        for key in ("q_groups", "k_groups", "v_groups", "post_attention_groups", "intermediate_groups", "output_groups"):
            config[key] = draw.choice([1, 2])
        return config

    def canine():
        config = encoder("Canine", "stqc", more=positive(downsampling_rate=(1, 5), upsampling_kernel_size=(1, 5)))()
        config.pop("vocab_size")
        return {**config, "num_hash_functions": draw.choice([1, 2]), "num_hash_buckets": draw.randint(9, 60)}

    def fnet():
        config = encoder("FNet", "mstqcnp")()
        config.pop("num_attention_heads")
        return {**config, "hidden_size": draw.randint(5, 40)}

    def scored(stem, heads, *options):
        def of():
            names = {"XLNet": ("d_model", "d_inner", "n_layer", "n_head")}.get(stem, ("emb_dim", "unused", "n_layers", "n_heads"))
            config = encoder(stem, "", *options, keys=names, types=False)()
            config.pop("unused", None)
            if stem == "XLNet":
                config.pop("max_position_embeddings", None)
            elif chance():
                config.update(n_langs=draw.randint(1, 4))
            return {**config, "architectures": [stem + draw.choice(heads)]}

        return of

    every_score = ["Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnsweringSimple", "ForQuestionAnswering",
                   "ForMultipleChoice"]

    def llama_like(stem, heads, *options, grouped=False, more=dict):
        def of():
            config = {**encoder(stem, heads, *options, types=False)(), **more()}
            if grouped and chance():
                config["num_key_value_heads"] = 1
            return config

        return of

    answers, sequences, causal = "ForQuestionAnswering", "ForSequenceClassification", "ForCausalLM"
    classifying = (sequences, answers, "ForTokenClassification")
    every_head = ["ForCTC", "ForSequenceClassification", "ForAudioFrameClassification"]
    return {
        "t5": ("T5Model", t5("T5", *classifying, more=gated)),
        "mt5": ("MT5Model", t5("MT5", *classifying, more=lambda: {**gated(), "tie_word_embeddings": True})),
        "umt5": ("UMT5Model", t5("UMT5", *classifying, more=lambda: {**gated(), "tie_word_embeddings": True})),
        "longt5": ("LongT5Model", t5("LongT5", more=lambda: {**gated(), "encoder_attention_type": draw.choice(["local", "transient-global"])})),
        "switch_transformers": ("SwitchTransformersModel", switch),
        "bart": ("BartModel", reader("Bart", causal, sequences, answers)),
        "mbart": ("MBartModel", reader("MBart", causal, sequences, answers)),
        "m2m_100": ("M2M100Model", reader("M2M100")),
        "marian": ("MarianModel", lambda: {**reader("Marian")(), "architectures": [draw.choice(["MarianModel", "MarianMTModel", "MarianForCausalLM"])]}),
        "pegasus": ("PegasusModel", reader("Pegasus", causal)),
        "blenderbot": ("BlenderbotModel", reader("Blenderbot", causal)),
        "blenderbot-small": ("BlenderbotSmallModel", reader("BlenderbotSmall", causal)),
        "plbart": ("PLBartModel", reader("PLBart", causal, sequences)),
        "mvp": ("MvpModel", reader("Mvp", causal, sequences, answers)),
        "nllb-moe": ("NllbMoeModel", reader("NllbMoe", more=nllb_moe)),
        "led": ("LEDModel", reader("LED", answers, more=led)),
        "bigbird_pegasus": ("BigBirdPegasusModel", reader("BigBirdPegasus", causal, sequences, answers, more=lambda: {"use_bias": chance()})),
        "pegasus_x": ("PegasusXModel", reader("PegasusX", more=lambda: {"num_global_tokens": draw.randint(2, 9)})),
        "clip": ("CLIPModel", clip_images),
        "siglip": ("SiglipModel", lambda: siglip("Siglip", False)),
        "siglip2": ("Siglip2Model", lambda: siglip("Siglip2", True)),
        "clip_text_model": ("CLIPTextModel", clip_half("CLIPText", words)),
        "clip_vision_model": ("CLIPVisionModel", clip_half("CLIPVision", images)),
        "siglip_vision_model": ("SiglipVisionModel", images),
        "siglip2_vision_model": ("Siglip2VisionModel", lambda: images(True)),
        "vit": ("ViTModel", classified("ViT", ["ForImageClassification"], vit)),
        "deit": ("DeiTModel", classified("DeiT", ["ForImageClassification", "ForImageClassificationWithTeacher"], vit)),
        "dinov2": ("Dinov2Model", classified("Dinov2", ["ForImageClassification"], dinov2)),
        "dinov2_with_registers": ("Dinov2WithRegistersModel",
                                  classified("Dinov2WithRegisters", ["ForImageClassification"], lambda: dinov2(True))),
        "dinov3_vit": ("DINOv3ViTModel", dinov3),
        "audio-spectrogram-transformer": ("ASTModel", classified("AST", ["ForAudioClassification"], spectrogram)),
        "wav2vec2": ("Wav2Vec2Model", sound("Wav2Vec2", [*every_head, "ForPreTraining"], more=wav2vec2)),
        "wav2vec2-conformer": ("Wav2Vec2ConformerModel", sound("Wav2Vec2Conformer", [*every_head, "ForPreTraining"], more=wav2vec2_conformer)),
        "hubert": ("HubertModel", sound("Hubert", every_head[:2], "feat_proj_layer_norm")),
        "wavlm": ("WavLMModel", sound("WavLM", every_head, more=positive(num_buckets=(4, 40)))),
        "unispeech": ("UniSpeechModel", sound("UniSpeech", every_head[:2])),
        "unispeech-sat": ("UniSpeechSatModel", sound("UniSpeechSat", every_head)),
        "data2vec-audio": ("Data2VecAudioModel", sound("Data2VecAudio", every_head, more=lambda: {
            "num_conv_pos_embeddings": draw.randint(1, 4), "conv_pos_kernel_size": draw.choice([3, 5, 7])})),
        "wav2vec2-bert": ("Wav2Vec2BertModel", classified("Wav2Vec2Bert", every_head, w2v_bert)),
        "blip": ("BlipForConditionalGeneration", blip),
        "vision-encoder-decoder": ("VisionEncoderDecoderModel", trocr),
        "bert": ("BertModel", encoder("Bert", "mstqcnp")),
        "roberta": ("RobertaModel", encoder("Roberta", "mstqcl")),
        "xlm-roberta": ("XLMRobertaModel", encoder("XLMRoberta", "stqc")),
        "camembert": ("CamembertModel", encoder("Camembert", "stqc")),
        "modernbert": ("ModernBertModel", encoder("ModernBert", "mstqc", "attention_bias", "mlp_bias", "norm_bias",
                                                  "classifier_bias", "decoder_bias", types=False)),
        "modernvbert": ("ModernVBertModel", modernvbert),
        "colmodernvbert": ("ColModernVBertForRetrieval", colmodernvbert),
        "bert colbert": ("HF_ColBERT", lambda: {"model_type": "bert", **colbert()}),
        "mpnet": ("MPNetModel", encoder("MPNet", "mstqc", types=False, more=positive(relative_attention_num_buckets=(4, 40)))),
        "distilbert": ("DistilBertModel", distilbert),
        "electra": ("ElectraModel", encoder("Electra", "mstqcpl", "summary_use_proj", more=positive(embedding_size=(5, 40)))),
        "ernie": ("ErnieModel", encoder("Ernie", "mstqcnpl", "use_task_id", more=positive(task_type_vocab_size=(2, 9)))),
        "layoutlm": ("LayoutLMModel", encoder("LayoutLM", "mstq", more=positive(max_2d_position_embeddings=(9, 60)))),
        "megatron-bert": ("MegatronBertModel", encoder("MegatronBert", "mstqcnpl")),
        "xlm-roberta-xl": ("XLMRobertaXLModel", encoder("XLMRobertaXL", "mstqcl")),
        "roformer": ("RoFormerModel", roformer),
        "funnel": ("FunnelModel", funnel),
        "tapas": ("TapasModel", tapas),
        "markuplm": ("MarkupLMModel", encoder("MarkupLM", "stq", more=ways)),
        "roc_bert": ("RoCBertModel", encoder("RoCBert", "mstqcpl", "concat_input", "enable_pronunciation", "enable_shape", more=sounds)),
        "data2vec-text": ("Data2VecTextModel", encoder("Data2VecText", "mstqcl")),
        "longformer": ("LongformerModel", encoder("Longformer", "mstqc")),
        "big_bird": ("BigBirdModel", encoder("BigBird", "mstcpl", "use_bias")),
        "esm": ("EsmModel", encoder("Esm", "mst", "emb_layer_norm_before", types=False, more=esm)),
        "deberta": ("DebertaModel", encoder("Deberta", "mstq", types=False, more=deberta)),
        "deberta-v2": ("DebertaV2Model", encoder("DebertaV2", "mstqc", types=False, more=deberta_v2)),
        "albert": ("AlbertModel", albert_groups),
        "nomic_bert": ("NomicBertModel", encoder("NomicBert", "mst")),
        "gte": ("GteModel", encoder("Gte", "mst")),
        "jina_embeddings_v3": ("JinaEmbeddingsV3Model", encoder("JinaEmbeddingsV3", "stq")),
        "lilt": ("LiltModel", lilt),
        "nystromformer": ("NystromformerModel", fixed_answers(encoder("Nystromformer", "mstqc", more=positive(conv_kernel_size=(1, 9))))),
        "mra": ("MraModel", fixed_answers(encoder("Mra", "mstqc"))),
        "yoso": ("YosoModel", fixed_answers(encoder("Yoso", "mstqc", more=kernel("conv_window")))),
        "xmod": ("XmodModel", encoder("Xmod", "mstqcl", "pre_norm", "adapter_layer_norm", more=xmod)),
        "luke": ("LukeModel", luke),
        "splinter": ("SplinterModel", splinter),
        "convbert": ("ConvBertModel", convbert),
        "mobilebert": ("MobileBertModel", mobilebert),
        "squeezebert": ("SqueezeBertModel", squeezebert),
        "canine": ("CanineModel", canine),
        "fnet": ("FNetModel", fnet),
        "xlnet": ("XLNetModel", scored("XLNet", [*every_score, "LMHeadModel"], "summary_use_proj", "tie_word_embeddings")),
        "xlm": ("XLMModel", scored("XLM", [*every_score, "WithLMHeadModel"], "summary_use_proj", "summary_proj_to_labels",
                                   "use_lang_emb", "tie_word_embeddings")),
        "flaubert": ("FlaubertModel", scored("Flaubert", [*every_score, "WithLMHeadModel"], "summary_use_proj",
                                             "summary_proj_to_labels", "use_lang_emb")),
        "ultrabert": ("UltrabertModel", llama_like("Ultrabert", "mstq", "attention_bias", "mlp_bias", "tie_word_embeddings",
                                                   grouped=True, more=positive(prediction_head_size=(5, 40)))),
        "esmc": ("EsmcModel", llama_like("Esmc", "mst", "attention_bias", "mlp_bias")),
        "eurobert": ("EuroBertModel", encoder("EuroBert", "mst", "attention_bias", "mlp_bias", types=False)),
    }
