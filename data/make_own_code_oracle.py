#!/usr/bin/env python3
"""Writes data/fixtures/modules/<name>.tsv of models whose code is not part of transformers, asking that code.

    data/make_own_code_oracle.py CODE data/fixtures/own_code_configs

CODE is a folder with what its authors published on GitHub: Janus (deepseek-ai/Janus), DeepSeek-VL (deepseek-ai/DeepSeek-VL),
minimind2 and minimind2-lm (jingyaogong/minimind at 151fdf7 and 399d526), Yuan-M32 (yuan_moe_hf_model.py of
IEIT-Yuan/Yuan2.0-M32), moondream (vikhyat/moondream), Bagel
(ByteDance-Seed/Bagel), minimind (jingyaogong/minimind), FireRedASR (FireRedTeam/FireRedASR), Yuan (examples/yuan of
IEIT-Yuan/Yuan-2.0), OLMo (allenai/OLMo), and the files beside the weights of Florence-2 (microsoft/Florence-2-large), Hymba
(nvidia/Hymba-1.5B-Base) and AndesVL (OPPOer/AndesVL-0_6B-Instruct). The models are built on the meta device; what the code imports and a constructor does not need
is put aside. What flash-linear-attention and mamba_ssm have is asked through scan_models.py. The files are those that make_module_oracle.py writes, buffers left out.
"""
import enum
import importlib
import importlib.machinery
import json
import multiprocessing
import pathlib
import sys
import types

import torch
import transformers
from transformers import GenerationMixin, LlamaConfig, LlamaForCausalLM, PreTrainedModel, Qwen2ForCausalLM  # noqa: F401, before what is put aside

import scan_models
from module_rows import write_rows


class Aside(types.ModuleType):
    """A module of which nothing is computed with."""

    def __init__(self, name):
        super().__init__(name)
        self.__path__ = []
        self.__spec__ = importlib.machinery.ModuleSpec(name, None)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: None


class AttrDict(dict):
    __getattr__ = dict.__getitem__


class Nothing:
    """No answer, and no decorator."""

    def __bool__(self):
        return False

    def __call__(self, function):
        return function


def put_aside(*names):
    for name in names:
        sys.modules[name] = Aside(name)


def package(name, folder):
    module = types.ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module


def fill_in(*names):
    """What newer releases no longer have in these modules: only forward passes ask for it."""
    put_aside("transformers.modeling_attn_mask_utils")
    for name in names:
        importlib.import_module(name).__getattr__ = lambda key: lambda *a, **k: Nothing()


def on_meta(build):
    """Builds on the meta device, where only rates of dropout are told by real numbers."""
    linspace = torch.linspace
    torch.linspace = lambda *a, **k: linspace(*a, **{**k, "device": "cpu"})
    try:
        with torch.device("meta"):
            return build()
    finally:
        torch.linspace = linspace


def deepseek(code, document):
    """Janus and what DeepSeek published under the same class."""
    if "vision_und_enc_config" in document:
        return janus_flow(code, document)
    return janus(code, document) if "gen_vision_config" in document else deepseek_vl(code, document)


def without_registering():
    """Its configuration classes are none that newer releases take."""
    transformers.configuration_utils.PretrainedConfig = type("PretrainedConfig", (), {})
    transformers.AutoConfig.register = transformers.AutoModelForCausalLM.register = lambda *a: None


def put_together(document, parts):
    """`parts` makes the modules beside the language model."""
    model = torch.nn.Module()

    def build():
        made = {**parts(), "language_model": LlamaForCausalLM(LlamaConfig(**document["language_config"]))}
        for name, part in made.items():
            setattr(model, name, part)
        return model
    return on_meta(build)


def deepseek_vl(code, document):
    put_aside("einops")
    sys.modules["attrdict"] = types.SimpleNamespace(AttrDict=AttrDict)
    package("deepseek_vl", code / "DeepSeek-VL" / "deepseek_vl")
    package("deepseek_vl.models", code / "DeepSeek-VL" / "deepseek_vl" / "models")
    without_registering()
    vlm = importlib.import_module("deepseek_vl.models.modeling_vlm")
    vision, aligner = document["vision_config"], document["aligner_config"]
    return put_together(document, lambda: {
        "vision_model": vlm.model_name_to_cls(vision["cls"])(**vision["params"]),
        "aligner": vlm.model_name_to_cls(aligner["cls"])(AttrDict(aligner["params"]))})


