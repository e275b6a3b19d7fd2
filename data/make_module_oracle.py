#!/usr/bin/env python3
"""Writes data/fixtures/modules/<name>.tsv: what `transformers` makes of a config, on the meta device.

    data/make_module_oracle.py data/fixtures/configs data/fixtures/published_configs

One file a config: the library's version, the number of parameters (tied weights once), then one line for each
distinct tensor name of a checkpoint, with every index written as '#', its shape, and how often it occurs.
Names are those that save_pretrained() would write: transformers 5 fuses experts when it loads a checkpoint, and
revert_weight_conversion() takes that back.

Families whose code is not part of transformers (Qwen 1, Baichuan 2, ChatGLM, InternLM2) have no oracle here;
tests/model/published_totals_test.cpp holds them to published totals. MTP layers are dropped by every class here.
"""
import collections
import json
import pathlib
import re
import sys

import torch
import transformers
from transformers.core_model_loading import revert_weight_conversion

import scan_models

OUT = pathlib.Path(__file__).parent / "fixtures" / "modules"
# The class to ask, where a config's model_type names none that transformers has.
SAME_CODE = {"kimi_k2": "deepseek_v3"}
WITHOUT_MODEL_TYPE = {"MiniCPM3ForCausalLM": "minicpm3"}


# Classes whose batch norms' statistics checkpoints hold, and that have nothing else to leave out.
BATCH_NORMED = ("efficientnet", "mobilenet_v1", "mobilenet_v2", "mobilevit", "mobilevitv2", "detr", "table-transformer", "conditional_detr",
                "dab-detr", "deformable_detr")
NORM_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


class HF_ColBERT(transformers.BertPreTrainedModel):
    """As stanford-futuredata/ColBERT makes it around transformers' class, with the width that its own settings have."""

    def __init__(self, config):
        super().__init__(config)
        self.bert = transformers.BertModel(config)
        self.linear = torch.nn.Linear(config.hidden_size, getattr(config, "dim", 128), bias=False)
        self.post_init()


OTHERS_CLASSES = {"HF_ColBERT": HF_ColBERT}


def build(document):
    architecture = document["architectures"][0]
    if architecture in scan_models.BUILDERS:
        return scan_models.BUILDERS[architecture](document)
    model_type = document.get("model_type") or WITHOUT_MODEL_TYPE[architecture]
    left_out = ("model_type", "quantization_config", "auto_map")
    values = {key: value for key, value in document.items() if key not in left_out}
    config = transformers.CONFIG_MAPPING[SAME_CODE.get(model_type, model_type)](**values)
    with torch.device("meta"):
        return (OTHERS_CLASSES.get(architecture) or getattr(transformers, architecture))(config)


