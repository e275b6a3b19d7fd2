#!/usr/bin/env python3
"""Counts what models add to their language model whose code stands beside their weights (sighted_own_code.cpp).

    data/make_own_code_towers.py > data/fixtures/own_code_towers.json

No class of transformers is the whole of any of them, but their parts have one there, in torch or in timm: SigLIP, Qwen's
encoders, MoonViT, InternViT, AIMv2, RADIO, Whisper, RegNet's stages, attention. Each is put together of these on the meta
device, of odd sizes, as vLLM 0.33 puts it together, and its elements are summed. Needs transformers, torch and timm.
"""
import json
import random
import sys

import torch
from torch import nn

draw = random.Random(7)


def total(*modules):
    return sum(p.numel() for m in modules for p in ([m] if isinstance(m, torch.Tensor) else m.parameters()))


def vector(*shape):
    return torch.empty(*shape, device="meta")


def build(cls, config):
    with torch.device("meta"):
        return cls(config)


def made(maker):
    with torch.device("meta"):
        return maker()


TEXT = {"vocab_size": 97, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 8,
        "intermediate_size": 50, "tie_word_embeddings": False}


def text(kind, **more):
    return {**TEXT, "model_type": kind, "hidden_size": 8 * draw.randint(3, 9), **more}


def encoder(**more):
    heads = draw.randint(2, 4)
    return {"hidden_size": heads * 4 * draw.randint(1, 3), "num_attention_heads": heads, "patch_size": draw.randint(2, 5),
            "intermediate_size": draw.randint(5, 60), "num_hidden_layers": draw.randint(2, 5), **more}


def square(vision):
    return {**vision, "image_size": vision["patch_size"] * draw.randint(2, 6)}


def mlp(*widths, bias=True):
    return made(lambda: nn.Sequential(*(nn.Linear(a, b, bias=bias) for a, b in zip(widths, widths[1:]))))


def norm(width, bias=True):
    return made(lambda: nn.LayerNorm(width, bias=bias))


def siglip(vision, head):
    from transformers import SiglipVisionConfig, SiglipVisionModel

    return build(SiglipVisionModel, SiglipVisionConfig(**{**vision, "vision_use_head": head, "model_type": "siglip_vision_model"}))


def intern_vit(vision):
    from transformers import InternVLVisionConfig, InternVLVisionModel

    side = [vision["image_size"]] * 2, [vision["patch_size"]] * 2
    config = {**vision, "image_size": side[0], "patch_size": side[1], "use_qk_norm": vision["qk_normalization"],
              "attention_bias": vision["qkv_bias"]}
    return build(InternVLVisionModel, InternVLVisionConfig(**config))


def intern_projector(hidden, between, out, bias=True):
    return total(norm(4 * hidden), mlp(4 * hidden, between, out, bias=bias))


def intern_config(name, kind="internvl_chat"):
    vision = square(encoder(qk_normalization=draw.random() < 0.5, qkv_bias=draw.random() < 0.5))
    vision["norm_type"] = draw.choice(["layer_norm", "rms_norm"])
    return {"architectures": [name], "model_type": kind, "downsample_ratio": 0.5, "vision_config": vision}


def h2ovl():
    config = {**intern_config("H2OVLChatModel"), "llm_config": text("mistral")}
    vision, out = config["vision_config"], config["llm_config"]["hidden_size"]
    return config, total(intern_vit(vision)) + intern_projector(vision["hidden_size"], out, out)


def skywork():
    config, towers = h2ovl()
    return {**config, "architectures": ["SkyworkR1VChatModel"], "llm_config": {**config["llm_config"], "model_type": "qwen2"}}, towers


def nvlm():
    """Its attention has seven heads more, in q, k, v, the output and the norms of q and k."""
    config = {**intern_config("NVLM_D"), "llm_config": text("qwen2")}
    vision, language = config["vision_config"], config["llm_config"]
    hidden, added = vision["hidden_size"], 7 * vision["hidden_size"] // vision["num_attention_heads"]
    block = 4 * added * hidden + 3 * added * vision["qkv_bias"] + 2 * added * vision["qk_normalization"]
    towers = total(intern_vit(vision)) + vision["num_hidden_layers"] * block
    return config, towers + intern_projector(hidden, language["intermediate_size"], language["hidden_size"], bias=False)