class TimestepEmbedding(torch.nn.Module):
    """As the library diffusers has it."""

    def __init__(self, channels, width, sample_proj_bias=True):
        super().__init__()
        self.linear_1 = torch.nn.Linear(channels, width, sample_proj_bias)
        self.linear_2 = torch.nn.Linear(width, width, sample_proj_bias)


def janus_flow(code, document):
    put_aside("einops", "diffusers", "diffusers.models", "diffusers.models.embeddings")
    sys.modules["diffusers.models.embeddings"].TimestepEmbedding = TimestepEmbedding
    sys.modules["diffusers.models.embeddings"].Timesteps = lambda *a, **k: torch.nn.Identity()
    sys.modules["attrdict"] = types.SimpleNamespace(AttrDict=AttrDict)
    for part in ("janus", "janus.janusflow", "janus.janusflow.models"):
        package(part, code / "Janus" / part.replace(".", "/"))
    norm = transformers.models.llama.modeling_llama.LlamaRMSNorm
    without_registering()
    vlm = importlib.import_module("janus.janusflow.models.modeling_vlm")
    part = lambda key: vlm.model_name_to_cls(document[key]["cls"])(**document[key]["params"])  # noqa: E731
    return put_together(document, lambda: {  # widths as MultiModalityCausalLM's constructor writes them
        "vision_und_enc_model": part("vision_und_enc_config"),
        "vision_und_enc_aligner": torch.nn.Linear(1024, 2048),
        "beg_of_und_embed": torch.nn.Parameter(torch.zeros(1, 2048)),
        "vision_gen_enc_model": part("vision_gen_enc_config"),
        "vision_gen_enc_aligner": torch.nn.Linear(768, 2048),
        "vision_gen_dec_model": part("vision_gen_dec_config"),
        "vision_gen_dec_aligner_norm": norm(2048),
        "vision_gen_dec_aligner": torch.nn.Linear(2048, 768)})


def janus(code, document):
    put_aside("einops")
    sys.modules["attrdict"] = types.SimpleNamespace(AttrDict=AttrDict)
    package("janus", code / "Janus" / "janus")
    package("janus.models", code / "Janus" / "janus" / "models")
    # Its configuration classes are none that newer releases take.
    kinds, register = transformers.configuration_utils, lambda *a: None
    kinds.PretrainedConfig = type("PretrainedConfig", (), {})
    transformers.AutoConfig.register = transformers.AutoModelForCausalLM.register = register
    vlm = importlib.import_module("janus.models.modeling_vlm")
    parts = types.SimpleNamespace(**{key: types.SimpleNamespace(cls=part["cls"], params=AttrDict(part["params"]))
                                     for key, part in document.items() if isinstance(part, dict) and "cls" in part})
    model = torch.nn.Module()

    def build():
        made = {"vision_model": vlm.model_name_to_cls(parts.vision_config.cls)(**parts.vision_config.params),
                "aligner": vlm.model_name_to_cls(parts.aligner_config.cls)(parts.aligner_config.params),
                "gen_vision_model": vlm.model_name_to_cls(parts.gen_vision_config.cls)(),
                "gen_aligner": vlm.model_name_to_cls(parts.gen_aligner_config.cls)(parts.gen_aligner_config.params),
                "gen_head": vlm.model_name_to_cls(parts.gen_head_config.cls)(parts.gen_head_config.params),
                "gen_embed": torch.nn.Embedding(parts.gen_vision_config.params["image_token_size"],
                                                parts.gen_vision_config.params["n_embed"]),
                "language_model": LlamaForCausalLM(
                    LlamaConfig(**document["language_config"]))}
        for name, part in made.items():
            setattr(model, name, part)
        return model
    return on_meta(build)


