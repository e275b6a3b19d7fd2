"""Makes data/fixtures/kin/<family>.json and .safetensors: three odd variants of each family that a table tells.

    python data/make_kin_goldens.py              # all
    python data/make_kin_goldens.py cohere phi   # some

Weights are not kept: tests/refimpl/models/made_weights.h makes them as data/tiny_models/kin.py does. Of a variant's
logits every third column is kept, by `transformers` in float64, and how far its bfloat16 strays from them. Of every tap:
its largest number and its products with two rows of signs, so that no element may be off unnoticed.
"""

import argparse
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from transformers.utils import logging

from tiny_models import kin, made_weights

OUT = Path(__file__).parent / "fixtures" / "kin"
VARIANTS, TOKENS, EVERY = 3, 9, 3


def signs(row, count):
    return np.where(made_weights.numbers(f"signs {row}", count) < 0, -1.0, 1.0)


def sketch(values):
    values = values.numpy()
    return [np.abs(values).max(), values @ signs(0, len(values)), values @ signs(1, len(values))]


def make(family):
    warnings.filterwarnings("ignore")
    kin.draw.seed(family)
    entries, stored = [], {}
    for _ in range(60):
        config = kin.config_of(family)
        tokens = [kin.draw.randrange(2, kin.words_of(config)) for _ in range(TOKENS)]
        try:
            exact, half = kin.truths(config, kin.checkpoint(config), tokens)
        except Exception as error:  # whatever its validators say
            print(f"  refused: {error}"[:150].replace(chr(10), " "))
            continue
        logits = exact["logits"].reshape(TOKENS, -1)
        strayed = (half - exact["logits"]).abs().max().item()
        if not 1e-4 < strayed / logits.abs().max().item() < 0.08:  # rounding turned a choice, or says nothing
            continue
        number = len(entries)
        names = sorted(name for name in exact if name != "logits")
        stored[f"{number}.logits"] = logits[:, ::EVERY].contiguous()
        stored[f"{number}.taps"] = torch.tensor([sketch(exact[name]) for name in names], dtype=torch.float64)
        entries.append({"config": config, "tokens": tokens, "strayed": strayed, "taps": names})
        if number + 1 == VARIANTS:
            break
    assert len(entries) == VARIANTS, family
    OUT.mkdir(exist_ok=True)
    (OUT / f"{family}.json").write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
    save_file(stored, OUT / f"{family}.safetensors")
    print(family, [len(entry["taps"]) for entry in entries], flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    for family in parser.parse_args().families or kin.FAMILIES:
        make(family)


if __name__ == "__main__":
    sys.exit(main())