def intern_s1():
    config = intern_config("InternS1ForConditionalGeneration", "interns1")
    vision = config["vision_config"]
    tower = total(intern_vit(vision))
    for key in ("image_size", "patch_size"):
        vision[key] = [vision[key]] * 2
    vision["use_qk_norm"], vision["attention_bias"] = vision.pop("qk_normalization"), vision.pop("qkv_bias")
    config["text_config"] = text("qwen3")
    out = config["text_config"]["hidden_size"]
    return config, tower + intern_projector(vision["hidden_size"], out, out)


def kimi_vl():
    from transformers.models.kimi_k25.configuration_kimi_k25 import Kimi_K25VisionConfig
    from transformers.models.kimi_k25 import modeling_kimi_k25 as kimi

    vision = encoder(merge_kernel_size=[2, 2], init_pos_emb_height=draw.randint(3, 7), init_pos_emb_width=draw.randint(3, 7))
    config = {"architectures": ["KimiVLForConditionalGeneration"], "model_type": "kimi_vl", "vision_config": vision}
    config["text_config"] = text("deepseek_v3", kv_lora_rank=8, q_lora_rank=None, qk_rope_head_dim=4, qk_nope_head_dim=4,
                                 v_head_dim=6, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=7,
                                 n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1,
                                 num_nextn_predict_layers=0)
    tower = build(kimi.Kimi_K25VisionModel, Kimi_K25VisionConfig(
        **{**vision, "pos_emb_height": vision["init_pos_emb_height"], "pos_emb_width": vision["init_pos_emb_width"]}))
    joined = 4 * vision["hidden_size"]
    return config, total(tower, norm(vision["hidden_size"]), mlp(joined, joined, config["text_config"]["hidden_size"]))


def qwen_vision(**more):
    heads = 2
    return {"hidden_size": heads * 8 * draw.randint(1, 3), "num_heads": heads, "depth": draw.randint(2, 4), "patch_size": draw.randint(2, 4),
            "spatial_merge_size": draw.randint(1, 3), "temporal_patch_size": draw.randint(1, 2), "in_channels": 3, **more}


def opencua():
    from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLVisionConfig
    from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VisionTransformerPretrainedModel

    vision = qwen_vision(intermediate_size=draw.randint(5, 40), out_hidden_size=draw.randint(5, 40))
    config = {"architectures": ["OpenCUAForConditionalGeneration"], "text_config": text("qwen2"), "vision_config": vision}
    return config, total(build(Qwen2_5_VisionTransformerPretrainedModel, Qwen2_5_VLVisionConfig(**vision)))


def sarashina():
    from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VisionTransformerPretrainedModel

    language, vision = text("llama"), qwen_vision(mlp_ratio=draw.randint(2, 4))
    vision["embed_dim"], vision["hidden_size"] = vision["hidden_size"], language["hidden_size"]
    config = {"architectures": ["Sarashina2VisionForCausalLM"], "text_config": language, "vision_config": vision}
    tower = build(Qwen2VisionTransformerPretrainedModel, Qwen2VLVisionConfig(**vision))
    return config, total(tower, norm(language["hidden_size"]))


def keye(name="KeyeForConditionalGeneration", normed=1):
    vision = square(encoder())
    config = {**text("Keye"), "architectures": [name], "vision_config": vision}
    hidden = vision["hidden_size"]
    return config, total(siglip(vision, True), vector(32768, hidden), norm(normed * hidden),
                         mlp(4 * hidden, 4 * hidden, config["hidden_size"]))


def keye_1_5():
    return keye("KeyeVL1_5ForConditionalGeneration", 4)


def pre_normed(name, times):
    vision = {**square(encoder()), "model_type": "siglip_vision_model", "vision_use_head": draw.random() < 0.5}
    config = {"architectures": [name], "model_type": "x", "vision_config": vision, "text_config": text("qwen3")}
    out = config["text_config"]["hidden_size"]
    return config, total(siglip(vision, vision["vision_use_head"]), norm(vision["hidden_size"]),
                         mlp(vision["hidden_size"], times * out, out), vector(out))


def r_4b():
    return pre_normed("RForConditionalGeneration", 1)


def bee():
    return pre_normed("BeeForConditionalGeneration", 4)


