"""Makes fixtures/convert/CUTS.tsv: what each rank of a tensor-parallel group holds of the tiny models, cut by torch.

    python data/make_cut_fixtures.py

The rules are those of vLLM's and SGLang's weight loaders, written out for each family by hand: whole heads of q, k and v
(key and value heads repeated where there are fewer than ranks), gate and up apart, inputs of o and down, rows of the
vocabulary padded to a multiple of 64, experts in order over the groups of expert-parallel ranks.
"""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import safe_open

HERE = Path(__file__).parent


def part(tensor, dimension, ranks, rank):
    size = tensor.shape[dimension]
    assert size % ranks == 0
    return tensor.narrow(dimension, rank * size // ranks, size // ranks)


def heads(tensor, count, ranks, rank):
    """Rows of whole heads; with fewer heads than ranks, the head that this rank shares with its neighbours."""
    if count >= ranks:
        return part(tensor, 0, ranks, rank)
    return part(tensor, 0, count, rank * count // ranks)


def vocabulary(tensor, ranks, rank):
    rows = tensor.shape[0]
    each = -(-rows // 64) * 64 // ranks
    padded = torch.cat([tensor, torch.zeros(each * ranks - rows, *tensor.shape[1:], dtype=tensor.dtype)])
    return padded[rank * each : (rank + 1) * each]


def llama(config, name, tensor, ranks, rank):
    q, kv = config["num_attention_heads"], config["num_key_value_heads"]
    kind = name.split(".")[-2]
    if kind in ("embed_tokens", "lm_head"):
        return vocabulary(tensor, ranks, rank)
    if kind == "q_proj":
        return heads(tensor, q, ranks, rank)
    if kind in ("k_proj", "v_proj"):
        return heads(tensor, kv, ranks, rank)
    if kind in ("gate_proj", "up_proj", "w1", "w3"):
        return part(tensor, 0, ranks, rank)
    if kind in ("o_proj", "down_proj", "w2") and not name.endswith("bias"):
        return part(tensor, 1, ranks, rank)
    return tensor


def phi3(config, name, tensor, ranks, rank):
    q, kv = config["num_attention_heads"], config["num_key_value_heads"]
    if "qkv_proj" in name:
        head = config["hidden_size"] // q
        members = tensor.split([q * head, kv * head, kv * head])
        return torch.cat([heads(m, n, ranks, rank) for m, n in zip(members, (q, kv, kv))])
    if "gate_up_proj" in name:
        return torch.cat([part(half, 0, ranks, rank) for half in tensor.chunk(2)])
    return llama(config, name, tensor, ranks, rank)


def gpt2(config, name, tensor, ranks, rank):
    last = tensor.dim() - 1  # Conv1D: [in, out]
    if "c_attn" in name:
        return torch.cat([part(third, last, ranks, rank) for third in tensor.chunk(3, last)], last)
    if "c_fc" in name:
        return part(tensor, last, ranks, rank)
    if "c_proj.weight" in name:
        return part(tensor, 0, ranks, rank)
    return vocabulary(tensor, ranks, rank) if "wte" in name else tensor


def deepseek(config, name, tensor, ranks, rank):
    kind = name.split(".")[-2]
    if kind in ("q_b_proj", "kv_b_proj"):
        return heads(tensor, config["num_attention_heads"], ranks, rank)
    if "shared_head.head" in name:
        return vocabulary(tensor, ranks, rank)
    if kind in ("q_a_proj", "kv_a_proj_with_mqa"):
        return tensor
    return llama(config, name, tensor, ranks, rank)


def gpt_oss(config, name, tensor, ranks, rank):
    if name.endswith("sinks"):
        return part(tensor, 0, ranks, rank)
    if "experts.gate_up_proj" in name:  # [experts, gate and up rows in turn, …]
        return part(tensor, 1, ranks, rank)
    if "experts.down_proj_bias" in name:
        return tensor
    if "experts.down_proj" in name:  # [experts, hidden, blocks of 32 inputs, …]
        return part(tensor, 2, ranks, rank)
    return llama(config, name, tensor, ranks, rank)


def expert_of(name):
    return int(name.split(".experts.")[1].split(".")[0])


# model, its family's rules, tp, ep, the number of its experts
CASES = [
    ("llama", llama, 2, 1, 0),
    ("phi3", phi3, 2, 1, 0),
    ("phi3", phi3, 4, 1, 0),
    ("gpt2", gpt2, 4, 1, 0),
    ("mixtral", llama, 4, 2, 6),
    ("deepseek-v3", deepseek, 4, 2, 12),
    ("gpt-oss", gpt_oss, 2, 2, 6),
]


def cut(config, rules, name, tensor, tp, ep, experts, rank):
    """None: the rank has nothing of it."""
    if "experts" not in name or "shared_experts" in name or ep == 1:
        return rules(config, name, tensor, tp, rank)
    inside, group = tp // ep, rank // (tp // ep)
    if ".experts." in name and name.split(".experts.")[1][0].isdigit():
        if expert_of(name) // (experts // ep) != group:
            return None
    else:
        tensor = part(tensor, 0, ep, group)
    return rules(config, name, tensor, inside, rank % inside) if inside > 1 else tensor


def main():
    lines = ["# model\ttp\tep\trank\ttensor\tshape\tsha256: what the rank holds; made by make_cut_fixtures.py"]
    for model, rules, tp, ep, experts in CASES:
        folder = HERE / "models" / model
        config = json.loads((folder / "config.json").read_text())
        with safe_open(folder / "model.safetensors", "pt") as file:
            for name in sorted(file.keys()):
                inside = ".layers." in name or ".h." in name
                if inside and ".1." not in name:
                    continue  # one layer will do
                for rank in range(tp):
                    held = cut(config, rules, name, file.get_tensor(name), tp, ep, experts, rank)
                    if held is None:
                        continue
                    data = held.contiguous().view(torch.uint8).numpy().tobytes()
                    shape = "x".join(map(str, held.shape))
                    digest = hashlib.sha256(data).hexdigest()
                    lines.append(f"{model}\t{tp}\t{ep}\t{rank}\t{name}\t{shape}\t{digest}")
    (HERE / "fixtures" / "convert" / "CUTS.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
