"""Layers for multi-token prediction of families told by a table, and of LongCat-Flash. `transformers` leaves them out; here the
last layers of a longer model of its classes are theirs, and around them stands what vLLM 0.32 has (glm4_moe_mtp.py, mimo_mtp.py,
mimo_v2_mtp.py, step3p5_mtp.py, bailing_moe_mtp.py, hy_v3_mtp.py, exaone_moe_mtp.py, longcat_flash_mtp.py): the embedding of the
next token first, what was given second, both normed. Of ERNIE 4.5 the last norm is the model's, as in ERNIEKit and FastDeploy.
"""

import inspect
import json
import random
import re
import tempfile
from dataclasses import dataclass, field

import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoModelForImageTextToText

from . import kin
from .configs import CONFIGS
from .precision import everything_double


@dataclass
class Around:
    """Names of what stands around layers, {at} in place of a layer's number and {n} of a module's; and what differs."""

    at: str = "model.layers.{at}."
    embedding: str = "enorm"
    hidden: str = "hnorm"
    projection: str = "eh_proj"
    final: str = "final_layernorm"
    layer: str = ""  # between `at` and a layer's own names
    renamed: dict = field(default_factory=dict)
    head: str = ""  # of its own
    table: str = ""  # of embeddings, of its own
    computed: int = 2  # of what is stored
    hidden_first: bool = False
    before_norms: bool = False
    norm_of_model: bool = False


def stored(config):
    return kin.text_of(config)["num_nextn_predict_layers"]


def with_text(config, **more):
    return {**config, "text_config": {**config["text_config"], **more}} if "text_config" in config else {**config, **more}


def longer(config, **lists):
    """The same with the layers of prediction behind the others; `lists`: what their entries are."""
    text, extra = kin.text_of(config), stored(config)
    made = {"num_hidden_layers": text["num_hidden_layers"] + extra, "num_nextn_predict_layers": 0}
    for key, entry in lists.items():
        if isinstance(text.get(key), list):
            made[key] = [*text[key][: text["num_hidden_layers"]], *([entry] * extra)]
    return with_text(config, **made)


# Configs, each with its longer one.


def drawn(family, seed, **more):
    kin.draw.seed(seed)
    return with_text(kin.config_of(family), **more)


def glm4_moe(seed):
    config = drawn("glm4_moe", seed, num_nextn_predict_layers=2)
    config["first_k_dense_replace"] = min(config.get("first_k_dense_replace", 1), config["num_hidden_layers"] - 1)
    return config, longer(config)


def ling2(seed):
    config = drawn("bailing_moe_v2", seed, num_nextn_predict_layers=2)
    config["first_k_dense_replace"] = min(config["first_k_dense_replace"], config["num_hidden_layers"] - 1)
    return config, longer(config)


def hy_v3(seed):
    config = drawn("hy_v3", seed, num_nextn_predict_layers=2)
    return config, longer(config, mlp_layer_types="sparse")


def mimo(seed):
    config = drawn("mimo", seed, num_nextn_predict_layers=1)
    return config, longer(config)


def mimo_v2(seed):
    config = drawn("mimo_v2_flash", seed, num_nextn_predict_layers=3)
    return config, longer(config, layer_types="sliding_attention", mlp_layer_types="dense")


def ernie(seed):
    config = drawn("ernie4_5_moe", seed, num_nextn_predict_layers=1)
    return config, {**longer(config), "moe_layer_end_index": config["num_hidden_layers"] - 1}


def exaone(seed):
    config = drawn("exaone_moe", seed, num_nextn_predict_layers=1)
    kind = config["layer_types"][0]
    if seed.endswith("2"):
        kind = "full_attention"
        config["mtp_layer_types"] = [kind]
    return config, longer(config, layer_types=kind, mlp_layer_types="dense")