def kanana():
    from functools import partial

    from timm.layers import LayerNorm2d
    from timm.models.regnet import RegStage
    from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VisionTransformerPretrainedModel

    vision = qwen_vision(mlp_ratio=draw.randint(2, 4))
    vision["embed_dim"] = vision.pop("hidden_size")
    width, depth, merge = vision["embed_dim"], draw.randint(0, 3), draw.randint(1, 3)
    into = {"depth": depth, "mlp_depth": draw.randint(1, 3), "encoder_hidden_size": width, "hidden_size": draw.randint(5, 50),
            "output_hidden_size": draw.randint(5, 50), "merge_size": merge, "pos_emb": draw.random() < 0.5,
            "pos_emb_size": draw.randint(2, 6) ** 2}
    config = {"architectures": ["KananaVForConditionalGeneration"], "model_type": "kanana-1.5-v", "vision_config": vision,
              "projector_config": into, "text_config": text("llama")}
    tower = build(Qwen2VisionTransformerPretrainedModel, Qwen2VLVisionConfig(**vision, hidden_size=width))
    stage = partial(RegStage, stride=1, dilation=1, act_layer=nn.SiLU, norm_layer=LayerNorm2d)
    count = total(tower) - total(tower.merger)
    if depth:
        count += total(made(lambda: stage(depth, width, into["hidden_size"])))
        count += total(made(lambda: stage(depth, merge**2 * into["hidden_size"], into["hidden_size"])))
    count += total(mlp(into["hidden_size"] if depth else width, *[into["output_hidden_size"]] * into["mlp_depth"]))
    return config, count + (into["pos_emb_size"] * width if into["pos_emb"] else 0)


def words(hidden, stride, vocabulary, indicators, out):
    return total(mlp(hidden * stride**2, vocabulary - indicators, bias=False), norm(vocabulary - indicators), vector(vocabulary, out))


def ovis(kind="aimv2"):
    from transformers import Aimv2VisionConfig, Aimv2VisionModel

    vision = {**square(encoder()), "model_type": kind}
    told = {"vocab_size": draw.randint(20, 60), "hidden_stride": draw.randint(1, 3), "backbone_config": vision}
    config = {"architectures": ["Ovis"], "model_type": "ovis", "llm_config": text("qwen2"), "visual_tokenizer_config": told}
    config["hidden_size"] = config["llm_config"]["hidden_size"]
    if kind == "aimv2":
        bias = draw.random() < 0.5
        vision.update(qkv_bias=bias, use_bias=bias)
        tower = build(Aimv2VisionModel, Aimv2VisionConfig(**{**vision, "mlp_bias": bias, "use_head": False, "is_native": False,
                                                            "model_type": "aimv2_vision_model"}))
    else:
        tower = siglip(vision, True)
    return config, total(tower) + words(vision["hidden_size"], told["hidden_stride"], told["vocab_size"], 5, config["hidden_size"])


def ovis_siglip():
    return ovis("siglip_vision_model")


