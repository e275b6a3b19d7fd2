"""The tiny models as GGUF, the way llama.cpp's converter lays them out, by gguf-py: names by its own tables.

    q and k of the Llama family   rows of a head from halves to pairs
    experts                       stacked, one tensor a projection
    kv_b of latent attention      in two: keys turned [heads, kv rank, nope], values [heads, v, kv rank]
    gpt-oss's experts             MXFP4 blocks with the scale in front, element i beside i + 16, gate and up apart
    llama3 rope scaling           worked out, as a tensor of factors; longrope's two lists likewise
    vectors and routers in F32, matrices in F16 or BF16 as they are
"""

import json
import math
import re

import gguf
import numpy as np
import torch

from . import weights

ARCHITECTURES = {
    "llama": "llama", "mistral": "llama", "mixtral": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen3_moe": "qwen3moe",
    "phi3": "phi3", "olmo2": "olmo2", "gpt2": "gpt2", "minicpm3": "minicpm3", "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2", "gpt_oss": "gpt-oss",
}
MODELS = ["llama", "mixtral", "qwen2", "qwen3-moe", "phi3", "gpt2", "minicpm3", "deepseek-v2-lite", "deepseek-v3",
          "gpt-oss"]
MTP_NAMES = {
    "enorm.weight": "nextn.enorm.weight", "hnorm.weight": "nextn.hnorm.weight", "eh_proj.weight": "nextn.eh_proj.weight",
    "shared_head.norm.weight": "nextn.shared_head_norm.weight", "shared_head.head.weight": "nextn.shared_head_head.weight",
    "embed_tokens.weight": "nextn.embed_tokens.weight",
}


def _pairs_from_halves(weight, heads):
    """Rows of a head from (0 … d/2, d/2 … d) to pairs side by side: llama.cpp turns Llama's heads pair by pair."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).transpose(1, 2).reshape(rows, columns).contiguous()


def _stacked(tensors):
    """Experts' matrices on end, under the name without the number."""
    experts, rest = {}, {}
    for name, value in tensors.items():
        found = re.fullmatch(r"(.*experts)\.(\d+)\.(.*)", name)
        if found:
            experts.setdefault(f"{found[1]}.{found[3]}", {})[int(found[2])] = value
        else:
            rest[name] = value
    return rest | {name: torch.stack([parts[i] for i in range(len(parts))]) for name, parts in experts.items()}


def _converted(config, tensors):
    """(name as the tables know it, tensor)"""
    kind = config["model_type"]
    for name, value in _stacked(tensors).items():
        if kind in ("llama", "mistral", "mixtral") and re.search(r"(q|k)_proj\.weight$", name):
            heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
            yield name, _pairs_from_halves(value, heads)
        elif name.endswith("kv_b_proj.weight") and kind.startswith("deepseek"):
            heads, nope = config["num_attention_heads"], config["qk_nope_head_dim"]
            keys, values = value.view(heads, -1, value.shape[1]).split([nope, config["v_head_dim"]], dim=1)
            yield name.replace("kv_b_proj", "k_b_proj"), keys.transpose(1, 2).contiguous()
            yield name.replace("kv_b_proj", "v_b_proj"), values.contiguous()
        elif kind == "gpt2" and re.search(r"(c_attn|c_proj|c_fc)\.weight$", name):
            yield name, value.T.contiguous()
        else:
            yield name, value


def _mxfp4(blocks, scales):
    """[expert, rows, blocks × 17] of [expert, rows, blocks, 16] and [expert, rows, blocks]."""
    codes = torch.stack([blocks & 15, blocks >> 4], dim=-1).flatten(-2)
    halves = codes[..., :16] | codes[..., 16:] << 4
    return torch.cat([scales.unsqueeze(-1), halves], dim=-1).flatten(-2).contiguous().numpy()


def _add_gpt_oss_experts(writer, layer, tensors):
    prefix = f"model.layers.{layer}.mlp.experts"
    for name, rows in {"ffn_gate_exps": slice(0, None, 2), "ffn_up_exps": slice(1, None, 2), "ffn_down_exps": slice(None)}.items():
        source = f"{prefix}.{'down' if 'down' in name else 'gate_up'}_proj"
        raw = _mxfp4(tensors[f"{source}_blocks"][:, rows], tensors[f"{source}_scales"][:, rows])
        writer.add_tensor(f"blk.{layer}.{name}.weight", raw, raw_dtype=gguf.GGMLQuantizationType.MXFP4)
        writer.add_tensor(f"blk.{layer}.{name}.bias", tensors[f"{source}_bias"][:, rows].float().numpy().copy())


def _gguf_name(table, config, name):
    layers = config.get("num_hidden_layers", config.get("n_layer"))
    if name.startswith(f"model.layers.{layers}."):
        inner = name.removeprefix(f"model.layers.{layers}.")
        if inner in MTP_NAMES:
            return f"blk.{layers}.{MTP_NAMES[inner]}"
    if name.endswith("gate.e_score_correction_bias"):
        return re.sub(r"model\.layers\.(\d+)\..*", r"blk.\1.exp_probs_b.bias", name)
    found = table.get_name(f"{name}.weight" if name.endswith(".sinks") else name, try_suffixes=(".weight", ".bias"))
    assert found is not None, name
    return found


