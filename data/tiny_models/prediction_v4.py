"""The layer for multi-token prediction of DeepSeek-V4, which `transformers` leaves out: the last layer of a longer model of its
class, and around it what vLLM 0.32 has (models/deepseek_v4): of each stream the sum of two projections, of the next token's
embedding and of what the streams were behind the last layer, both normed; behind it a mix of the streams of its own."""

import random
import tempfile

import torch
from torch import nn

from . import deepseek_v4, kin
from .configs import CONFIGS
from .precision import everything_double
from .prediction_kin import load, watched


def config_of(seed):
    draw = random.Random(seed)
    heads = draw.choice([2, 4])
    return {key: value for key, value in CONFIGS["deepseek-v4"].items() if key != "torch_dtype"} | {
        "vocab_size": draw.randint(40, 70), "hidden_size": draw.choice([20, 36]), "num_attention_heads": heads, "o_groups": 2,
        "hc_mult": draw.choice([2, 3]), "num_hidden_layers": 2, "compress_ratios": [draw.choice([0, 4]), 4, 0], "num_hash_layers": 0,
        "sliding_window": draw.choice([3, 5]), "swiglu_limit": draw.choice([0.8, 10.0]), "rms_norm_eps": draw.choice([1e-6, 1e-3]),
        "num_nextn_predict_layers": 1,
    }


class Module(nn.Module):
    def __init__(self, layer, base, config):
        super().__init__()
        width, streams = config["hidden_size"], config["hc_mult"]
        weight = lambda name, *shape: kin.weight(f"mtp.0.{name}", shape).double()  # noqa: E731
        self.layer, self.mix = layer, type(base.hc_head)(base.config)
        self.mix.hc_fn.data = weight("hc_head_fn", streams, streams * width)
        self.mix.hc_base.data, self.mix.hc_scale.data = weight("hc_head_base", streams), weight("hc_head_scale", 1)
        for name in ("enorm", "hnorm", "norm"):
            norm = type(base.norm)(width, eps=config["rms_norm_eps"])
            norm.weight.data = weight(f"{name}.weight", width)
            setattr(self, name, norm)
        self.embedding, self.hidden = weight("e_proj.weight", width, width), weight("h_proj.weight", width, width)


@torch.no_grad()
def said_by(model, module, config, tokens):
    base, batch, seen = model.model, torch.tensor([tokens]), {}
    handle = base.hc_head.register_forward_pre_hook(lambda _module, inputs: seen.update(streams=inputs[0]))
    base(batch, use_cache=False)
    handle.remove()
    given, token = seen["streams"][:, :-1], base.embed_tokens(batch[:, 1:])
    count = given.shape[1]
    x = nn.functional.linear(module.hnorm(given), module.hidden)
    x = x + nn.functional.linear(module.enorm(token), module.embedding).unsqueeze(-2)
    taken = {"mtp.0.projected": x.flatten()}
    far = torch.arange(count)[:, None] - torch.arange(count)
    mask = torch.where((far >= 0) & (far < config["sliding_window"]), 0.0, float("-inf"))[None, None]
    positions = torch.arange(count).unsqueeze(0)
    angles = {kind: base.rotary_emb(token, position_ids=positions, layer_type=kind) for kind in ("main", "compress")}
    handles = watched(module.layer, taken, 0)
    x = module.layer(
        x, attention_mask=mask, position_ids=positions, position_embeddings=angles, input_ids=batch[:, 1:], past_key_values=None
    )
    for handle in handles:
        handle.remove()
    normed = module.norm(module.mix(x))
    taken |= {"mtp.0.out": x.flatten(), "mtp.0.final_norm": normed.flatten()}
    return model.lm_head(normed)[0], taken


def truth(_family, seed, count=11):
    """(config, tokens, logits of the module, taps), in double"""
    config = config_of(seed)
    draw = random.Random(seed)
    tokens = [draw.randrange(2, config["vocab_size"]) for _ in range(count)]
    layers = config["num_hidden_layers"]
    long = {**config, "num_hidden_layers": layers + 1, "num_nextn_predict_layers": 0}
    short = {**config, "compress_ratios": config["compress_ratios"][:layers], "num_nextn_predict_layers": 0}
    shapes = deepseek_v4.shapes(long)
    tensors = {name: kin.weight(name.replace(f"layers.{layers}.", "mtp.0."), shape) for name, shape in shapes.items()}
    plain = {name: tensor for name, tensor in tensors.items() if f"layers.{layers}." not in name}
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other, everything_double():
        model, behind = load(one, short, plain), load(other, long, tensors)
        module = Module(behind.model.layers[layers], model.model, config)
        said, taken = said_by(model, module, config, tokens)
    return config, tokens, [said], taken