def ovis_2_5():
    vision = square(encoder(num_patches=-1, hidden_stride=draw.randint(1, 3), preserve_original_pe=draw.random() < 0.5))
    config = {"architectures": [draw.choice(["Ovis2_5", "Ovis2_6ForCausalLM"])], "model_type": "ovis2_5", "vit_config": vision,
              "llm_config": text("qwen3"), "visual_vocab_size": draw.randint(20, 60)}
    config["hidden_size"] = config["llm_config"]["hidden_size"]
    count = total(siglip(vision, False))
    if not vision["preserve_original_pe"]:
        count -= (vision["image_size"] // vision["patch_size"]) ** 2 * vision["hidden_size"]
    return config, count + words(vision["hidden_size"], vision["hidden_stride"], config["visual_vocab_size"], 4, config["hidden_size"])


def resampler(queries, seen, width):
    parts = [vector(queries, width), vector(width, width), norm(width), norm(width), norm(width),
             made(lambda: nn.MultiheadAttention(width, 2))]
    return total(*parts) + (seen * width if seen != width else 0)


def minicpm_v(version, kind):
    vision, dropped = square(encoder()), draw.random() < 0.5
    config = {**text(kind), "architectures": ["MiniCPMV"], "model_type": "minicpmv", "query_num": draw.randint(2, 9),
              "version": version, "vision_config": vision, "drop_vision_last_layer": dropped}
    kept = {**vision, "num_hidden_layers": vision["num_hidden_layers"] - dropped}
    return config, total(siglip(kept, False)) + resampler(config["query_num"], vision["hidden_size"], config["hidden_size"])


def minicpm_v_2_0():
    """As its code makes the ViT; its resampler has a table of places beside the queries."""
    import timm

    dropped, side = draw.random() < 0.5, draw.randint(2, 4)
    config = {**text("x"), "architectures": ["MiniCPMV"], "model_type": "minicpmv", "query_num": side**2, "version": 2.0,
              "drop_vision_last_layer": dropped}
    vit = made(lambda: timm.create_model("vit_so400m_patch14_siglip_384.webli", num_classes=0, dynamic_img_size=True,
                                         dynamic_img_pad=True))
    vit.attn_pool, vit.blocks = nn.Identity(), vit.blocks[:-1] if dropped else vit.blocks
    width = config["hidden_size"]
    return config, total(vit, vector(side**2, width)) + resampler(side**2, 1152, width)


def minicpm_o(version, kind):
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config, towers = minicpm_v(version, kind)
    audio = {"d_model": 8 * draw.randint(1, 3), "encoder_layers": draw.randint(1, 3), "encoder_attention_heads": 2,
             "encoder_ffn_dim": 4 * draw.randint(3, 9), "num_mel_bins": draw.randint(3, 9), "max_source_positions": draw.randint(5, 9)}
    config.update(architectures=["MiniCPMO"], model_type="minicpmo", audio_config=audio, init_tts=False)
    out = config["hidden_size"]
    return config, towers + total(build(WhisperEncoder, WhisperConfig(**audio)), mlp(audio["encoder_ffn_dim"] // 4, out, out))


def radio_vit(name, patch, side, tokens, frames):
    """timm's vision transformer of that name without what RADIO puts in place of its start and end."""
    import timm

    vit = made(lambda: timm.create_model(name, num_classes=0))
    return total(vit.blocks) + total(vector(tokens, vit.embed_dim), vector(side**2, vit.embed_dim)) + \
        3 * patch**2 * vit.embed_dim * (1 + (frames if frames > 1 else 0))


def nemotron(name, bias):
    patch, multiple, frames = 16, draw.choice([None, 5, 10]), draw.choice([1, 2])
    teachers = [{"name": n, "use_summary": draw.random() < 0.5} for n in ("clip", "siglip", "dino_v2", "clip")]
    args = {"model": "vit_small_patch16_224", "cpe_max_size": 16 * draw.randint(3, 9), "register_multiple": multiple,
            "cls_token_per_teacher": draw.random() < 0.5, "teachers": teachers}
    vision = {"patch_size": patch, "args": args, "video_temporal_patch_size": frames}
    config = {"architectures": [name], "model_type": name, "downsample_ratio": 0.5, "vision_config": vision,
              "vit_hidden_size": 384, "projector_hidden_size": draw.randint(5, 50), "llm_config": text("llama")}
    classes = 3 if args["cls_token_per_teacher"] else 1
    tokens = classes + (multiple - classes % multiple if multiple else 0)
    count = radio_vit(args["model"], patch, args["cpe_max_size"] // patch, tokens, frames)
    return config, count + total(norm(4 * 384, bias=bias)) + total(
        mlp(4 * 384, config["projector_hidden_size"], config["llm_config"]["hidden_size"], bias=bias))


def eagle(name="Eagle2_5_VLForConditionalGeneration", kind="qwen2"):
    vision = {**square(encoder()), "model_type": "siglip_vision_model", "vision_use_head": False}
    config = {"architectures": [name], "model_type": "eagle_2_5_vl", "downsample_ratio": 0.5, "vision_config": vision,
              "text_config": text(kind)}
    out = config["text_config"]["hidden_size"]
    return config, total(siglip(vision, False)) + intern_projector(vision["hidden_size"], out, out)


def nemotron_embed():
    return eagle("LlamaNemotronVLModel", "llama_bidirec")


FAMILIES = [h2ovl, skywork, nvlm, intern_s1, kimi_vl, opencua, keye, keye_1_5, r_4b, bee, kanana, ovis, ovis_siglip, ovis_2_5,
            minicpm_v_2_0, lambda: minicpm_v(2.5, "llama"), lambda: minicpm_v(2.6, "qwen2"), lambda: minicpm_v("4.0", "llama"),
            lambda: minicpm_v(4.5, "qwen3"), lambda: minicpm_o("2.6", "qwen2"), lambda: minicpm_o(4.5, "qwen3"),
            lambda: nemotron("NemotronH_Nano_VL_V2", False), lambda: nemotron("Llama_Nemotron_Nano_VL", True), eagle,
            nemotron_embed, sarashina]


def main():
    cases = []
    for family in FAMILIES:
        for _ in range(3):
            config, towers = family()
            cases.append({"config": config, "towers": towers})
    lines = ",\n".join(json.dumps(case, sort_keys=True) for case in cases)
    sys.stdout.write(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
