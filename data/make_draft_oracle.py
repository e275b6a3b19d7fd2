#!/usr/bin/env python3
"""Writes data/fixtures/modules/<name>.tsv of draft models as vLLM's speculators library builds them.

    pip install --no-deps speculators==0.9.0 pydantic pydantic-settings pydantic_core annotated-types typing-inspection
    data/make_draft_oracle.py data/fixtures/draft_configs
    data/make_draft_oracle.py --program build/release/cli/assay --count 40      (random variants: exits 1 on a difference)

What a draft has of its target (embedding, head, maps of words; speculators saves them again) is left out, as assay leaves it out.
"""
import argparse
import collections
import importlib.abc
import importlib.machinery
import json
import pathlib
import sys
import tempfile
from unittest.mock import MagicMock

# Of what the library trains with nothing is called here.
TRAINING = ("openai", "datasets", "loguru", "torchdata", "typer", "rich", "wandb", "httpx", "hs_connectors")


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in TRAINING else None

    def create_module(self, spec):
        module = MagicMock(__path__=[], __spec__=spec)
        module.__name__ = spec.name
        return module

    def exec_module(self, module):
        pass


sys.meta_path.append(Absent())

import torch  # noqa: E402
import transformers  # noqa: E402
from speculators.config import SpeculatorsConfig, VerifierConfig  # noqa: E402
from speculators.models import dflash, dflash2, dspark, eagle3, peagle, xpress  # noqa: E402
from speculators.proposals.greedy import GreedyTokenProposalConfig  # noqa: E402

import check_family_variants as variants  # noqa: E402
from module_rows import write_rows  # noqa: E402

MODELS = {
    "Eagle3DraftModel": (eagle3.Eagle3DraftModel, eagle3.Eagle3SpeculatorConfig),
    "PEagleDraftModel": (peagle.PEagleDraftModel, peagle.PEagleSpeculatorConfig),
    "DFlashDraftModel": (dflash.DFlashDraftModel, dflash.DFlashSpeculatorConfig),
    "DFlash2DraftModel": (dflash2.DFlash2DraftModel, dflash2.DFlash2SpeculatorConfig),
    "DSparkDraftModel": (dspark.DSparkDraftModel, dspark.DSparkSpeculatorConfig),
    "XPressDraftModel": (xpress.XPressDraftModel, xpress.XPressSpeculatorConfig),
}
OF_TARGET = ("embed_tokens.weight", "t2d", "d2t", "verifier_norm.weight", "verifier_lm_head.weight")


def shapes_of(said):
    """Names and shapes of what is a draft's own, from its config.json."""
    architecture = said["architectures"][0]
    model_class, config_class = MODELS[architecture]
    layers = dict(said["transformer_layer_config"])
    classes = {"llama": transformers.LlamaConfig, "qwen3": transformers.Qwen3Config}
    rest = {key: value for key, value in said.items()
            if key not in ("architectures", "transformer_layer_config", "speculators_model_type")}
    proposal = GreedyTokenProposalConfig(speculative_tokens=3)
    config = config_class(
        transformer_layer_config=classes[layers.pop("model_type")](**layers), **rest,
        speculators_config=SpeculatorsConfig(algorithm=said["speculators_model_type"], proposal_methods=[proposal],
                                             default_proposal_method="greedy",
                                             verifier=VerifierConfig(name_or_path=None, architectures=[])))
    with torch.device("meta"):
        model = model_class(config)
    left_out = set(OF_TARGET) | ({"lm_head.weight"} if "Eagle" not in architecture else set())
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items() if name not in left_out}


def drawn(architecture):
    draw = variants.draw
    eagle = "Eagle" in architecture
    head_dim = draw.choice([6, 8, 10])
    kv = draw.choice([1, 2, 3])
    layers = {"model_type": draw.choice(["llama", "qwen3"]) if eagle else "qwen3",
              "vocab_size": draw.randint(60, 99), "hidden_size": 72 * draw.randint(1, 2),
              "intermediate_size": draw.randint(20, 70), "num_hidden_layers": draw.randint(1, 3),
              "num_attention_heads": kv * draw.choice([1, 2, 4]), "num_key_value_heads": kv, "head_dim": head_dim,
              "attention_bias": draw.random() < 0.3}
    ids = [draw.randint(1, 30) for _ in range(draw.randint(1, 5))]
    said = {"architectures": [architecture], "transformer_layer_config": layers, "mask_token_id": 3,
            "draft_vocab_size": draw.choice([layers["vocab_size"], draw.randint(20, 50)])}
    said["speculators_model_type"] = architecture.removesuffix("DraftModel").lower()
    said["eagle_aux_hidden_state_layer_ids" if eagle else "aux_hidden_state_layer_ids"] = ids
    if eagle:
        del said["mask_token_id"]
        said[draw.choice(["norm_before_fc", "fc_norm", "norm_output"])] = True
    elif architecture.startswith("DFlash2"):
        said["draft_vocab_size"] = layers["vocab_size"]
        said |= {"conv_kernel_size": draw.randint(1, 4), "conv_group_size": draw.choice([2, 4, 8]),
                 "selector_rank": draw.randint(1, 9)}
    elif architecture.startswith("DSpark"):
        said |= {"markov_rank": draw.choice([0, 3, 7]), "markov_head_type": draw.choice(["vanilla", "gated", "rnn"]),
                 "enable_confidence_head": draw.random() < 0.7, "confidence_head_with_markov": draw.random() < 0.7}
        said["confidence_head_with_markov"] &= said["markov_rank"] > 0
    elif architecture.startswith("XPress"):
        said |= {"xpress_rank": draw.randint(2, 9), "xpress_mlp_ratio": draw.randint(1, 4), "block_size": draw.randint(2, 9)}
    return said


def census_of(shapes):
    return collections.Counter((variants.pattern(name), "x".join(map(str, shape))) for name, shape in shapes.items())


def check(program, count):
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "config.json"
        for architecture in MODELS:
            different = 0
            for _ in range(count):
                said = drawn(architecture)
                path.write_text(json.dumps(said))
                ours = variants.census_of_assay(program, path)
                theirs = census_of(shapes_of(said))
                if ours != theirs:
                    different += 1
                    variants.show(said, ours, theirs)
            print(f"{architecture}: {count} compared, {different} differ", flush=True)
            differing += different
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--program")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    variants.draw.seed(options.seed)
    if options.folder:
        for path in sorted(options.folder.glob("*.json")):
            write_rows(path.stem, shapes_of(json.loads(path.read_text())))
    sys.exit(1 if options.program and check(options.program, options.count) else 0)


if __name__ == "__main__":
    main()
