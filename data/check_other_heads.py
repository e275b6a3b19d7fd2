#!/usr/bin/env python3
"""Holds the bodies and classifiers of families (core/model/families/other_heads.cpp) against transformers.

    data/check_other_heads.py build/release/cli/assay [--count 5] [--seed 1] [family ...]

For each family of check_family_variants.py whose class has a base class ("LlamaModel"), one for classification of texts or
one of tokens, or one that finds answers (likewise of models that see or hear), random odd variants are drawn, and the tensors that the class would save
compared. Labels are drawn, too. What assay counts in part, or refuses in one line, for its names do not begin alike, or does not know, is told. Exits 1 on a difference.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import transformers

import check_family_variants as variants

# Those that check_family_variants.py leaves to fixtures.
CLASSICS = {
    "llama": ("LlamaForCausalLM", lambda: variants.flags(variants.decoder(), *variants.BIASES)),
    "mistral": ("MistralForCausalLM", variants.decoder),
    "mixtral": ("MixtralForCausalLM", lambda: variants.experts(variants.decoder(), "num_local_experts", width=None)),
    "qwen2": ("Qwen2ForCausalLM", lambda: variants.decoder(head_dim=False)),
    "qwen3": ("Qwen3ForCausalLM", lambda: variants.flags(variants.decoder(), "attention_bias")),
    "gemma": ("GemmaForCausalLM", variants.decoder),
    "gemma2": ("Gemma2ForCausalLM", lambda: variants.kinds(variants.decoder())),
    "gemma3_text": ("Gemma3ForCausalLM", lambda: variants.kinds(variants.decoder())),
    "phi3": ("Phi3ForCausalLM", lambda: variants.decoder(head_dim=False)),
    "olmo2": ("Olmo2ForCausalLM", lambda: variants.decoder(head_dim=False)),
    "gpt2": ("GPT2LMHeadModel", lambda: variants.old_decoder("n_embd", "n_head", "n_layer", "n_inner", n_positions=variants.draw.randint(8, 50))),
    "falcon": ("FalconForCausalLM", lambda: variants.flags(variants.old_decoder(), "bias", "alibi", "parallel_attn", "multi_query")),
    "starcoder2": ("Starcoder2ForCausalLM", lambda: variants.decoder(head_dim=False)),
}
for family, entry in CLASSICS.items():
    variants.FAMILIES.setdefault(family, entry)

ENDINGS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "TextModel", "Model")
REFUSED = ("do not all begin with", "is unknown", "what of it has another head is not described")


def classes_of(architecture):
    usual = next((e for e in ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration") if architecture.endswith(e)), None)
    if usual is None:
        return
    stem = architecture.removesuffix(usual)
    wanted = getattr(transformers, architecture).config_class
    for ending in ENDINGS:
        found = getattr(transformers, stem + ending, None)
        if found is not None and found.config_class is wanted:
            yield stem + ending


def counted_in_part(program, path):
    """A language model within a class that is not described: told so, and not of this script's matter."""
    told = subprocess.run([program, "paramcount", str(path), "--format", "json"], capture_output=True, text=True)
    return told.returncode == 0 and any("is not described here" in part["what"] for part in json.loads(told.stdout)["not_counted"])


def with_labels(make):
    def labelled():
        count = variants.draw.randint(1, 7)
        return {**make(), "id2label": {str(i): f"label {i}" for i in range(count)}}

    return labelled


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("families", nargs="*")
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_intermixed_args()
    variants.draw.seed(options.seed)
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        for family in options.families or sorted(variants.FAMILIES):
            architecture, make = variants.FAMILIES[family]
            for name in classes_of(architecture):
                probe = pathlib.Path(folder) / "probe.json"
                probe.write_text(json.dumps({"architectures": [name], "model_type": family, **make()}))
                told = variants.census_of_assay(options.program, probe)
                if isinstance(told, str) and any(words in told for words in REFUSED):
                    print(f"{name}: refused", flush=True)
                    continue
                if counted_in_part(options.program, probe):
                    print(f"{name}: counted in part", flush=True)
                    continue
                variants.FAMILIES[family] = (name, with_labels(make))
                print(end=f"{name}, ")
                differing += variants.check(family, options.program, options.count, pathlib.Path(folder))
            variants.FAMILIES[family] = (architecture, make)
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
