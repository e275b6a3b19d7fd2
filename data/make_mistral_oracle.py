#!/usr/bin/env python3
"""Writes data/fixtures/modules/<name>.tsv of Mistral's own files, as mistral-inference makes the model of a params.json.

    pip install mistral_inference fire simple_parsing mistral_common torch     (1.6.0)
    data/make_mistral_oracle.py data/fixtures/mistral_params

Attention is not computed, so that xformers need not be there.
"""
import json
import pathlib
import sys
from unittest.mock import MagicMock

import torch

for name in ("xformers", "xformers.ops", "xformers.ops.fmha", "xformers.ops.fmha.attn_bias"):
    sys.modules[name] = MagicMock()

from mistral_inference.args import TransformerArgs  # noqa: E402
from mistral_inference.transformer import Transformer  # noqa: E402

from module_rows import write_rows  # noqa: E402


def main():
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
        params = json.loads(path.read_text())
        if "multimodal" in params:  # sound, which mistral-inference does not hear
            continue
        with torch.device("meta"):
            model = Transformer(TransformerArgs.from_dict(params))
        shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        write_rows(path.stem, shapes)
        print(path.stem, len(shapes), sum(t.numel() for t in model.state_dict().values()))


main()
