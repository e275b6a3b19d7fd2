#!/usr/bin/env python3
"""Checks data/tinylm and data/tinylm-bf16 with readers that had no part in writing them.

    python data/check_tinylm.py [FOLDER that holds tinylm/ and tinylm-bf16/]

safetensors and ml_dtypes read the bytes, transformers loads the models (its MTP class too), and the logits have to
be those of golden.json. Prints what it checked; the first thing that is wrong ends it with an AssertionError.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, DeepseekV3ForCausalLM
from transformers.cache_utils import MtpCache
from transformers.modeling_layers import MtpModel

BLOCK = 128
TOLERANCE = 2e-5  # between two float32 evaluations of logits of size 20: a few units in their last place


def as_numpy(tensor):
    other = {torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn, torch.bfloat16: ml_dtypes.bfloat16}.get(tensor.dtype)
    return tensor.numpy() if other is None else tensor.view(torch.uint8).numpy().view(other)


def read_tensors(folder):
    """Every tensor of the shards, after checking that the index says the same."""
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    tensors = {}
    for shard in sorted(folder.glob("*.safetensors")):
        with safe_open(shard, "pt") as file:
            assert file.metadata() == {"format": "pt"}
            for name in file.keys():
                assert index["weight_map"][name] == shard.name and name not in tensors, name
                tensors[name] = as_numpy(file.get_tensor(name))
    assert sorted(tensors) == sorted(index["weight_map"])
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in tensors.values())
    return tensors


def dequantize(tensors):
    """float32 weights, block by block in the plainest way."""
    result = {}
    for name, tensor in tensors.items():
        if name.endswith("_scale_inv"):
            continue
        result[name] = tensor.astype(np.float32)
        if tensor.dtype == ml_dtypes.float8_e4m3fn:
            scale = tensors[name + "_scale_inv"]
            assert scale.dtype == np.float32 and scale.shape == tuple(-(-size // BLOCK) for size in tensor.shape), name
            for row, column in np.ndindex(*scale.shape):
                area = np.s_[row * BLOCK : (row + 1) * BLOCK, column * BLOCK : (column + 1) * BLOCK]
                result[name][area] *= scale[row, column]
    return result


def check_rounding(codes, dequantized, original):
    """No code is further from its BF16 weight than e4m3 rounding allows: half a step, 2^-4 of the value or
    2^-10 of the scale, whichever is more."""
    for name, tensor in codes.items():
        if tensor.dtype != ml_dtypes.float8_e4m3fn:
            continue
        exact = original[name].astype(np.float32)
        rows, columns = exact.shape
        scale = np.kron(codes[name + "_scale_inv"], np.ones((BLOCK, BLOCK)))[:rows, :columns]
        bound = np.maximum(np.abs(exact) * 2.0**-4, scale * 2.0**-10) * (1 + 1e-5)
        assert np.all(np.abs(dequantized[name] - exact) <= bound), name
        assert np.abs(tensor.astype(np.float32)).max() == 448, name


def check_golden(name, folder, golden):
    """transformers, loading `folder` by itself, computes the logits golden.json has, its MTP class the MTP layer's."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(golden["prompt"])["input_ids"]
    assert ids == golden["prompt_ids"]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    expected, batch = golden[name], torch.tensor([ids])
    with torch.no_grad():
        output = model.model(batch, use_cache=False).last_hidden_state
        main = model.lm_head(output)[0, -1].double().numpy()
        mtp = mtp_logits(model, batch, output)[0, -1].double().numpy()
        greedy = model.generate(batch, max_new_tokens=len(expected["greedy"]), do_sample=False, eos_token_id=None)
    differences = []
    for logits, key in [(main, "last"), (mtp, "mtp_last")]:
        assert [entry["id"] for entry in expected[key]["top5"]] == np.argsort(-logits)[:5].tolist(), key
        differences.append(np.abs(logits - np.array(expected[key]["logits_f64"])).max())
    assert max(differences) <= TOLERANCE, differences
    assert greedy[0, len(ids) :].tolist() == expected["greedy"]
    print(f"{name}: logits within {differences[0]:.1e} (main) and {differences[1]:.1e} (MTP) of the doubles, "
          f"{len(expected['greedy'])} greedy tokens equal")


def mtp_logits(model, batch, hidden):
    mtp = MtpModel.from_pretrained(model).eval()
    positions = torch.arange(batch.shape[1] - 1).unsqueeze(0)
    cache = MtpCache(config=model.config.get_mtp_config())
    output = mtp.forward_layer(0, hidden[:, :-1], positions, cache, input_ids=batch[:, 1:])
    return model.lm_head(output)


def write_dequantized(folder, tensors, source):
    """A float32 folder transformers can load: its own FP8 loader divides rows by scale rows to find the block, which
    is right only where 128 divides the size."""
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    del config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config))
    for name in ["tokenizer.json", "tokenizer_config.json"]:
        (folder / name).write_bytes((source / name).read_bytes())


def main():
    torch.set_num_threads(2)
    base = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    # transformers knows the MTP layer by the real model's number, 61; ours comes after three.
    DeepseekV3ForCausalLM._keys_to_ignore_on_load_unexpected = [r"model\.layers\.3\."]
    golden = json.loads((base / "tinylm/golden.json").read_text())

    codes, original = read_tensors(base / "tinylm"), read_tensors(base / "tinylm-bf16")
    dequantized = dequantize(codes)
    assert sorted(dequantized) == sorted(original)
    check_rounding(codes, dequantized, original)
    for folder in ["tinylm", "tinylm-bf16"]:
        config = json.loads((base / folder / "config.json").read_text())
        assert "auto_map" not in config and not list((base / folder).glob("*.py"))
    for copy, source in [("embed_tokens", "model.embed_tokens"), ("shared_head.head", "lm_head")]:
        for tensors in [codes, original]:
            assert np.array_equal(tensors[f"model.layers.3.{copy}.weight"], tensors[f"{source}.weight"])
    quantized = sum(tensor.dtype == ml_dtypes.float8_e4m3fn for tensor in codes.values())
    shard_of = json.loads((base / "tinylm/model.safetensors.index.json").read_text())["weight_map"]
    split = sum(shard_of[name] != shard_of.get(name + "_scale_inv", shard_of[name]) for name in codes)
    print(f"{len(codes)} tensors, {quantized} of them FP8, each within its rounding of the BF16 one; {split} have their "
          "scales in another shard")

    check_golden("tinylm-bf16", base / "tinylm-bf16", golden)
    with tempfile.TemporaryDirectory() as folder:
        write_dequantized(Path(folder), dequantized, base / "tinylm")
        check_golden("tinylm", Path(folder), golden)


if __name__ == "__main__":
    main()