def step(seed):
    """Lists with entries for the layers of prediction, as published."""
    config = drawn("step3p7", seed, num_nextn_predict_layers=3)
    entries = {
        "layer_types": "sliding_attention", "mlp_layer_types": "dense", "rope_theta": 70.0, "partial_rotary_factors": 1.0,
        "swiglu_limits": 0, "swiglu_limits_shared": 0.3,
    }
    long = longer(config, **entries)
    text = kin.text_of(long)
    return with_text(config, **{key: text[key] for key in entries if key in text}), long


def longcat(seed):
    draw = random.Random(seed)
    config = {key: value for key, value in CONFIGS["longcat-flash"].items() if key != "torch_dtype"} | {
        "hidden_size": draw.choice([36, 52]), "q_lora_rank": draw.choice([20, 36]), "kv_lora_rank": draw.choice([17, 28]),
        "ffn_hidden_size": draw.choice([23, 40]), "v_head_dim": draw.choice([7, 12]), "vocab_size": draw.randint(40, 70),
        "num_layers": draw.randint(1, 2), "num_nextn_predict_layers": 1, "rope_theta": draw.choice([1e4, 1e7]),
        "rms_norm_eps": draw.choice([1e-5, 1e-3]),
    }
    return config, {**config, "num_layers": config["num_layers"] + 1, "num_nextn_predict_layers": 0}


LAST = {"final": "shared_head.norm"}
FAMILIES = {
    "glm4_moe": (glm4_moe, Around(**LAST)),
    "bailing_moe_v2": (ling2, Around()),
    "hy_v3": (hy_v3, Around()),
    "mimo": (
        mimo,
        Around(at="model.mtp_layers.{n}.", embedding="token_layernorm", hidden="hidden_layernorm", projection="input_proj",
               hidden_first=True),
    ),
    "mimo_v2_flash": (
        mimo_v2,
        Around(at="model.mtp.layers.{n}.", renamed={"post_attention_layernorm": "pre_mlp_layernorm"}, computed=1),
    ),
    "step3p7": (
        step,
        Around(final="transformer.shared_head.norm", head="transformer.shared_head.output", computed=3, before_norms=True),
    ),
    "ernie4_5_moe": (
        ernie,
        Around(at="model.", embedding="mtp_emb_norm.{n}", hidden="mtp_hidden_norm.{n}", projection="mtp_linear_proj.{n}",
               layer="mtp_block.{n}.", norm_of_model=True),
    ),
    "exaone_moe": (
        exaone,
        Around(at="mtp.", embedding="pre_fc_norm_embedding", hidden="pre_fc_norm_hidden", projection="fc", final="norm",
               layer="layers.{n}.", computed=1),
    ),
    "longcat_flash": (
        longcat,
        Around(at="model.mtp.", embedding="layers.{n}.enorm.m", hidden="layers.{n}.hnorm.m", projection="layers.{n}.eh_proj",
               final="norm", layer="layers.{n}.",
               renamed={"input_layernorm.0": "input_layernorm", "post_attention_layernorm.0": "post_attention_layernorm",
                        "self_attn.0": "self_attn", "mlps.0": "transformer_layer.mlp"}),
    ),
}


def main_layers(config):
    text = kin.text_of(config)
    return text.get("num_layers", text.get("num_hidden_layers"))


def name_in_file(name, config, around):
    """Of a tensor of the longer model."""
    found = re.match(r"(.*\.)?layers\.(\d+)\.(.*)$", name)
    first = main_layers(config)
    if not found or "vision" in name or int(found[2]) < first:
        return name
    rest = found[3]
    for theirs, ours in around.renamed.items():
        rest = re.sub(rf"^{re.escape(theirs)}\.", f"{ours}.", rest)
    n = int(found[2]) - first
    return (around.at + around.layer).format(at=first + n, n=n) + rest


def load(folder, config, tensors):
    if config["model_type"] in kin.TWINS:
        config, tensors = kin.twin_of(config), kin.TWINS[config["model_type"]][2](config, tensors)
    kin.put(folder, config, tensors, torch.float64)
    kind = AutoModelForImageTextToText if "text_config" in config else AutoModelForCausalLM
    options = {"dtype": torch.float64, "attn_implementation": "eager", "experts_implementation": "eager"}
    return kind.from_pretrained(folder, **options).eval()


