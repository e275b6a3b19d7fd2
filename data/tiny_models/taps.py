"""Named intermediates of a forward pass, taken with hooks. `data/README.md` says what each name means."""

import sys
from contextlib import contextmanager

import torch

# Submodules of a decoder layer -> the tap that is their output. Families that call a thing by the same name mean
# different things by it: what follows attention and precedes the sum (Gemma, OLMo-2) is a post-norm.
PRE_NORM = {
    "input_layernorm": "attn_norm", "self_attn": "attn_out", "post_attention_layernorm": "mlp_norm", "mlp": "mlp_out",
}
SANDWICH = {
    "input_layernorm": "attn_norm", "self_attn": "attn_out", "post_attention_layernorm": "attn_post_norm",
    "pre_feedforward_layernorm": "mlp_norm", "mlp": "mlp_out", "post_feedforward_layernorm": "mlp_post_norm",
}
POST_NORM = {
    "self_attn": "attn_out", "post_attention_layernorm": "attn_post_norm",
    "mlp": "mlp_out", "post_feedforward_layernorm": "mlp_post_norm",
}
GPT2 = {"ln_1": "attn_norm", "attn": "attn_out", "ln_2": "mlp_norm", "mlp": "mlp_out"}
FINAL_NORMS = ("norm", "norm_f", "ln_f", "embedding_norm", "final_layernorm")
RECURRENT = ("linear_attn", "mamba", "conv")  # in the place of attention
LFM2 = {"operator_norm": "attn_norm", "self_attn": "attn_out", "ffn_norm": "mlp_norm", "feed_forward": "mlp_out"}
BAMBA = {
    "input_layernorm": "attn_norm", "self_attn": "attn_out", "pre_ff_layernorm": "mlp_norm", "feed_forward": "mlp_out",
}
MAMBA = {"norm": "attn_norm", "mixer": "attn_out"}
LAYOUT = {"jamba": BAMBA, "lfm2_moe": LFM2, "mamba": MAMBA, "mamba2": MAMBA, "lfm2": LFM2, "bamba": BAMBA, "gemma2": SANDWICH, "gemma3_text": SANDWICH, "olmo2": POST_NORM, "gpt2": GPT2}


def _first(output):
    return output[0] if isinstance(output, tuple) else output


