"""Layers for multi-token prediction of families whose layers keep a state (Qwen3-Next, Qwen3.5, Nemotron-H). `transformers`
leaves them out; here they stand around decoder layers of its classes, as vLLM 0.30 has them (qwen3_next_mtp.py, qwen3_5_mtp.py,
nemotron_h_mtp.py): the embedding of the next token first, what the head saw second, both normed."""

import copy
import random
import re

import torch
from torch import nn

import check_forward_variants as variants

from . import hybrids, kin
from .precision import everything_double


def qwen(make):
    def config(seed):
        return make(random.Random(seed)) | {"mlp_only_layers": [], "decoder_sparse_step": 1, "mtp_num_hidden_layers": 1}

    return config


def nemotron_h(seed):
    hybrids.draw.seed(seed)
    return kin.config_of("nemotron_h") | {"num_nextn_predict_layers": 1, "mtp_hybrid_override_pattern": "*E"}


def nemotron_h_puzzle(seed):
    """Whose layer of experts has more of them than any of the model's."""
    hybrids.draw.seed(seed)
    experts = {"block_type": "moe", "moe_intermediate_size": hybrids.draw.randint(3, 12), "n_routed_experts": 8, "num_experts_per_tok": 3}
    return kin.config_of("nemotron_h_puzzle") | {"num_nextn_predict_layers": 1, "mtp_block_configs": [{"block_type": "attention"}, experts]}


# Config; names of what stands around the layers, the layers' kinds, where the last norm is.
AROUND_QWEN = {"projection": "mtp.fc", "embedding": "mtp.pre_fc_norm_embedding", "hidden": "mtp.pre_fc_norm_hidden", "final": "mtp.norm"}
AROUND_NEMOTRON = {
    "projection": "mtp.layers.0.eh_proj", "embedding": "mtp.layers.0.enorm", "hidden": "mtp.layers.0.hnorm",
    "final": "mtp.layers.1.final_layernorm",
}
FAMILIES = {
    "qwen3_next": (qwen(variants.qwen3_next), AROUND_QWEN, ["full_attention"]),
    "qwen3_5": (qwen(variants.qwen3_5), AROUND_QWEN, ["full_attention"]),
    "qwen3_5_moe": (qwen(variants.qwen3_5_moe), AROUND_QWEN, ["full_attention"]),
    "nemotron_h": (nemotron_h, AROUND_NEMOTRON, ["full_attention", "moe"]),
    "nemotron_h_puzzle": (nemotron_h_puzzle, AROUND_NEMOTRON, ["full_attention", "moe"]),
}


def one_by_one(state):
    """Names of a checkpoint, whose experts stand one by one."""
    made = {}
    for name, tensor in state.items():
        stack = re.match(r"(.*\.experts)\.(gate_up_proj|up_proj|down_proj)$", name)
        if not stack:
            made[name] = tuple(tensor.shape)
            continue
        for e in range(tensor.shape[0]):
            rows, columns = tensor.shape[1:]
            if stack[2] == "gate_up_proj":
                for part in ("gate_proj", "up_proj"):
                    made[f"{stack[1]}.{e}.{part}.weight"] = (rows // 2, columns)
            else:
                made[f"{stack[1]}.{e}.{stack[2]}.weight"] = (rows, columns)
    return made


def stacked(state, tensors, prefix):
    """What such a layer loads."""
    made = {}
    for name in state:
        stack = re.match(r"(.*\.experts)\.(gate_up_proj|up_proj|down_proj)$", name)
        if not stack:
            made[name] = tensors[f"{prefix}.{name}"]
            continue
        parts = ("gate_proj", "up_proj") if stack[2] == "gate_up_proj" else (stack[2],)
        count = state[name].shape[0]
        rows = [torch.cat([tensors[f"{prefix}.{stack[1]}.{e}.{part}.weight"] for part in parts]) for e in range(count)]
        made[name] = torch.stack(rows)
    return made


class Prediction(nn.Module):
    def __init__(self, model, around, kinds):
        super().__init__()
        block, config = model.model.layers[0], copy.deepcopy(model.config)
        config._attn_implementation, config._experts_implementation = "eager", "eager"
        first = config.num_hidden_layers
        config.layer_types = [*config.layer_types, *kinds]
        if getattr(config, "mtp_block_configs", None):
            config.block_configs = [*config.block_configs, *config.mtp_block_configs]
        self.layers = nn.ModuleList(type(block)(config, first + i) for i in range(len(kinds)))
        final = getattr(model.model, "norm", None) or model.model.norm_f
        epsilon = getattr(config, "rms_norm_eps", None) or config.layer_norm_epsilon
        for part in ("embedding", "hidden", "final"):
            setattr(self, part, type(final)(config.hidden_size, eps=epsilon))
        self.projection = nn.Linear(2 * config.hidden_size, config.hidden_size, bias=False)
        self.around, self.width = around, config.hidden_size

    def shapes(self):
        made = {f"{name}.weight": (self.width,) for part, name in self.around.items() if part != "projection"}
        made[f"{self.around['projection']}.weight"] = (self.width, 2 * self.width)
        for i, layer in enumerate(self.layers):
            made |= {f"mtp.layers.{i}.{name}": shape for name, shape in one_by_one(layer.state_dict()).items()}
        return made

    def load(self, tensors):
        for part, name in self.around.items():
            getattr(self, part).weight.data = tensors[f"{name}.weight"].double()
        for i, layer in enumerate(self.layers):
            state = stacked(layer.state_dict(), tensors, f"mtp.layers.{i}")
            layer.load_state_dict({name: value.double() for name, value in state.items()})
        return self

    @torch.no_grad()
    def logits(self, model, tokens):
        """For every position i but the last, of what stands at i + 2."""
        base, batch = model.model, torch.tensor([tokens])
        embed = base.get_input_embeddings()
        hidden, token = base(batch, use_cache=False).last_hidden_state[:, :-1], embed(batch[:, 1:])
        count = hidden.shape[1]
        x = self.projection(torch.cat([self.embedding(token), self.hidden(hidden)], dim=-1))
        mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
        more = {}
        if hasattr(base, "rotary_emb"):
            positions = torch.arange(count).unsqueeze(0)
            more["position_embeddings"] = base.rotary_emb(x, positions)
        for layer in self.layers:
            x = layer(x, attention_mask=mask, **more)
            x = x[0] if isinstance(x, tuple) else x
        return model.lm_head(self.final(x))[0]


def truth(family, seed, count=9):
    """(config, tokens, logits of what is predicted one further, in double)"""
    import tempfile

    from transformers import AutoModelForCausalLM

    make, around, kinds = FAMILIES[family]
    config = make(seed)
    draw = random.Random(seed)
    tokens = [draw.randrange(2, config["vocab_size"]) for _ in range(count)]
    tensors = kin.checkpoint(config)
    with tempfile.TemporaryDirectory() as folder, everything_double():
        kin.put(folder, *kin.as_computed(config, tensors), torch.float64)
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float64, attn_implementation="eager", experts_implementation="eager"
        ).eval()
        layers = Prediction(model, around, kinds).double().eval()
        tensors |= {name: kin.weight(name, shape) for name, shape in layers.shapes().items()}
        return config, tokens, tensors, layers.load(tensors).logits(model, tokens)
