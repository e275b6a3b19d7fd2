"""Which mutants are examined, with which tests, and what is known of them already."""

import fcntl
import hashlib
import json
import os
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .build import Build
from .cpp import Source
from .run import Runner
from .schema import Schema

LEDGER = "data/baselines/mutants.json"
# What a wrong number anywhere in would be believed: folders, and the programs whose tests go through them.
SOURCES = {
    "core/numeric": ["test_core", "test_refimpl"],
    "refimpl/ops": ["test_refimpl"],
    "refimpl/models": ["test_refimpl"],
    "refimpl/tokenizers": ["test_tokenizers"],
    "kernels/cpu": ["test_kernels"],
    "kernels/cuda": ["test_kernels"],
}
TESTS = ("tests", "data/fixtures", "data/models")
# Parts of these binaries that have nothing to say about the folders above, or start other programs.
FILTERS = {
    "test_core": "-*Interrupt*:*Signal*:Threads.*:Progress*:Manifest*:Index*",
    "test_refimpl": "-Run.*:Stories*",
    "test_kernels": "-Plugin*:*Dumps*:*Dump*:Heat*:Registry*:*DeviceTime*:*Measure*",
}
# Machinery: what goes wrong there is no wrong number, and most of it runs only where there is a GPU.
NOT_MUTATED = (
    "kernels/cuda/runtime", "kernels/cuda/cublas", "kernels/cuda/cublaslt", "kernels/cuda/device_roof", "kernels/cuda/fiber",
    "kernels/cuda/loaded_library", "kernels/cuda/machine", "kernels/cuda/emulator", "kernels/cuda/device_ptx",
    "kernels/cuda/device_macros", "core/numeric/hwy_dispatch", "core/numeric/gguf_grids", "core/numeric/simd_targets",
    "refimpl/models/mapped_file", "refimpl/tokenizers/chat_template", "kernels/cuda/device.cuh",
    "kernels/cuda/device_emulated", "kernels/cuda/device_limits", "kernels/cpu/bf16_tile_avx512",
)
MOST_UNITS = 14  # a header that more units include costs more to compile than it has to say
GATE = [
    ("assay gate", ["gate"], 25.0),
    ("assay compare kernels", ["compare", "kernels", "--kernels", "cpu"], 40.0),
]


def files_below(root, paths, endings):
    """Relative to the root, in order; a path may be a file or a folder."""
    found = set()
    for path in paths:
        place = root / path
        found |= {place} if place.is_file() else set(place.rglob("*"))
    return sorted(str(f.resolve().relative_to(root)) for f in found if f.is_file() and f.name.endswith(endings))


def choose(root, options, say):
    """The mutants asked for, in an order that the seed makes: more of them never changes which come first."""
    files = [f for f in files_below(root, options.paths or SOURCES, (".cpp", ".h", ".cuh"))
             if f.startswith(tuple(SOURCES)) and not f.startswith(NOT_MUTATED)]
    rank = lambda text: hashlib.sha256(f"{options.seed} {text}".encode()).hexdigest()  # noqa: E731
    if options.files:
        units = [f for f in files if f.endswith(".cpp") and (root / f).stat().st_size > 1500]
        files = sorted(units, key=rank)[: options.files]
    mutants = []
    for path in files:
        mutants += Schema(Source(path, (root / path).read_text())).mutants
    index, count = options.shard
    mutants = sorted(mutants, key=lambda m: rank(m.key))[: options.sample]
    return [m for i, m in enumerate(mutants) if i % count == index - 1]


def ledger(root):
    """What survives for a reason: {key: {reason, why, …}}."""
    place = root / LEDGER
    return {entry["key"]: entry for entry in json.loads(place.read_text())["survivors"]} if place.exists() else {}


