"""Writing the two folders: BF16, and FP8 e4m3 in 128 x 128 blocks as deepseek-ai/DeepSeek-V3 stores it."""

import json
import re

import torch
from safetensors.torch import save_file

BLOCK = 128
E4M3_MAX = 448.0
QUANTIZATION = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [BLOCK, BLOCK]}

# The linear layers of attention, dense MLP, shared and routed experts; the router and eh_proj stay BF16.
_QUANTIZED = re.compile(r"(self_attn\.\w+_proj(_with_mqa)?|(gate|up|down)_proj)\.weight$")


def bf16_tensors(model):
    """Name to tensor as the BF16 folder stores it: all BF16 but the routing bias, which stays F32."""
    def stored(name, tensor):
        dtype = torch.float32 if name.endswith("e_score_correction_bias") else torch.bfloat16
        return tensor.detach().to(dtype).contiguous().clone()

    return {name: stored(name, tensor) for name, tensor in model.checkpoint_tensors()}


def quantize(weight):
    """One 2-D weight to codes and scales: in each block s = amax / 448 and q = e4m3(w / s), all in float32.

    The last block of a row or column may be partial; it takes the amax of what there is, which is what padding it
    with zeros would give. "weight_scale_inv" is the multiplier that undoes the division, whatever its name says.
    """
    weight = weight.float()
    rows, columns = weight.shape
    padded = torch.zeros(-(-rows // BLOCK) * BLOCK, -(-columns // BLOCK) * BLOCK)
    padded[:rows, :columns] = weight
    blocks = padded.view(padded.shape[0] // BLOCK, BLOCK, padded.shape[1] // BLOCK, BLOCK)
    scale = blocks.abs().amax(dim=(1, 3)) / E4M3_MAX
    codes = (blocks / scale[:, None, :, None]).view_as(padded)[:rows, :columns].to(torch.float8_e4m3fn)
    return codes.contiguous(), scale


def dequantize(codes, scale):
    """float32(code) * scale of the block, rounded once to float32."""
    rows, columns = codes.shape
    return codes.float() * scale.repeat_interleave(BLOCK, 0)[:rows].repeat_interleave(BLOCK, 1)[:, :columns]


def fp8_tensors(bf16):
    """The FP8 folder's tensors, computed from the BF16 folder's, so that one can be checked against the other."""
    tensors = {}
    for name, tensor in bf16.items():
        if _QUANTIZED.search(name):
            tensors[name], tensors[name + "_scale_inv"] = quantize(tensor)
        else:
            tensors[name] = tensor
    return tensors


def dequantized(fp8):
    """What a float32 engine computes with: every FP8 weight times its scales, the rest widened."""
    return {
        name: dequantize(tensor, fp8[name + "_scale_inv"]) if tensor.dtype == torch.float8_e4m3fn else tensor.float()
        for name, tensor in fp8.items()
        if not name.endswith("_scale_inv")
    }


def _shards(tensors, count):
    """Cuts in checkpoint order near equal bytes, and between a weight and its scales where there is such a pair:
    a reader must not expect them in one file."""
    names, target = list(tensors), sum(tensor.nbytes for tensor in tensors.values()) / count
    shards, current, size = [], [], 0
    for index, name in enumerate(names):
        current.append(name)
        size += tensors[name].nbytes
        quantized = name + "_scale_inv" in tensors
        paired = quantized or not any(other.endswith("_scale_inv") for other in names[index:])
        if size >= target and paired and len(shards) < count - 1:
            shards.append(current)
            current, size = [], 0
    return [*shards, current]


def write(folder, tensors, config, shard_count=3):
    folder.mkdir(parents=True, exist_ok=True)
    weight_map = {}
    for number, names in enumerate(_shards(tensors, shard_count), start=1):
        shard = f"model-{number:05d}-of-{shard_count:06d}.safetensors"  # DeepSeek's own numbering: 5 and 6 digits
        save_file({name: tensors[name] for name in names}, folder / shard, metadata={"format": "pt"})
        (folder / shard).chmod(0o644)  # save_file leaves it to its owner alone
        weight_map.update(dict.fromkeys(names, shard))
    total = sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    write_json(folder / "model.safetensors.index.json", index)
    write_json(folder / "config.json", dict(sorted(config.items())))
    generation = {"_from_model_config": True, "bos_token_id": config["bos_token_id"],
                  "eos_token_id": config["eos_token_id"], "do_sample": False}
    write_json(folder / "generation_config.json", generation)


def write_json(path, document):
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
