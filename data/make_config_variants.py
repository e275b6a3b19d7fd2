"""Makes data/fixtures/config_keys/variants.*: models of data/models under changed config.json files.

    python data/make_config_variants.py

variants.json: what each changes; variants.safetensors: every fourth of the logits of the last of 40 tokens, by
`transformers` in float64. A variant without logits is one that `transformers`, or assay, refuses. Keys without effect on a model's
logits, each tried alone, are set together in one variant.
"""

import json
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers.utils import logging

from tiny_models import golden, variants, weights
from tiny_models.configs import CONFIGS
from tiny_models.precision import everything_double

DATA = Path(__file__).parent
OUT = DATA / "fixtures" / "config_keys"
TOKENS = [(17 * i + i * i + 3) % 94 + 2 for i in range(40)]


def put_weights(model, folder):
    """As they are; in float64 where some are float32, which everything_double() takes for float64."""
    stored = DATA / "models" / model / "model.safetensors"
    tensors = weights.read(stored)
    if any(tensor.dtype == torch.float32 for tensor in tensors.values()):
        save_file({name: tensor.double() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    else:
        (folder / "model.safetensors").symlink_to(stored)


@torch.no_grad()
def logits(model, config):
    """Of the last token; None where `transformers` refuses the config, or computes nothing finite of it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        put_weights(model, Path(folder))
        try:
            with everything_double():
                last = golden.load(folder, torch.float64)(torch.tensor([TOKENS]), use_cache=False).logits[0, -1]
        except Exception as error:  # whatever a class says of a config it was not made for
            print(f"  refused: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:150])
            return None
    return last.clone() if bool(torch.isfinite(last).all()) else None


def difference(old, new):
    return {key: new.get(key) for key in {*old, *new} if old.get(key) != new.get(key) or (key in old) != (key in new)}


def same(model, changed, expected):
    last = logits(model, CONFIGS[model] | changed)
    return last is not None and torch.allclose(last, expected, rtol=1e-9, atol=1e-9)


def main():
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    listed, stored, plain, idle = [], {}, {}, {}

    def add(entry, last):
        if last is not None:
            stored[str(len(listed))] = last[::4].contiguous()
        listed.append(entry)

    for number, (model, key, config) in enumerate(variants.all_variants(CONFIGS)):
        if model not in plain:
            plain[model] = logits(model, CONFIGS[model])
        changes = difference(CONFIGS[model], config)
        print(number, model, json.dumps(changes))
        last = logits(model, config)
        changed = {name: value for name, value in sorted(changes.items()) if name in config}
        removed = sorted(name for name in changes if name not in config)
        alone = list(changed) == [key] and not removed and not variants.refused_by_assay(model, key)
        together = idle.get(model, {}) | changed
        if alone and same(model, changed, plain[model]) and same(model, together, plain[model]):
            idle[model] = together
        else:
            entry = {"model": model, "key": key, "set": changed} | ({"removed": removed} if removed else {})
            add(entry, None if variants.refused_by_assay(model, key) else last)
    for model, keys in idle.items():
        add({"model": model, "key": "", "set": keys}, plain[model])
    save_file(stored | {"tokens": torch.tensor(TOKENS, dtype=torch.int32)}, OUT / "variants.safetensors")
    lines = ",\n".join("  " + json.dumps(entry) for entry in listed)
    (OUT / "variants.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