class Known:
    """build/mutate/results.json: {key: {state, …}}, for as long as the source and the tests are as they were. Several
    shards may write to it."""

    def __init__(self, place):
        self.place = place
        self.results = json.loads(place.read_text()) if place.exists() else {}

    def add(self, key, result):
        self.results[key] = result
        with open(self.place.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            merged = json.loads(self.place.read_text()) if self.place.exists() else {}
            merged[key] = result
            self.place.write_text(json.dumps(merged, indent=0))


def states(root, paths):
    """{path: digest of the file and of all tests}; with the real inputs at hand there are more tests."""
    cases = Path(os.environ.get("ASSAY_CASES", root.parent / "shared/cases"))
    tests = hashlib.sha256(str(cases.is_dir()).encode())
    for name in files_below(root, TESTS, (".cpp", ".h", ".json", ".tsv", ".safetensors")):
        tests.update((root / name).read_bytes())
    return {p: hashlib.sha256((root / p).read_bytes() + tests.digest()).hexdigest()[:16] for p in paths}


def run(root, options, mutants, say):
    """{key: result}; a result's `fate` is killed, survived, refused (by the compiler) or absent (not in this build)."""
    work = root / "build/mutate" / ("all" if options.shard[1] == 1 else f"shard-{options.shard[0]}")
    (root / "build/mutate").mkdir(parents=True, exist_ok=True)
    known = Known(root / "build/mutate/results.json")
    state = states(root, {m.path for m in mutants})
    results, open_ = {}, []
    for mutant in mutants:
        old = known.results.get(mutant.key)
        fresh = old and (old["fate"] != "survived" if options.survivors else old["state"] == state[mutant.path])
        if fresh and not options.again:
            results[mutant.key] = old
        else:
            open_.append(mutant)
    say(f"{len(mutants)} mutants of {len(state)} files, {len(results)} known")
    if not open_:
        return results

    def remember(mutant, **result):
        results[mutant.key] = {"state": state[mutant.path], **result}
        known.add(mutant.key, results[mutant.key])

    build = Build(root, options.build, work, options.jobs)
    numbers = {m.key: i + 1 for i, m in enumerate(open_)}
    chosen, objects = defaultdict(dict), set()
    programs = sorted({p for m in open_ for folder, names in SOURCES.items() if m.path.startswith(folder) for p in names})
    inside = {name: build.link_command(name)[0] for name in programs}
    for mutant in open_:
        chosen[mutant.path][mutant.key] = numbers[mutant.key]
    for path in list(chosen):
        places = [o for o in build.objects_of(path)
                  if any(o in words or Build.archive_of(o) in words for words in inside.values())]
        if not places or len(places) > MOST_UNITS:
            say(f"{path}: {len(places)} units include it; left out")
            del chosen[path]
        objects |= set(places)
    mutated, refused = build.compile(dict(chosen), objects, say)
    linked = {name: place for name in programs if (place := build.link(name, mutated))}
    commands = []
    if options.gate and (assay := build.link("assay", mutated)):
        commands = [(name, [str(assay), *arguments], seconds) for name, arguments, seconds in GATE]
    filters = {name: options.tests for name in linked} if options.tests else FILTERS
    runner = Runner(linked, options.build / "tests", commands, options.jobs, options.budget, filters)
    say(f"{len(mutated)} objects, {len(refused)} mutants refused by the compiler; recording what tests reach")
    runner.record(say)

    def examine(mutant):
        number = numbers[mutant.key]
        if mutant.path not in chosen or mutant.key in refused:
            return remember(mutant, fate="refused")
        if number not in runner.tests and not any(
                build.preprocessed_holds(o, number) for o in mutated if o in build.objects_of(mutant.path)):
            return remember(mutant, fate="absent")
        before = known.results.get(mutant.key, {}).get("by")
        verdict = runner.examine(number, before)
        fate = "killed" if verdict.killed else "survived"
        remember(mutant, fate=fate, by=verdict.by, how=verdict.how, tests=verdict.tests)
        if fate == "survived":
            say(f"survived: {mutant.path}:{mutant.line} {mutant.what}  [{mutant.key}, {verdict.tests} tests]")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(examine, open_))
    return results
