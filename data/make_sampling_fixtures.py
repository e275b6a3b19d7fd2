#!/usr/bin/env python3
"""Laws of sampling as transformers' own processors compute them, in float64: data/fixtures/sampling/laws.json.

    python data/make_sampling_fixtures.py

Each case: logits, the tokens seen, the rules in the order of generate(), and the probabilities that are left.
"""
import json
import pathlib
import random

import torch
import transformers
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

OUT = pathlib.Path(__file__).parent / "fixtures" / "sampling" / "laws.json"
MAKERS = [
    ("repetition_penalty", [0.8, 1.1, 1.7], lambda x: RepetitionPenaltyLogitsProcessor(penalty=x)),
    ("temperature", [0.3, 0.7, 1.0, 2.5], TemperatureLogitsWarper),
    ("top_k", [1, 3, 7, 30], TopKLogitsWarper),
    ("top_p", [0.1, 0.5, 0.9, 0.99], TopPLogitsWarper),
    ("min_p", [0.02, 0.1, 0.4], MinPLogitsWarper),
    ("typical_p", [0.2, 0.6, 0.95], TypicalLogitsWarper),
]


def one_case(rng: random.Random) -> dict:
    size = rng.choice([2, 5, 16, 33])
    logits = [rng.gauss(0, rng.choice([0.5, 2, 8])) for _ in range(size)]
    seen = [rng.randrange(size) for _ in range(rng.randrange(2 * size))]
    rules = {}
    scores = torch.tensor([logits], dtype=torch.float64)
    for name, values, make in MAKERS:
        if name != "temperature" and rng.random() < 0.5:
            continue
        value = rng.choice(values)
        rules[name] = value
        if name == "repetition_penalty" and not seen:
            continue
        scores = make(value)(torch.tensor([seen], dtype=torch.long), scores)
    law = torch.softmax(scores, dim=-1)[0].tolist()
    return {"logits": logits, "seen": seen, "rules": rules, "law": law}


def main() -> None:
    rng = random.Random(15)
    cases = [one_case(rng) for _ in range(120)]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    document = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0], "cases": cases}
    OUT.write_text(json.dumps(document, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
