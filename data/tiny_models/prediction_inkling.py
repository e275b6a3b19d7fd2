"""Layers for multi-token prediction of Inkling, as vLLM 0.32 has them (models/inkling/nvidia/mtp.py): layers of a longer model of
transformers' class, in the names of the published weights; hidden states first, embeddings normed as the model's are and once more, one norm
behind all layers or none, no temperature where all is seen."""

import random
import re
import tempfile

import torch
from torch import nn

from . import kin
from .precision import everything_double
from .prediction_kin import drawn, load, longer, series

PUBLISHED = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "mlp_norm", "self_attn.q_proj": "attn.wq_du", "self_attn.k_proj": "attn.wk_dv",
    "self_attn.v_proj": "attn.wv_dv", "self_attn.r_proj": "attn.wr_du", "self_attn.o_proj": "attn.wo_ud", "self_attn.": "attn.",
    "sconv.conv1d": "sconv", "mlp.down_proj": "mlp.w2_md",
}


class Around:
    """What series() of prediction_kin.py asks."""

    before_norms = False


def config_of(seed):
    """The first without a norm behind its layers; the last says it as published, in an object of its own."""
    config = drawn("inkling_text", seed)
    number = int(seed[-1])
    config.setdefault("mlp_layer_types", ["sparse"] * config["num_hidden_layers"])
    config["sliding_window"] = config["sliding_window_size"]
    narrow, chained = [[], [0], [1]][number], number != 0
    kinds = ["hybrid_sliding" if i in narrow else "hybrid" for i in range(2)]
    long = longer({**config, "num_nextn_predict_layers": 2}, layer_types="", mlp_layer_types="dense")
    long["layer_types"][-2:] = kinds
    long.pop("log_scaling_n_floor", None)
    if number == 2:
        said = {"mtp_config": {"num_nextn_predict_layers": 2, "chain_hidden_post_norm": chained, "local_layer_ids": narrow}}
    else:
        said = {"num_mtp_layers": 2, "chain_hidden_post_norm": chained, "mtp_local_layer_ids": narrow}
    config.pop("sliding_window")
    return config, said, long, chained


def published(name):
    return kin.renamed(name, PUBLISHED)


def layer_weights(layer, n):
    """The class's state, of weights that are made under their published names."""
    at, made = f"model.mtp.layers.{n}.transformer_block.", {}
    for name, tensor in layer.state_dict().items():
        if re.search(r"mlp\.(gate|up)_proj", name):
            rows, columns = tensor.shape
            both = kin.weight(f"{at}mlp.w13_dn.weight", (2 * rows, columns))
            made[name] = both[0::2] if "gate_proj" in name else both[1::2]
        else:
            made[name] = kin.weight(at + published(name), tuple(tensor.shape))
    return {name: tensor.double() for name, tensor in made.items()}


class Module(nn.Module):
    def __init__(self, layer, base, n, chained):
        super().__init__()
        width, epsilon = base.norm.weight.shape[0], base.config.rms_norm_eps
        norm = lambda name: self.norm_of(base, name, width, epsilon)  # noqa: E731
        layer.load_state_dict(layer_weights(layer, n))
        self.layer, at = layer, f"model.mtp.layers.{n}."
        self.embedding, self.hidden = norm(f"{at}embed_norm"), norm(f"{at}hidden_norm")
        self.final = norm("model.mtp.chain_norm") if chained else nn.Identity()
        self.projection = kin.weight(f"{at}input_proj.weight", (width, 2 * width)).double()

    @staticmethod
    def norm_of(base, name, width, epsilon):
        norm = type(base.norm)(width, eps=epsilon)
        norm.weight = nn.Parameter(kin.weight(f"{name}.weight", (width,)).double())
        return norm

    def enter(self, _around, token, given):
        return nn.functional.linear(torch.cat([self.hidden(given), self.embedding(token)], dim=-1), self.projection)


def truth(family, seed, count=9):
    """(config, tokens, logits of each module, taps), in double"""
    config, said, long, chained = config_of(seed)
    draw = random.Random(seed)
    tokens = [draw.randrange(2, config["vocab_size"]) for _ in range(count)]
    tensors, behind = kin.checkpoint(config), kin.checkpoint(long)
    first, words = config["num_hidden_layers"], kin.words_of(config)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other, everything_double():
        model, longer_one = load(one, config, tensors), load(other, long, behind)
        modules = []
        for n in range(2):
            module = Module(longer_one.model.layers[first + n], model.model, n, chained)
            module.kind = "sliding_attention" if long["layer_types"][first + n] == "hybrid_sliding" else None
            module.head = lambda x: model.lm_head(x / config["logits_mup_width_multiplier"])[..., :words]
            module.table = model.model.get_input_embeddings()
            modules.append(module)
        text = {**config, "sliding_window": config["sliding_window_size"]}
        made, taps = series(model, modules, Around, text, tokens)
    return config | said, tokens, made, taps
