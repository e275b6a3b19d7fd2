"""DeciLM (Llama-Nemotron Super and Ultra), of which `transformers` has no class: its Llama, with blocks taken out, narrowed or
put in as one matrix, as modeling_decilm.py of the releases has them."""

import copy

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaMLP


class Nothing(torch.nn.Module):
    """What is added to the stream where a block is left out."""

    silent = True  # no tap

    def __init__(self, pair):
        super().__init__()
        self.pair = pair

    def forward(self, hidden_states, **_):
        zeros = torch.zeros_like(hidden_states)
        return (zeros, None) if self.pair else zeros


class LinearAttention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear_attn = torch.nn.Linear(width, width, bias=False)

    def forward(self, hidden_states, **_):
        return self.linear_attn(hidden_states), None


class LinearMlp(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear_mlp = torch.nn.Linear(width, width, bias=False)

    def forward(self, hidden_states):
        return self.linear_mlp(hidden_states)


def model(config):
    values = {key: value for key, value in config.items() if key not in ("architectures", "model_type", "block_configs")}
    whole = LlamaConfig(**{**values, "intermediate_size": 8, "num_key_value_heads": config["num_attention_heads"]})
    whole._attn_implementation = "eager"
    made, width = LlamaForCausalLM(whole), config["hidden_size"]
    for index, (layer, block) in enumerate(zip(made.model.layers, config["block_configs"])):
        attention, mlp, own = block["attention"], block["ffn"], copy.deepcopy(whole)
        if attention.get("no_op"):
            layer.input_layernorm, layer.self_attn = torch.nn.Identity(), Nothing(True)
        elif attention.get("replace_with_linear"):
            layer.self_attn = LinearAttention(width)
        else:
            own.num_key_value_heads = config["num_attention_heads"] // attention["n_heads_in_group"]
            layer.self_attn = LlamaAttention(own, index)
        if mlp.get("no_op"):
            layer.post_attention_layernorm, layer.mlp = torch.nn.Identity(), Nothing(False)
        elif mlp.get("replace_with_linear"):
            layer.mlp = LinearMlp(width)
        else:
            own.intermediate_size = mlp["intermediate_size"]
            layer.mlp = LlamaMLP(own)
    return made.eval()


def shapes(config):
    state = model(config).state_dict()
    tied = config.get("tie_word_embeddings", False)
    return {name: tuple(tensor.shape) for name, tensor in state.items() if not (tied and name == "lm_head.weight")}


def loaded(config, tensors, dtype):
    made = model(config).to(dtype)
    made.load_state_dict({name: tensor.to(dtype) for name, tensor in tensors.items()}, strict=False)
    made.tie_weights()
    return made