def base_of(model):
    return getattr(model.model, "language_model", model.model)


class HalfLayer(nn.Module):
    """LongCat-Flash: the first attention and the first MLP of a layer."""

    def __init__(self, layer):
        super().__init__()
        for name in ("input_layernorm", "self_attn", "post_attention_layernorm"):
            setattr(self, name, getattr(layer, name)[0])
        self.mlp = layer.mlps[0]

    def forward(self, x, **more):
        x = x + self.self_attn(self.input_layernorm(x), **more)[0]
        return x + self.mlp(self.post_attention_layernorm(x))


class OneStream(nn.Module):
    """HY4, GLM-5.3-Flash: a layer without hyper-connections."""

    def __init__(self, layer):
        super().__init__()
        for name in ("input_layernorm", "self_attn", "post_attention_layernorm", "mlp"):
            setattr(self, name, getattr(layer, name))

    def forward(self, x, attention_mask, position_embeddings):
        if position_embeddings is None:  # its mask is of keys
            attention_mask = torch.ones(x.shape[:2], dtype=torch.bool)
        more = {"attention_mask": attention_mask, "position_embeddings": position_embeddings}
        x = x + self.self_attn(hidden_states=self.input_layernorm(x), past_key_values=None, **more)[0]
        return x + self.mlp(self.post_attention_layernorm(x))


class Module(nn.Module):
    def __init__(self, around, layer, base, n, at):
        super().__init__()
        norm = base.norm
        width, epsilon = norm.weight.shape[0], getattr(norm, "variance_epsilon", None) or norm.eps
        self.layer = HalfLayer(layer) if hasattr(layer, "mlps") else OneStream(layer) if hasattr(layer, "attn_hc") else layer
        self.embedding, self.hidden = (type(norm)(width, eps=epsilon) for _ in range(2))
        self.final = norm if around.norm_of_model else type(norm)(width, eps=epsilon)
        path = around.at.format(at=at, n=n)
        parts = {"embedding": self.embedding, "hidden": self.hidden}
        if not around.norm_of_model:
            parts["final"] = self.final
        for part, module in parts.items():
            name = path + getattr(around, part).format(n=n) + ".weight"
            module.weight = nn.Parameter(kin.weight(name, (width,)).double())
        name = path + around.projection.format(n=n)
        self.projection, self.bias = kin.weight(f"{name}.weight", (width, 2 * width)).double(), None
        self.name = name

    def enter(self, around, token, given):
        sides = [self.embedding(token), self.hidden(given)]
        return nn.functional.linear(torch.cat(sides[::-1] if around.hidden_first else sides, dim=-1), self.projection, self.bias)


def rope_of(base, x, positions, kind):
    """Of layers of this kind, where kinds rotate apart."""
    if not hasattr(base, "rotary_emb"):
        return None
    by_kind = "layer_type" in inspect.signature(base.rotary_emb.forward).parameters
    return base.rotary_emb(x, positions, kind) if by_kind else base.rotary_emb(x, position_ids=positions)


CHILDREN = {"input_layernorm": "attn_norm", "self_attn": "attn_out", "post_attention_layernorm": "mlp_norm", "mlp": "mlp_out"}


def watched(layer, taken, at):
    handles = []

    def keep(tap):
        def hook(_module, _inputs, output):
            taken[f"mtp.{at}.{tap}"] = (output[0] if isinstance(output, tuple) else output).detach().clone().flatten()

        return hook

    for child, tap in CHILDREN.items():
        handles.append(getattr(layer, child).register_forward_hook(keep(tap)))
    return handles


