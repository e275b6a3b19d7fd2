"""DeepSeek-V4 in the names that are published, which `transformers` reads and does not write."""

import torch

LENGTH = 140  # of the long prompt: a window of 128 tokens is whole


def _layer(config, ratio, hashed):
    hidden, heads, dim = config["hidden_size"], config["num_attention_heads"], config["head_dim"]
    q, groups, rank, streams = config["q_lora_rank"], config["o_groups"], config["o_lora_rank"], config["hc_mult"]
    experts, width, coefficients = config["n_routed_experts"], config["moe_intermediate_size"], (2 + streams) * streams
    shapes = {"attn_norm.weight": (hidden,), "ffn_norm.weight": (hidden,)}
    for name in ("hc_attn", "hc_ffn"):
        shapes |= {f"{name}_fn": (coefficients, streams * hidden), f"{name}_base": (coefficients,), f"{name}_scale": (3,)}
    shapes |= {
        "attn.wq_a.weight": (q, hidden), "attn.q_norm.weight": (q,), "attn.wq_b.weight": (heads * dim, q),
        "attn.wkv.weight": (dim, hidden), "attn.kv_norm.weight": (dim,), "attn.attn_sink": (heads,),
        "attn.wo_a.weight": (groups * rank, heads * dim // groups), "attn.wo_b.weight": (hidden, groups * rank),
    }

    def compressor(path, size):
        wide = 2 * size if ratio == 4 else size
        return {f"{path}.wkv.weight": (wide, hidden), f"{path}.wgate.weight": (wide, hidden), f"{path}.ape": (ratio, wide),
                f"{path}.norm.weight": (size,)}

    if ratio:
        shapes |= compressor("attn.compressor", dim)
    if ratio == 4:
        own, size = config["index_n_heads"], config["index_head_dim"]
        shapes |= {"attn.indexer.wq_b.weight": (own * size, q), "attn.indexer.weights_proj.weight": (own, hidden)}
        shapes |= compressor("attn.indexer.compressor", size)
    shapes["ffn.gate.weight"] = (experts, hidden)
    shapes |= {"ffn.gate.tid2eid": (config["vocab_size"], config["num_experts_per_tok"])} if hashed else {"ffn.gate.bias": (experts,)}
    for expert in [*(f"experts.{e}" for e in range(experts)), "shared_experts"]:
        shapes |= {f"ffn.{expert}.w1.weight": (width, hidden), f"ffn.{expert}.w3.weight": (width, hidden),
                   f"ffn.{expert}.w2.weight": (hidden, width)}
    return shapes


def shapes(config):
    hidden, streams = config["hidden_size"], config["hc_mult"]
    found = {"embed.weight": (config["vocab_size"], hidden), "head.weight": (config["vocab_size"], hidden),
             "norm.weight": (hidden,), "hc_head_fn": (streams, streams * hidden), "hc_head_base": (streams,),
             "hc_head_scale": (1,)}
    for index in range(config["num_hidden_layers"]):
        layer = _layer(config, config["compress_ratios"][index], index < config["num_hash_layers"])
        found |= {f"layers.{index}.{name}": shape for name, shape in layer.items()}
    return found


def table(shape, experts, generator):
    """Different experts for each token."""
    return torch.stack([torch.randperm(experts, generator=generator)[: shape[1]] for _ in range(shape[0])])


def keeps_f32(name):
    return name.startswith("hc_") or ".hc_" in name or name.endswith((".ape", ".attn_sink", ".gate.bias"))