def florence2(code, document):
    put_aside("einops", "timm", "timm.models", "timm.models.layers")
    sys.modules["timm.models.layers"].DropPath = torch.nn.Identity
    package("florence", code / "Florence-2")
    fill_in("transformers.utils")
    code = importlib.import_module("florence.modeling_florence2")
    kinds = importlib.import_module("florence.configuration_florence2")
    kinds.Florence2LanguageConfig.forced_bos_token_id = None
    vision = kinds.Florence2VisionConfig(**document["vision_config"])
    text = kinds.Florence2LanguageConfig(**document["text_config"])
    text._attn_implementation = "eager"
    code.Florence2LanguagePreTrainedModel.post_init = lambda self: None

    def build():
        model = torch.nn.Module()
        model.vision_tower = code.DaViT.from_config(vision)
        del model.vision_tower.head, model.vision_tower.norms
        whole = types.SimpleNamespace(vision_config=vision)
        code.Florence2ForConditionalGeneration._build_image_projection_layers(model, whole)
        model.language_model = code.Florence2LanguageForConditionalGeneration(text)
        model.language_model.lm_head.weight = model.language_model.model.shared.weight
        return model
    return on_meta(build)


def moondream(code, document):
    put_aside("tokenizers")
    sys.modules["tokenizers"].Tokenizer = types.SimpleNamespace(from_pretrained=lambda name: None)
    package("moondream", code / "moondream" / "moondream")
    package("moondream.torch", code / "moondream" / "moondream" / "torch")
    sys.modules["moondream.torch.image_crops"] = Aside("moondream.torch.image_crops")
    own = importlib.import_module("moondream.torch.moondream")
    kinds = importlib.import_module("moondream.torch.config")
    model = torch.nn.Module()

    def build():
        model.model = own.MoondreamModel(kinds.MoondreamConfig.from_dict(document["config"]), setup_caches=False)
        return model
    return on_meta(build)


def bagel(code, document):
    put_aside("einops", "flash_attn", "tqdm", "data", "data.data_utils", "modeling.cache_utils", "modeling.cache_utils.taylorseer")
    fill_in("transformers.utils", "transformers.pytorch_utils", "transformers.modeling_utils")
    package("modeling", code / "Bagel" / "modeling")
    for part in ("qwen2", "bagel", "siglip"):
        package(f"modeling.{part}", code / "Bagel" / "modeling" / part)
    navit = importlib.import_module("modeling.bagel.qwen2_navit")
    siglip = importlib.import_module("modeling.bagel.siglip_navit")
    whole = importlib.import_module("modeling.bagel.bagel")
    autoencoder = importlib.import_module("modeling.autoencoder")
    transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["default"] = lambda *a, **k: (torch.ones(1), 1.0)
    text = navit.Qwen2Config(**document["llm_config"])
    text.pad_token_id = None
    vision = siglip.SiglipVisionConfig(**document["vit_config"], rope=False)

    def build():
        vit = siglip.SiglipVisionModel(vision)
        vit.vision_model.embeddings.convert_conv2d_to_linear(vision, meta=True)
        config = whole.BagelConfig(**{**document, "llm_config": text, "vit_config": vision,
                                      "vae_config": types.SimpleNamespace(**document["vae_config"])})
        model = whole.Bagel(navit.Qwen2ForCausalLM(text), vit, config)
        drawn, _ = autoencoder.load_ae(None)
        model.encoder, model.decoder = drawn.encoder, drawn.decoder  # which lie in a file of their own
        return model
    return on_meta(build)


def hymba(code, document):
    put_aside("einops", "einops.layers", "einops.layers.torch", "flash_attn", "flash_attn.bert_padding", "causal_conv1d",
              "mamba_ssm", "mamba_ssm.ops", "mamba_ssm.ops.selective_scan_interface", "mamba_ssm.ops.triton",
              "mamba_ssm.ops.triton.selective_state_update")
    package("hymba", code / "Hymba")
    fill_in("transformers.utils", "transformers.utils.import_utils", "transformers.pytorch_utils")
    kind = types.ModuleType("hymba.configuration_hymba")
    kind.HymbaConfig = transformers.PretrainedConfig
    sys.modules[kind.__name__] = kind
    own = importlib.import_module("hymba.modeling_hymba")
    config = transformers.PretrainedConfig(**document)
    config.rope = False  # angles, which are no weights
    own.HymbaPreTrainedModel.post_init = lambda self: None
    model = on_meta(lambda: own.HymbaForCausalLM(config))
    if document["tie_word_embeddings"]:
        model.lm_head.weight = model.model.embed_tokens.weight
    return model


