"""Holds `assay run` against `transformers` on random odd variants of the families that a table tells.

    python data/check_kin_variants.py build/release/cli/assay [--count 20] [--seed 1] [--commands] [family ...]

Logits and every tap in float64 have to agree to 1e-12 of their largest, or to twice what the class itself strays when every
weight moves by half a unit in its last place. A variant where two scores of a choice are equal is passed over: which of them
is taken, nobody promises. In bfloat16 the largest error of the logits may be twice PyTorch's own, of the tokens before the first
that stands behind a choice which rounding turned, here or there; where it is larger, or none is left, more texts go through the
same weights, and the median token may not be twice as far off. With --commands the first variant of each family is also put through
`run --kernels cpu`, `check` and `compare model`. What a class itself refuses is counted, and shown once. Exits 1 on a difference.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from safetensors import safe_open
from transformers.utils import logging

from tiny_models import choices, kin, straying

MOST = 1e-12
YARDSTICK = 2


def read(path):
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name).double().flatten() for name in file.keys()}


def call(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    return done.returncode, (done.stdout + done.stderr).strip()


def computed(program, folder, tokens, precision):
    """{tap: numbers} of assay. ValueError: what it says where it refuses."""
    text, logits, dump = ",".join(map(str, tokens)), Path(folder) / "logits.out", Path(folder) / "taps.out"
    code, said = call(
        program, "run", folder, "--tokens", text, "-n", 0, "--precision", precision, "--logits", logits, "--dump", dump, "--taps", ".",
    )
    if code != 0:
        raise ValueError(said[:300])
    return {**read(dump), **read(logits)}


def differences(ours, exact, condition):
    """`condition()`: {tap: how far it strays by itself}."""
    far = {}
    for name, truth in exact.items():
        found = ours.get(name)
        if found is None or len(found) != len(truth):
            yield f"{name}: {'missing' if found is None else f'{len(found)} numbers for {len(truth)}'}"
            continue
        error, largest = (found - truth).abs().max().item(), truth.abs().max().item()
        if not error <= MOST * largest:
            far[name] = (error, largest)
    strayed = condition() if far else {}
    for name, (error, largest) in far.items():
        if not error <= YARDSTICK * strayed[name]:
            yield f"{name} off by {error:.1e} of {largest:.1e}"


def compare_models(program, folder, tokens, words):
    """Fault of `compare model`; of another text where that one proved nothing (ZAYA1 has an expert that does nothing)."""
    for _ in range(4):
        code, said = call(program, "compare", "model", folder, "--tokens", ",".join(map(str, tokens)), "--json", "-", "--progress", "never")
        if code == 0:
            return []
        told = json.loads(said[said.index("{") :]) if "{" in said else {"status": said[-300:], "reasons": []}
        if told["status"] != "MISTRUSTED":
            break
        tokens = [kin.draw.randrange(2, words) for _ in tokens]
    return [f"compare model: {told['status']}: {'; '.join(told['reasons'])}"]


def try_commands(program, folder, tokens, words):
    text = ",".join(map(str, tokens))
    for command in (["run", folder, "--tokens", text, "-n", 3, "--kernels", "cpu"], ["check", folder]):
        code, said = call(program, *command)
        if code != 0:
            yield f"{' '.join(map(str, command[:2]))}: exit code {code}: {said[-300:]}"
    yield from compare_models(program, folder, tokens, words)


class Tally:
    def __init__(self):
        self.compared = self.differing = self.turned = self.tied = self.by_median = 0
        self.farthest, self.refused = 0.0, None

    def line(self, family):
        note = f"; {self.tied} passed over for a tie" if self.tied else ""
        note += f"; refused: {self.refused}" if self.refused else ""
        return (
            f"{family}: {self.compared} compared, {self.differing} differ, bfloat16 at most {self.farthest:.2f} times as far as torch "
            f"({self.turned} with a choice turned, {self.by_median} by the median of more texts){note}"
        )


def faults_of(config, tensors, tokens, exact, program, commands, tally):
    with tempfile.TemporaryDirectory() as folder:
        kin.put(folder, config, tensors)

        def run(text, precision):
            return computed(program, folder, text, precision)

        try:
            yield from differences(run(tokens, "f64"), exact, lambda: straying.moved(config, tensors, tokens, exact))
            text = straying.InBfloat16(config, tensors, tokens, run)
            ratio = text.ratio()
            if ratio > YARDSTICK or text.before == 0:
                tally.by_median += 1
                ratio = straying.median_ratio(config, tensors, tokens, run)
        except ValueError as refusal:
            yield str(refusal)
            return
        tally.turned += text.turned
        tally.farthest = max(tally.farthest, ratio)
        if ratio > YARDSTICK:
            yield f"bfloat16 {ratio:.2f} times as far as torch"
        if commands:
            yield from try_commands(program, folder, tokens, kin.words_of(config))


def check(family, options):
    kin.draw.seed(f"{family} {options.seed}")
    tally = Tally()
    for _ in range(options.count):
        config = kin.config_of(family)
        tokens = [kin.draw.randrange(2, kin.words_of(config)) for _ in range(11)]
        try:
            tensors = kin.checkpoint(config)
            with choices.recorded() as made:
                exact = kin.exactly(config, tensors, tokens)
        except Exception as error:  # whatever its validators say
            tally.refused = tally.refused or repr(error)[:160]
            continue
        if choices.tied(made, len(tokens)):
            tally.tied += 1
            continue
        faults = list(faults_of(config, tensors, tokens, exact, options.program, options.commands and tally.compared == 0, tally))
        tally.compared += 1
        if faults:
            tally.differing += 1
            print("  " + "; ".join(faults[:4]) + f"\n    {config}")
    print(tally.line(family), flush=True)
    return tally.differing


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