def checkpoint_tensors(model):
    seen, state = set(), {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            state[name] = tensor
    return as_published(model, state)


# Where save_pretrained() would write other names than the published checkpoints have.
def as_published(model, state):
    if not isinstance(model, transformers.PreTrainedModel):  # mamba_ssm's
        return state
    kind = model.config.model_type
    if kind in ("qwen3_5_moe", "qwen3_5_moe_text", "qwen3_vl_moe"):  # stacked, as the library holds them
        if kind == "qwen3_vl_moe":  # ... but [experts, in, out]
            return {name: t.transpose(1, 2) if ".experts." in name else t for name, t in state.items()}
        return state
    if kind == "pi0":  # as transformers reads the releases; its reversal renames the language model too
        heads = {"model.dit.embed_tokens": "model.dit_head", "model.vlm.language_model.embed_tokens": "model.vlm_head"}
        for table, head in heads.items():
            state = {name.replace(table, head): t for name, t in state.items()}
        expert, sees = "paligemma_with_expert.gemma_expert.", "paligemma_with_expert.paligemma."
        pairs = (("model.dit_head", expert + "lm_head"), ("model.vlm_head", sees + "lm_head"), ("model.dit.", expert + "model."))
        for ours, theirs in (*pairs, ("model.vlm.", sees + "model."), ("embed_action_time.", "")):
            state = {re.sub("^" + re.escape(ours), theirs, name): t for name, t in state.items()}
        return state
    state = revert_weight_conversion(model, state)
    if kind == "minimax":  # decays of lightning attention: saved, and computed again by everyone
        decays = ("slope_rate", "query_decay", "key_decay", "diagonal_decay")
        return {name: t for name, t in state.items() if not name.endswith(decays)}
    if kind in ("gemma4_assistant", "gemma4_unified_assistant"):  # whole numbers, no weights
        return {name: t for name, t in state.items() if not name.endswith("token_ordering")}
    if kind in ("qwen4_exp", "qwen4_exp_text"):  # whole numbers, no weights
        tables = ("layer_multipliers", "ngram_heads_offsets", "ngram_heads_vocab_sizes")
        return {name: t for name, t in state.items() if not name.endswith(tables)}
    if kind == "phi4_multimodal":  # how its spectra are normed: no weights
        return {name: t for name, t in state.items() if ".encoder_embedding.global_" not in name}
    if kind == "nemotron_h_omni":  # what its batch norms have seen, and which tokens are summaries: no weights
        left_out = ("running_mean", "running_var", "num_batches_tracked", "summary_idxs")
        return {name: t for name, t in state.items() if not name.endswith(left_out)}
    if kind in ("granite_speech", "granite_speech_plus"):  # what its batch norms have seen
        left_out = ("running_mean", "running_var", "num_batches_tracked")
        return {name: t for name, t in state.items() if not name.endswith(left_out)}
    if kind in ("emu3", "fast_vlm", "cohere_asr", "canary", "parakeet_ctc", "parakeet_rnnt", "parakeet_tdt"):  # what batch norms have seen
        left_out = ("running_mean", "running_var", "num_batches_tracked")
        state = {name: t for name, t in state.items() if not name.endswith(left_out)}
        # The release of Cohere's, which NeMo wrote, has no such prefix.
        return {name.removeprefix("model.") if kind == "cohere_asr" else name: t for name, t in state.items()}
    if kind in ("mimi", "csm", "kyutai_speech_to_text", "moshi"):  # whether a book was begun: no weight
        return {name: t for name, t in state.items() if not name.endswith("codebook.initialized")}
    if kind == "vit_mae":  # as releases name it
        return {name.replace("decoder_encoder.layer.", "decoder_layers."): t for name, t in state.items()}
    if kind in ("swin", "donut-swin"):  # which cell of a table each pair takes: no weights
        return {name: t for name, t in state.items() if not name.endswith("relative_position_index")}
    if kind in ("musicgen", "musicgen_melody", "bark", "encodec"):  # how codes were found; causal masks; weights in two parts
        state = {re.sub(r"parametrizations\.weight\.original0$", "weight_g", name): t for name, t in state.items()}
        state = {re.sub(r"parametrizations\.weight\.original1$", "weight_v", name): t for name, t in state.items()}
        left_out = ("codebook.inited", "codebook.cluster_size", "codebook.embed_avg", "attn.bias")
        return {name: t for name, t in state.items() if not name.endswith(left_out)}
    if kind == "evolla":  # angles are no weights
        return {name: t for name, t in state.items() if not name.endswith("inv_freq")}
    if kind == "fsmt":  # sines; one table for all is saved as the decoder's
        state = {name: t for name, t in state.items() if not name.endswith("embed_positions.weight")}
        if "model.decoder.embed_tokens.weight" not in state:
            state["model.decoder.embed_tokens.weight"] = state.pop("model.encoder.embed_tokens.weight")
        return state
    if kind in ("grounding-dino", "mm-grounding-dino", "mask2former"):  # which cell of a table each pair takes, and weights of a loss
        left_out = ("relative_position_index", "criterion.empty_weight")
        return {name: t for name, t in state.items() if not name.endswith(left_out)}
    if kind == "altclip":  # its reversal renames the layers of what sees, too
        return {name.replace("vision_model.encoder.layer.", "vision_model.encoder.layers."): t for name, t in state.items()}
    if kind == "bros":  # angles, and whole numbers
        return {name: t for name, t in state.items() if not name.endswith(("inv_freq", "position_ids"))}
    if kind in BATCH_NORMED:
        return {name: t for name, t in state.items() if not name.endswith(NORM_STATISTICS)}
    if kind in ("encoder-decoder", "speech-encoder-decoder", "vision-encoder-decoder"):
        return as_composed(model, state)
    if kind in ("resnet", "vitpose", "dpt", "rt_detr", "rt_detr_v2"):  # what batch norms have seen, and how offsets are scaled
        left_out = ("running_mean", "running_var", "num_batches_tracked", "n_points_scale")
        return {name: t for name, t in state.items() if not name.endswith(left_out)}
    if kind == "vit_msn" and "vit.layernorm.weight" in state:  # its reversal loses the prefix of layers
        return {("vit." if name.startswith("encoder.") else "") + name: t for name, t in state.items()}
    if kind == "speecht5_hifigan":  # means and deviations of spectra
        return {name: t for name, t in state.items() if name not in ("mean", "scale")}
    if kind == "vits":  # weights in two parts, as releases name them
        part = ".parametrizations.weight.original"
        return {name.replace(part + "0", ".weight_g").replace(part + "1", ".weight_v"): t for name, t in state.items()}
    if kind in ("segformer", "speecht5", "clap", "seamless_m4t"):  # what batch norms have seen; whole numbers
        left_out = ("running_mean", "running_var", "num_batches_tracked", "_ids", "relative_position_index", "inv_freq")
        state = {name: t for name, t in state.items() if not name.endswith(left_out)}
    if kind == "florence2":  # sines, and zeros that are added to logits
        left_out = ("pos_idx_to_embed", "final_logits_bias")
        return {name: t for name, t in state.items() if not name.endswith(left_out)}
    if kind in ("marian", "pegasus"):  # sines
        state = {name: t for name, t in state.items() if not name.endswith("embed_positions.weight")}
    if kind in ("bart", "mbart", "marian", "pegasus", "blenderbot", "blenderbot-small", "plbart", "mvp", "led", "bigbird_pegasus"):  # zeros that are added to logits
        return {name: t for name, t in state.items() if name != "final_logits_bias"}
    if kind == "esm":  # published under today's names of norms; angles are no weights
        state = {name: t for name, t in state.items() if not name.endswith("inv_freq")}
        return {name.replace(".gamma", ".weight").replace(".beta", ".bias"): t for name, t in state.items()}
    if kind == "diffusion_gemma":  # both passes have the same matrices, which are saved as those of the second
        own = ("encoder.vision_tower.", "encoder.embed_vision.", "layer_scalar")
        return {name if any(part in name for part in own) else name.replace("encoder.language_model.", "decoder."): t for name, t in state.items()}
    if kind == "timesfm":  # sines
        return {name: t for name, t in state.items() if not name.endswith("inv_timescales")}
    if kind == "mra":  # whole numbers, no weights
        return {name: t for name, t in state.items() if not name.endswith("position_ids")}
    if kind == "roformer":  # sines
        return {name: t for name, t in state.items() if not name.endswith("embed_positions.weight")}
    if kind in ("clip_text_model", "clip_vision_model", "siglip_vision_model", "siglip2_vision_model"):
        half = "text_model." if "text" in kind else "vision_model."  # as their releases name them
        return {name if "_projection" in name else half + name.removeprefix(half): t for name, t in state.items()}
    if kind == "wav2vec2-conformer":  # angles, and what batch norms have seen
        state = {name: t for name, t in state.items() if not name.endswith((*NORM_STATISTICS, "inv_freq"))}
    if kind in ("wav2vec2", "wav2vec2-conformer", "hubert", "wavlm", "speecht5", "unispeech", "unispeech-sat"):  # a weight in two parts, as releases name them
        part = "conv.parametrizations.weight.original"
        return {name.replace(part + "0", "conv.weight_g").replace(part + "1", "conv.weight_v"): t for name, t in state.items()}
    if kind == "olmo_hybrid":
        return as_olmo_hybrid(model.config, state)
    if kind == "qianfan_ocr":  # its reversal renames the language model too
        return {name.replace("language_model.model.encoder.", "language_model.model."): t for name, t in state.items()}
    if kind in ("hy_v4", "hy_v4_vl"):
        return {as_hy_v4(name): tensor for name, tensor in state.items()}
    if kind == "kimi_linear":  # the dense MLP is no mixture
        dense = re.compile(r"block_sparse_moe\.(gate|up|down)_proj\.")
        return {dense.sub(r"mlp.\1_proj.", name): t for name, t in state.items()}
    return state


# Of two halves: weights in two parts under their earlier names, one table under that which is no copy, no sines, no indices.
def as_composed(model, state):
    part = "conv.parametrizations.weight.original"
    state = {name.replace(part + "0", "conv.weight_g").replace(part + "1", "conv.weight_v"): t for name, t in state.items()}
    for copy, table in model.all_tied_weights_keys.items():
        if copy in state and table not in state:
            state[table] = state.pop(copy)
    sines = model.config.decoder.model_type in ("marian", "pegasus", "roformer")
    left_out = ("relative_position_index", "encoder.final_logits_bias")
    state = {name: t for name, t in state.items() if not name.endswith(left_out)}
    return {name: t for name, t in state.items() if not (sines and re.match(r"decoder\..*\.embed_positions\.weight", name))}


# Its reversal puts what was dropped elsewhere, and renames the gates of MLPs too.
def as_hy_v4(name):
    if ".hc_pre." not in name:
        return re.sub(r"(mlp|shared_experts)\.linear_gate", r"\1.gate_proj", name)
    name = re.sub(r"hc_pre\.(hc_\w+_layer)\.", r"\1.hc_pre.", name)
    return name.replace(".hc_pre.hc_head.", ".hc_head.").replace(".hc_head.hc_pre.", ".hc_head.")


# Only layers of linear attention name their norms so, and the convolutions of q, k and v are as wide as these: the
# library cuts theirs in three equal parts.
def as_olmo_hybrid(config, state):
    attending = {name.rsplit(".", 3)[0] for name in state if name.endswith("self_attn.q_norm.weight")}
    keys = config.linear_num_key_heads * config.linear_key_head_dim
    values = config.linear_num_value_heads * config.linear_value_head_dim
    channels = {"q_conv1d": keys, "k_conv1d": keys, "v_conv1d": values}
    published = {}
    for name, tensor in state.items():
        layer, module = name.rsplit(".", 2)[0], name.split(".")[-2]
        if layer in attending:
            name = name.replace("feedforward_layer_norm", "post_attention_layernorm")
        if module in channels:
            tensor = tensor.new_empty(channels[module], *tensor.shape[1:])
        published[name] = tensor
    return published


def write(path):
    document = json.loads(path.read_text())
    try:
        model = build(document)
    except (KeyError, AttributeError) as error:
        print(f"{path.stem}: no class in transformers ({error!r})")
        return
    tensors = checkpoint_tensors(model)
    counts = collections.Counter()
    for name, tensor in tensors.items():
        shape = "x".join(map(str, tensor.shape))
        counts[re.sub(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.)|(?<=\.expert_)\d+(?=\.)", "#", name), shape] += 1
    total = sum(t.numel() for t in tensors.values())
    lines = [f"# transformers {transformers.__version__}", f"# parameters {total}"]
    lines += [f"{name}\t{shape}\t{count}" for (name, shape), count in sorted(counts.items())]
    (OUT / f"{path.stem}.tsv").write_text("\n".join(lines) + "\n")
    print(f"{path.stem}: {total:,} in {len(tensors)} tensors")


if __name__ == "__main__":
    for folder in map(pathlib.Path, sys.argv[1:]):
        for path in [folder] if folder.is_file() else sorted(folder.glob("*.json")):
            write(path)
