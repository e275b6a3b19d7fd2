"""Makes data/fixtures/prediction/<family>.json and .safetensors: what layers for multi-token prediction say, of three odd
variants of each family in data/tiny_models/prediction.py, prediction_kin.py, prediction_latent.py, prediction_v4.py and prediction_inkling.py,
in float64; every third column is kept, and of taps what make_kin_goldens.py keeps.

    python data/make_prediction_goldens.py              # all
    python data/make_prediction_goldens.py glm4_moe     # some

Weights are not kept: tests/refimpl/models/made_weights.h makes them as data/tiny_models/kin.py does.
"""

import argparse
import json
import warnings
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers.utils import logging

from make_kin_goldens import sketch
from tiny_models import prediction, prediction_inkling, prediction_kin, prediction_latent, prediction_v4  # noqa: F401: latent adds to kin

OUT = Path(__file__).parent / "fixtures" / "prediction"


def entry_of(family, number):
    """What the file says of a variant, and what is stored of it: logits of each module, those of the first under the number."""
    seed = f"{family} {number}"
    if family in prediction.FAMILIES:
        config, tokens, _, logits = prediction.truth(family, seed)
        return {"config": config, "tokens": tokens}, {str(number): logits[:, ::3].contiguous()}
    of = {"deepseek_v4": prediction_v4, "inkling_text": prediction_inkling}.get(family, prediction_kin)
    config, tokens, said, taps = of.truth(family, seed)
    names = sorted(taps)
    stored = {f"{number}.{n}" if n else str(number): logits[:, ::3].contiguous() for n, logits in enumerate(said)}
    stored[f"{number}.taps"] = torch.tensor([sketch(taps[name]) for name in names], dtype=torch.float64)
    return {"config": config, "tokens": tokens, "taps": names}, stored


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    OUT.mkdir(exist_ok=True)
    for family in parser.parse_args().families or [*prediction.FAMILIES, *prediction_kin.FAMILIES, "deepseek_v4", "inkling_text"]:
        entries, stored = [], {}
        for number in range(3):
            entry, more = entry_of(family, number)
            entries.append(entry)
            stored |= more
        (OUT / f"{family}.json").write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
        save_file(stored, OUT / f"{family}.safetensors")
        print(family, flush=True)


if __name__ == "__main__":
    main()
