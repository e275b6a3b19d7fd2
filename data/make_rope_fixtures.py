"""Makes data/fixtures/rope/DYNAMIC.json: the frequencies of dynamic rope over few pairs, by `transformers` in float64.

    python data/make_rope_fixtures.py

The base grows by a power d / (d - 2) of the length, d being the elements of a head that rotate (bloc97 and emozilla, "NTK-aware"):
of one pair there is no such power, and `transformers` divides by zero, which the file says as null.
"""

import json
from pathlib import Path

from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from tiny_models.precision import everything_double

OUT = Path(__file__).parent / "fixtures" / "rope"
HEADS, CONTEXT, THETA, FACTOR = 4, 32, 10000.0, 4.0
PAIRS = (1, 2, 3, 8)
LENGTHS = (1, CONTEXT, CONTEXT + 1, 40, 128)


def frequencies(pairs, length):
    config = LlamaConfig(hidden_size=2 * pairs * HEADS, num_attention_heads=HEADS, max_position_embeddings=CONTEXT,
                         rope_parameters={"rope_type": "dynamic", "factor": FACTOR, "rope_theta": THETA})
    try:
        with everything_double():
            inverse, scale = ROPE_INIT_FUNCTIONS["dynamic"](config, device="cpu", seq_len=length)
    except ZeroDivisionError:
        return None
    assert scale == 1
    return inverse.tolist()


def main():
    OUT.mkdir(exist_ok=True)
    document = {
        "context": CONTEXT, "theta": THETA, "factor": FACTOR, "lengths": LENGTHS,
        "inverse_of_pairs": {str(pairs): [frequencies(pairs, length) for length in LENGTHS] for pairs in PAIRS},
    }
    (OUT / "DYNAMIC.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
