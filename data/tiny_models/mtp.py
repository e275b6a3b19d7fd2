"""The multi-token prediction layer of DeepSeek-V3, which `transformers` leaves out, on its decoder layer.

What stands around that layer is written after vLLM's description (deepseek_mtp.py): embedding first in the concatenation,
the main model's hidden state after its final norm. vLLM also sets the embedding to zero at position 0.
"""

import copy

import torch
from torch import nn

from tinylm_training.model import MtpLayer


def shapes(config):
    """The tensors around the MTP layer's decoder layer, in the checkpoint's names."""
    hidden, vocab = config["hidden_size"], config["vocab_size"]
    copies = {} if config["model_type"] == "glm_moe_dsa" else {
        "shared_head.head.weight": (vocab, hidden), "embed_tokens.weight": (vocab, hidden)}
    return {
        **copies, "enorm.weight": (hidden,), "hnorm.weight": (hidden,), "eh_proj.weight": (hidden, 2 * hidden),
        "shared_head.norm.weight": (hidden,),
    }


class KinLayer(nn.Module):
    """The same around one more decoder layer of a class that has an indexer (DeepSeek-V3.2, GLM-5)."""

    def __init__(self, model):
        super().__init__()
        block, config = model.model.layers[-1], copy.deepcopy(model.config)
        config.mlp_layer_types = [*config.mlp_layer_types, "sparse"]
        if getattr(config, "indexer_types", None) is not None:
            config.indexer_types = [*config.indexer_types, "full"]
        config._attn_implementation, config._experts_implementation = "eager", "eager"
        self.layer = type(block)(config, config.num_hidden_layers)
        norm, hidden = type(block.input_layernorm), config.hidden_size
        self.enorm, self.hnorm, self.norm = (norm(hidden, config.rms_norm_eps) for _ in range(3))
        self.eh_proj = nn.Linear(2 * hidden, hidden, bias=False)


def load(model, tensors, prefix, dtype):
    """The layer with the checkpoint's weights; its decoder layer takes the fused expert tensors `transformers` has."""
    own = model.config.model_type == "deepseek_v3"
    layer = (MtpLayer(model.config) if own else KinLayer(model)).to(dtype)
    layer.layer.self_attn.config._attn_implementation = "eager"
    state = {}
    for name in ("enorm", "hnorm", "eh_proj"):
        state[f"{name}.weight"] = tensors[f"{prefix}.{name}.weight"]
    state["norm.weight"] = tensors[f"{prefix}.shared_head.norm.weight"]
    experts = f"{prefix}.mlp.experts."
    count = model.config.n_routed_experts
    part = lambda index, name: tensors[f"{experts}{index}.{name}.weight"]  # noqa: E731
    state["layer.mlp.experts.gate_up_proj"] = torch.stack(
        [torch.cat([part(i, "gate_proj"), part(i, "up_proj")]) for i in range(count)])
    state["layer.mlp.experts.down_proj"] = torch.stack([part(i, "down_proj") for i in range(count)])
    for name, value in tensors.items():
        inner = name.removeprefix(f"{prefix}.")
        if name.startswith(f"{prefix}.") and inner.split(".")[0] in ("self_attn", "mlp", "input_layernorm",
                                                                      "post_attention_layernorm"):
            if not name.startswith(experts):
                state[f"layer.{inner}"] = value
    missing, unexpected = layer.load_state_dict({n: v.to(dtype) for n, v in state.items()}, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    return layer


@torch.no_grad()
def logits(model, layer, tokens, zero_first):
    """For every position i but the last, the logits of t_{i+2}."""
    hidden = model.model(tokens, use_cache=False).last_hidden_state[:, :-1]
    embedding = model.model.embed_tokens(tokens[:, 1:])
    if zero_first:
        embedding[:, 0] = 0
    count = hidden.shape[1]
    positions = torch.arange(count).unsqueeze(0)
    mask = torch.full((count, count), float("-inf"), dtype=hidden.dtype).triu(1)[None, None]
    joined = torch.cat([layer.enorm(embedding), layer.hnorm(hidden)], dim=-1)
    out = layer.layer(layer.eh_proj(joined), attention_mask=mask,
                      position_embeddings=model.model.rotary_emb(embedding, positions))
    out = out[0] if isinstance(out, tuple) else out
    return model.lm_head(layer.norm(out))[0]