def minimind_lm(code, document):
    package("minimind", code / "minimind2-lm")
    own = importlib.import_module("minimind.model")
    own.precompute_pos_cis = lambda *a, **k: torch.zeros(1)
    return on_meta(lambda: own.MiniMindLM(own.LMConfig(**document)))


def minimind(code, document):
    package("minimind", code / ("minimind2" if "n_routed_experts" in document else "minimind") / "model")
    own = importlib.import_module("minimind.model_minimind")
    config = own.MiniMindConfig(**document)
    model = on_meta(lambda: own.MiniMindForCausalLM(config))
    if getattr(config, "tie_word_embeddings", True):  # the second's class always ties
        model.lm_head.weight = model.model.embed_tokens.weight
    return model


def yuan_moe(code, document):
    put_aside("einops", "flash_attn")
    kind = types.ModuleType("yuan.configuration_yuan")
    kind.YuanConfig = transformers.PretrainedConfig
    package("yuan", code / "Yuan-M32")
    sys.modules[kind.__name__] = kind
    fill_in("transformers.utils", "transformers.generation.utils", "transformers.generation.logits_process")
    own = importlib.import_module("yuan.yuan_moe_hf_model")
    own.YuanRotaryEmbedding = lambda *a, **k: torch.nn.Identity()
    own.YuanPreTrainedModel.post_init = lambda self: None
    return on_meta(lambda: own.YuanForCausalLM(transformers.PretrainedConfig(**document)))


def yuan(code, document):
    if "moe_config" in document:
        return yuan_moe(code, document)
    put_aside("einops")
    kind = types.ModuleType("configuration_yuan")
    kind.YuanConfig = transformers.PretrainedConfig
    sys.modules["configuration_yuan"] = kind
    fill_in("transformers.utils")
    package("yuan", code / "Yuan")
    own = importlib.import_module("yuan.yuan_hf_model")
    own.LlamaRotaryEmbedding = torch.nn.Identity
    own.YuanPreTrainedModel.post_init = lambda self: None
    model = on_meta(lambda: own.YuanForCausalLM(transformers.PretrainedConfig(**document)))
    if document["tie_word_embeddings"]:
        model.lm_head.weight = model.model.embed_tokens.weight
    return model


def andes(code, document):
    put_aside("flash_attn", "flash_attn.layers", "flash_attn.layers.rotary", "requests")
    fill_in("transformers.utils")
    package("andes", code / "AndesVL")
    own = importlib.import_module("andes.modeling_andesvl")
    kinds = importlib.import_module("andes.configuration_aimv2_navit_rope")
    vision = kinds.Aimv2VisionConfig(**document["vision_config"])
    own.Aimv2VisionModel.__init__.__globals__["AIMv2PretrainedModel"].post_init = lambda self: None
    text = transformers.Qwen3Config(**document["text_config"])
    model = torch.nn.Module()

    def build():
        model.vision_encoder = own.Aimv2VisionModel(vision)
        model.language_model = own.Qwen3ForCausalLM(text)
        joined = 4 * vision.hidden_size  # as AndesVLForConditionalGeneration joins patches
        model.mlp = torch.nn.Sequential(torch.nn.Linear(joined, joined), torch.nn.GELU(),
                                        torch.nn.Linear(joined, text.hidden_size))
        return model
    return on_meta(build)


def fire_red(code, document):
    package("firered", code / "FireRedASR" / "fireredasr" / "models" / "module")
    encoder = importlib.import_module("firered.conformer_encoder")
    adapter = importlib.import_module("firered.adapter")
    sizes = dict(document["audio_encoder_conf"])
    sizes["n_layers"] = sizes.pop("n_layers_enc")
    text = transformers.Qwen2Config(**{key: value for key, value in document.items() if key != "audio_encoder_conf"})
    model = torch.nn.Module()

    model.encoder = encoder.ConformerEncoder(**sizes)  # which computes sines
    model.llm = Qwen2ForCausalLM(text)
    model.encoder_projector = adapter.Adapter(sizes["d_model"], text.hidden_size, document["encoder_downsample_rate"])
    return model


