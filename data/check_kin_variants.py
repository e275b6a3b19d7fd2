"""Holds `assay run` against `transformers` on random odd variants of the families that a table tells.

    python data/check_kin_variants.py build/release/cli/assay [--count 20] [--seed 1] [--commands] [family ...]

Logits and every tap in float64 have to agree to 1e-12 of their largest; in bfloat16 logits may stray twice as far as
PyTorch's own (a choice of experts that falls otherwise is told, and is no fault). With --commands the first variant of
each family is also put through `run --kernels cpu`, `check` and `compare model`. What a class itself refuses is counted, and
shown once. Exits 1 on a difference.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from safetensors import safe_open
from transformers.utils import logging

from tiny_models import kin

MOST = 1e-12


def read(path):
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name).double().flatten() for name in file.keys()}


def call(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


def computed(program, folder, tokens, precision, taps=True):
    """{tap: numbers} of assay; a text where it refuses."""
    text, logits, dump = ",".join(map(str, tokens)), Path(folder) / "logits.out", Path(folder) / "taps.out"
    more = ["--dump", dump, "--taps", "."] if taps else []
    code, said = call(program, "run", folder, "--tokens", text, "-n", 0, "--precision", precision, "--logits", logits, *more)
    if code != 0:
        return said
    return {**(read(dump) if taps else {}), **read(logits)}


def differences(ours, exact):
    for name, truth in exact.items():
        found = ours.get(name)
        if found is None or len(found) != len(truth):
            yield f"{name}: {'missing' if found is None else f'{len(found)} numbers for {len(truth)}'}"
            continue
        error, largest = (found - truth).abs().max().item(), truth.abs().max().item()
        if not error <= MOST * largest:
            yield f"{name} off by {error:.1e} of {largest:.1e}"


def try_commands(program, folder, tokens):
    text = ",".join(map(str, tokens))
    for command in (
        ["run", folder, "--tokens", text, "-n", 3, "--kernels", "cpu"],
        ["check", folder],
        ["compare", "model", folder, "--tokens", text],
    ):
        code, said = call(program, *command)
        if code != 0:
            yield f"{' '.join(map(str, command[:2]))}: exit code {code}: {said[-300:]}"


def check(family, options):
    kin.draw.seed(f"{family} {options.seed}")
    compared = differing = 0
    farthest, refused = 0.0, None
    for _ in range(options.count):
        config = kin.config_of(family)
        tokens = [kin.draw.randrange(2, kin.words_of(config)) for _ in range(11)]
        try:
            tensors = kin.checkpoint(config)
            exact, half = kin.truths(config, tensors, tokens)
        except Exception as error:  # whatever its validators say
            refused = refused or repr(error)[:160]
            continue
        with tempfile.TemporaryDirectory() as folder:
            kin.put(folder, config, tensors)
            ours = computed(options.program, folder, tokens, "f64")
            faults = [ours[:300]] if isinstance(ours, str) else list(differences(ours, exact))
            rough = computed(options.program, folder, tokens, "bf16", taps=False)
            if options.commands and compared == 0:
                faults += try_commands(options.program, folder, tokens)
        compared += 1
        if not isinstance(rough, str):
            yardstick = (half - exact["logits"]).abs().max()
            farthest = max(farthest, ((rough["logits"] - exact["logits"]).abs().max() / yardstick).item())
        if faults:
            differing += 1
            print("  " + "; ".join(faults[:4]) + f"\n    {config}")
    note = f"; refused: {refused}" if refused else ""
    print(f"{family}: {compared} compared, {differing} differ, bfloat16 at most {farthest:.2f} times as far as torch{note}", flush=True)
    return differing


def main():
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("families", nargs="*")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", action="store_true")
    options = parser.parse_intermixed_args()
    sys.exit(1 if sum(check(family, options) for family in options.families or kin.FAMILIES) else 0)


if __name__ == "__main__":
    main()