def _rope_factors(config):
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind == "llama3":
        dim = config["head_dim"]
        frequency = config["rope_theta"] ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        wavelength = 2 * math.pi / frequency
        low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
        turns = scaling["original_max_position_embeddings"] / wavelength
        kept = ((turns - low) / (high - low)).clamp(0, 1)
        yield "rope_freqs.weight", 1 / ((1 - kept) / scaling["factor"] + kept)
    if kind == "longrope":
        yield "rope_factors_long.weight", torch.tensor(scaling["long_factor"])
        yield "rope_factors_short.weight", torch.tensor(scaling["short_factor"])


def _add_sizes(writer, config):
    hidden = config.get("hidden_size", config.get("n_embd"))
    heads = config.get("num_attention_heads", config.get("n_head"))
    layers = config.get("num_hidden_layers", config.get("n_layer")) + config.get("num_nextn_predict_layers", 0)
    writer.add_vocab_size(config["vocab_size"])
    writer.add_context_length(config.get("max_position_embeddings", config.get("n_positions")))
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(config.get("intermediate_size", 4 * hidden))
    writer.add_head_count(heads)
    if "rms_norm_eps" in config:
        latent = config["model_type"].startswith("deepseek")  # whose one shared latent llama.cpp attends to
        writer.add_head_count_kv(1 if latent else config["num_key_value_heads"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(float(config["rope_theta"]))
    else:
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])


def _add_heads(writer, config):
    if "kv_lora_rank" not in config:
        head_dim = config.get("head_dim", config.get("hidden_size", 0) // config.get("num_attention_heads", 1))
        if head_dim:
            writer.add_key_length(head_dim)
            writer.add_value_length(head_dim)
            writer.add_rope_dimension_count(int(head_dim * config.get("partial_rotary_factor", 1)))
        return
    rope, nope = config["qk_rope_head_dim"], config["qk_nope_head_dim"]
    writer.add_rope_dimension_count(rope)
    writer.add_kv_lora_rank(config["kv_lora_rank"])
    if config["q_lora_rank"]:
        writer.add_q_lora_rank(config["q_lora_rank"])
    if config["model_type"] == "minicpm3":
        writer.add_key_length(nope + rope)
        writer.add_value_length(config["v_head_dim"])
        return
    writer.add_key_length(config["kv_lora_rank"] + rope)
    writer.add_value_length(config["kv_lora_rank"])
    writer.add_key_length_mla(nope + rope)
    writer.add_value_length_mla(config["v_head_dim"])


def _add_scaling(writer, config):
    scaling = config.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type"))
    original = scaling.get("original_max_position_embeddings", config.get("original_max_position_embeddings"))
    if kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(original)
        if "mscale_all_dim" in scaling:
            writer.add_rope_scaling_yarn_log_mul(0.1 * scaling["mscale_all_dim"])
    if kind == "longrope":
        factor = config["max_position_embeddings"] / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(factor) / math.log(original)))


def _add_experts(writer, config):
    count = config.get("num_experts", config.get("num_local_experts", config.get("n_routed_experts")))
    if count is None:
        return
    writer.add_expert_count(count)
    writer.add_expert_used_count(config["num_experts_per_tok"])
    if "moe_intermediate_size" in config or config["model_type"] == "gpt_oss":
        writer.add_expert_feed_forward_length(config.get("moe_intermediate_size", config["intermediate_size"]))
    if not config["model_type"].startswith("deepseek"):
        return
    sigmoid = config["scoring_func"] == "sigmoid"
    writer.add_leading_dense_block_count(config["first_k_dense_replace"])
    writer.add_expert_shared_count(config["n_shared_experts"])
    writer.add_expert_weights_scale(config["routed_scaling_factor"])
    writer.add_expert_weights_norm(config["norm_topk_prob"])
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID if sigmoid else gguf.ExpertGatingFuncType.SOFTMAX)
    writer.add_expert_group_count(config["n_group"])
    writer.add_expert_group_used_count(config["topk_group"])
    if config.get("num_nextn_predict_layers"):
        writer.add_nextn_predict_layers(config["num_nextn_predict_layers"])


def _add_tensor(writer, name, value):
    if value.dim() == 1 or "ffn_gate_inp" in name or value.dtype == torch.float32:
        writer.add_tensor(name, value.float().numpy().copy())
        return
    raw = value.contiguous().view(torch.uint16).numpy().copy()
    writer.add_tensor(name, raw.view(np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)


def make(folder):
    """folder/gguf/model.gguf, of the weights in folder."""
    config = json.loads((folder / "config.json").read_text())
    architecture = ARCHITECTURES[config["model_type"]]
    layers = config.get("num_hidden_layers", config.get("n_layer")) + config.get("num_nextn_predict_layers", 0)
    enum = next(key for key, value in gguf.MODEL_ARCH_NAMES.items() if value == architecture)
    table = gguf.get_tensor_name_map(enum, layers)
    (folder / "gguf").mkdir(exist_ok=True)
    writer = gguf.GGUFWriter(folder / "gguf" / "model.gguf", architecture)
    for add in (_add_sizes, _add_heads, _add_scaling, _add_experts):
        add(writer, config)
    for name, value in _rope_factors(config):
        writer.add_tensor(name, value.float().numpy())
    tensors = weights.read(folder / "model.safetensors")
    if architecture == "gpt-oss":
        writer.add_sliding_window(config["sliding_window"])
        for layer in range(layers):
            _add_gpt_oss_experts(writer, layer, tensors)
        tensors = {name: value for name, value in tensors.items() if ".mlp.experts." not in name}
    for name, value in _converted(config, tensors):
        _add_tensor(writer, _gguf_name(table, config, name), value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