@torch.no_grad()
def series(model, modules, around, config, tokens):
    """(logits of each module, taps)"""
    base, text, batch = base_of(model), kin.text_of(config), torch.tensor([tokens])
    seen = {}
    handle = base.norm.register_forward_pre_hook(lambda _module, inputs: seen.update(before=inputs[0]))
    given = base(batch, use_cache=False).last_hidden_state
    handle.remove()
    given = seen["before"] if around.before_norms else given
    said, taken = [], {}
    for n, module in enumerate(modules):
        count = given.shape[1] - 1
        token = module.table(batch[:, n + 1 :])
        x = module.enter(around, token, given[:, :count])
        taken[f"mtp.{n}.projected"] = x.flatten()
        far = torch.arange(count)[:, None] - torch.arange(count)
        kind = module.kind
        window = text["sliding_window"] if kind == "sliding_attention" else count
        mask = torch.where((far >= 0) & (far < window), 0.0, float("-inf"))[None, None]
        positions = torch.arange(count).unsqueeze(0)
        handles = watched(module.layer, taken, n)
        x = module.layer(x, attention_mask=mask, position_embeddings=rope_of(base, x, positions, kind))
        for handle in handles:
            handle.remove()
        x = x[0] if isinstance(x, tuple) else x
        normed = module.final(x)
        taken |= {f"mtp.{n}.out": x.flatten(), f"mtp.{n}.final_norm": normed.flatten()}
        said.append(module.head(normed)[0])
        given = x if around.before_norms else normed
    return said, taken


def head_of(model, around, n, at):
    if not around.head:
        return model.lm_head
    weight = kin.weight(around.at.format(at=at, n=n) + around.head + ".weight", tuple(model.lm_head.weight.shape)).double()
    return lambda x: nn.functional.linear(x, weight)


def table_of(base, around):
    table = base.get_input_embeddings()
    if not around.table:
        return table
    weight = kin.weight(f"{around.table}.weight", tuple(table.weight.shape)).double()
    return lambda tokens: nn.functional.embedding(tokens, weight)


def truth(family, seed, count=9):
    """(config, tokens, logits of each module, taps), in double"""
    make, around = FAMILIES[family]
    config, long = make(seed)
    draw = random.Random(seed)
    tokens = [draw.randrange(2, kin.text_of(config)["vocab_size"]) for _ in range(count)]
    shapes = {name: tuple(tensor.shape) for name, tensor in kin.checkpoint(long).items()}
    tensors = {name: kin.weight(name_in_file(name, config, around), shape) for name, shape in shapes.items()}
    first = main_layers(config)
    plain = {name: tensor for name, tensor in tensors.items() if not behind(name, first)}
    short = with_text(json.loads(json.dumps(config)), num_nextn_predict_layers=0)
    for key in ("layer_types", "mlp_layer_types", "indexer_types", "rope_theta", "partial_rotary_factors", "swiglu_limits", "swiglu_limits_shared"):
        if isinstance(kin.text_of(short).get(key), list):
            short = with_text(short, **{key: kin.text_of(short)[key][:first]})
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other, everything_double():
        model, behind_it = load(one, short, plain), load(other, long, tensors)
        modules = []
        for n in range(min(around.computed, stored(config))):
            layer = base_of(behind_it).layers[first + n]
            module = Module(around, layer, base_of(model), n, first + n)
            kinds = base_of(behind_it).config.layer_types if kin.text_of(long).get("layer_types") else None
            module.kind = kinds[first + n] if kinds else None
            if family == "exaone_moe":  # rotates whatever it sees
                layer.self_attn.sliding_window = kin.text_of(config).get("sliding_window") if layer.self_attn.is_sliding else None
            if family == "ernie4_5_moe" and config.get("use_bias"):
                module.bias = kin.weight(f"{module.name}.bias", (module.projection.shape[0],)).double()
            module.head = head_of(model, around, n, first + n)
            module.table = table_of(base_of(model), around)
            modules.append(module)
        said, taken = series(model, modules, around, config, tokens)
    return config, tokens, said, taken


def behind(name, first):
    found = re.match(r"(.*\.)?layers\.(\d+)\.", name)
    return bool(found) and "vision" not in name and int(found[2]) >= first