def vibevoice(code, document):
    """The encoders, and what speaks where the config has a head for it, around transformers' Qwen2."""
    put_aside("vibevoice")
    transformers.AutoModel.register = lambda *a: None  # transformers has models of these types, too
    package("vibevoice.modular", code / "VibeVoice" / "vibevoice" / "modular")
    configs = importlib.import_module("vibevoice.modular.configuration_vibevoice")
    sounds = importlib.import_module("vibevoice.modular.modular_vibevoice_tokenizer")
    head = importlib.import_module("vibevoice.modular.modular_vibevoice_diffusion_head")
    text = Qwen2ForCausalLM(transformers.Qwen2Config(**document["decoder_config"]))
    hidden = text.config.hidden_size

    def connector(latent):
        module = torch.nn.Module()
        module.fc1, module.norm, module.fc2 = torch.nn.Linear(latent, hidden), torch.nn.RMSNorm(hidden), torch.nn.Linear(hidden, hidden)
        return module

    def build():
        model, inner = torch.nn.Module(), torch.nn.Module()
        model.model, inner.language_model = inner, text.model
        acoustic = configs.VibeVoiceAcousticTokenizerConfig(**document["acoustic_tokenizer_config"])
        semantic = configs.VibeVoiceSemanticTokenizerConfig(**document["semantic_tokenizer_config"])
        inner.acoustic_tokenizer = sounds.VibeVoiceAcousticTokenizerModel(acoustic)
        inner.semantic_tokenizer = sounds.VibeVoiceSemanticTokenizerModel(semantic)
        inner.acoustic_connector, inner.semantic_connector = connector(acoustic.vae_dim), connector(semantic.vae_dim)
        if "diffusion_head_config" in document:
            inner.prediction_head = head.VibeVoiceDiffusionHead(configs.VibeVoiceDiffusionHeadConfig(**document["diffusion_head_config"]))
        model.lm_head = text.lm_head
        return model

    return on_meta(build)


def olmo(code, document):
    """The model under the class of hf_olmo, which puts "model." before all names."""
    put_aside("omegaconf", "omegaconf.errors", "olmo.util", "olmo.beam_search")
    sys.modules["omegaconf.errors"].OmegaConfBaseException = Exception
    sys.modules["olmo.util"].StrEnum = enum.StrEnum
    for name in ("DictConfig", "ListConfig", "OmegaConf"):
        setattr(sys.modules["omegaconf"], name, type(name, (), {}))
    for name in ("BeamSearch", "Constraint", "FinalSequenceScorer", "Sampler"):
        setattr(sys.modules["olmo.beam_search"], name, type(name, (), {}))
    package("olmo", code / "OLMo" / "olmo")
    own = importlib.import_module("olmo.model")
    sizes = {key: value for key, value in document.items() if key not in ("architectures", "model_type")}
    model = torch.nn.Module()
    model.model = own.OLMo(own.ModelConfig(**sizes, init_device="meta"), init_params=False)
    return model


BUILDERS = {"VibeVoiceForConditionalGeneration": vibevoice, "VibeVoiceForASRTraining": vibevoice, "OLMoForCausalLM": olmo, "AndesVLForConditionalGeneration": andes, "MiniMindForCausalLM": minimind, "YuanForCausalLM": yuan, "FireRedASR2ForConditionalGeneration": fire_red,
            "BagelForConditionalGeneration": bagel, "HymbaForCausalLM": hymba, "MultiModalityCausalLM": deepseek, "MiniMindLM": minimind_lm, "Florence2ForConditionalGeneration": florence2, "HfMoondream": moondream}
BUILDERS.update({name: lambda code, document, build=build: build(document) for name, build in scan_models.BUILDERS.items()})


def checkpoint_tensors(model):
    """Parameters alone, tied ones once, by their first name."""
    return dict(model.named_parameters())


def one(code, path):
    document = json.loads(path.read_text())
    tensors = checkpoint_tensors(BUILDERS[document.get("architectures", ["MambaLMHeadModel"])[0]](code, document))
    write_rows(path.stem, {name: tensor.shape for name, tensor in tensors.items()})


def main(code, configs):
    for path in sorted(pathlib.Path(configs).glob("*.json")):  # each with modules of its own
        process = multiprocessing.Process(target=one, args=(pathlib.Path(code), path))
        process.start()
        process.join()
        print(path.stem if process.exitcode == 0 else f"{path.stem} failed")


if __name__ == "__main__":
    main(*sys.argv[1:])