@contextmanager
def recorded(model):
    """Yields a dictionary that a forward pass of one sequence fills: tap -> tensor, the batch dimension dropped."""
    taps, handles = {}, []
    base = model.base_model
    blocks = base.h if hasattr(base, "h") else base.layers

    def keep(name, module, pick=_first):
        def hook(_module, _inputs, output):
            value = pick(output)
            taps[name] = value[0] if value.dim() >= 3 else value
        handles.append(module.register_forward_hook(hook))

    def keep_router(prefix, module):
        def hook(_module, _inputs, output):
            logits, weights, chosen = output
            order = chosen.argsort(dim=-1)  # the routers promise no order among the chosen
            taps[f"{prefix}.router_logits"] = logits
            taps[f"{prefix}.router_choice"] = chosen.gather(1, order)
            taps[f"{prefix}.router_weights"] = weights.gather(1, order)
        handles.append(module.register_forward_hook(hook))

    def keep_keys(name, module):
        """The keys that an indexer chose, in their order; -1 behind those that stand in the query's future."""
        def hook(_module, _inputs, output):
            chosen = output[0].long()
            future = chosen > torch.arange(chosen.shape[0]).unsqueeze(1)
            ordered = chosen.masked_fill(future, chosen.shape[0]).sort(dim=-1).values
            taps[name] = ordered.masked_fill(ordered == chosen.shape[0], -1)
        handles.append(module.register_forward_hook(hook))

    def keep_scan(prefix, module):
        if hasattr(module, "norm"):  # its input is what the scan gives; heads are rows there
            def hook(_module, inputs, output):
                tokens = taps["embed"].shape[0]
                taps[f"{prefix}.scan"], taps[f"{prefix}.scan_norm"] = inputs[0].reshape(tokens, -1), output.reshape(tokens, -1)
            handles.append(module.norm.register_forward_hook(hook))

    def keep_entries(name, module):
        """Likewise of DeepSeek-V4's entries, where -1 stands for those in the future already."""
        def hook(_module, _inputs, output):
            last = torch.iinfo(torch.int64).max
            ordered = output[0].masked_fill(output[0] < 0, last).sort(dim=-1).values
            taps[name] = ordered.masked_fill(ordered == last, -1)
        handles.append(module.register_forward_hook(hook))

    def keep_input(name, module):
        def hook(_module, inputs, kwargs):
            value = inputs[0] if inputs else kwargs["hidden_states"]
            taps[name] = value[0]
        handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    layout = LAYOUT.get(model.config.model_type, PRE_NORM)
    for index, block in enumerate(blocks):
        prefix = f"layers.{index}"
        if hasattr(block, "mlps"):  # LongCat attends twice a layer
            for half in (0, 1):
                own = f"{prefix}.half.{half}"
                keep(f"{own}.attn_norm", block.input_layernorm[half])
                keep(f"{own}.attn_out", block.self_attn[half])
                keep(f"{own}.latent", block.self_attn[half].kv_a_layernorm)
                keep_input(f"{own}.attn_residual", block.post_attention_layernorm[half])
                keep(f"{own}.mlp_norm", block.post_attention_layernorm[half])
                keep(f"{own}.mlp_out", block.mlps[half])
            if index == 0:
                keep_input("embed", block)
            keep(f"{prefix}.mlp_out", block.mlp)
            keep_router(prefix, block.mlp.router)
            keep(f"{prefix}.out", block)
            continue
        mlp = next((getattr(block, child) for child, tap in layout.items() if tap == "mlp_out"), None)
        if index == 0:
            keep_input("embed", block)
        for child, tap in layout.items():
            if child == "self_attn" and not hasattr(block, child):
                child = next(name for name in RECURRENT if hasattr(block, name))
                keep_scan(prefix, getattr(block, child))
            if tap != "mlp_out" or not hasattr(mlp, "post_mlp_layernorm"):
                keep(f"{prefix}.{tap}", getattr(block, child))
            if child == "mixer":
                keep_scan(prefix, block.mixer)
        if hasattr(block, "ffn_hc"):  # DeepSeek-V4: streams around each block
            keep_input(f"{prefix}.attn_in", block.input_layernorm)
            keep_input(f"{prefix}.mlp_in", block.post_attention_layernorm)
            keep_input(f"{prefix}.attn_residual", block.ffn_hc)
            if hasattr(block.self_attn.compressor, "indexer"):
                keep_entries(f"{prefix}.index_keys", block.self_attn.compressor.indexer)
        elif layout is not MAMBA:
            before_mlp = "mlp" if layout is POST_NORM else next(c for c, t in layout.items() if t == "mlp_norm")
            keep_input(f"{prefix}.attn_residual", getattr(block, before_mlp))
        if hasattr(block, "self_attn") and hasattr(block.self_attn, "kv_a_layernorm"):
            keep(f"{prefix}.latent", block.self_attn.kv_a_layernorm)
        if getattr(getattr(block, "self_attn", None), "indexer", None) is not None:
            keep_keys(f"{prefix}.index_keys", block.self_attn.indexer)
        if hasattr(mlp, "post_mlp_layernorm"):
            keep(f"{prefix}.mlp_post_norm", mlp.post_mlp_layernorm)
            keep_input(f"{prefix}.mlp_out", mlp.post_mlp_layernorm)
        keep(f"{prefix}.out", block)
        for child in ("gate", "router"):
            if hasattr(mlp, child):
                keep_router(prefix, getattr(mlp, child))
    keep("final_norm", next(getattr(base, name) for name in FINAL_NORMS if hasattr(base, name)))

    source = sys.modules[type(model).__module__]
    plain = getattr(source, "eager_attention_forward", None)  # None: it attends nowhere

    def attention(module, query, key, value, *args, **kwargs):
        result = plain(module, query, key, value, *args, **kwargs)
        prefix = f"layers.{module.layer_idx}"
        if hasattr(module, "mla_scale_q_lora"):
            prefix = f"layers.{module.layer_idx // 2}.half.{module.layer_idx % 2}"
        kept = {"q": query, "k": key, "v": value}
        if hasattr(module, "kv_a_layernorm"):
            del kept["v"]  # MLA's values come of the latent, which is kept
        if hasattr(module, "o_a_proj"):
            del kept["k"], kept["v"]  # rows of tokens and of entries
        for name, tensor in kept.items():
            taps[f"{prefix}.{name}"] = tensor[0].transpose(0, 1)  # [tokens, heads, head_dim]
        taps[f"{prefix}.attn_context"] = result[0][0]  # [tokens, heads, v_head_dim]
        return result

    source.eager_attention_forward = attention
    try:
        yield taps
    finally:
        source.eager_attention_forward = plain
        for handle in handles:
            handle.remove()


def as_stored(taps):
    """Integers as I32, the rest as F32: 6e-8 of rounding, far below what is asked of the taps."""
    return {
        f"tap.{name}": (value.to(torch.int32) if value.dtype == torch.int64 else value.to(torch.float)).contiguous().clone()
        for name, value in taps.items()
    }
