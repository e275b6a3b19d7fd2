"""Makes data/fixtures/prediction/<family>.json and .safetensors: what layers for multi-token prediction say, of three odd
variants of each family in data/tiny_models/prediction.py, in float64; every third column is kept.

    python data/make_prediction_goldens.py

Weights are not kept: tests/refimpl/models/made_weights.h makes them as data/tiny_models/kin.py does.
"""

import json
import warnings
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers.utils import logging

from tiny_models import prediction

OUT = Path(__file__).parent / "fixtures" / "prediction"


def main():
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    for family in prediction.FAMILIES:
        entries, stored = [], {}
        for number in range(3):
            config, tokens, _, logits = prediction.truth(family, f"{family} {number}")
            entries.append({"config": config, "tokens": tokens})
            stored[str(number)] = logits[:, ::3].contiguous()
        (OUT / f"{family}.json").write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
        save_file(stored, OUT / f"{family}.safetensors")
        print(family, flush=True)


if __name__ == "__main__":
    main()
