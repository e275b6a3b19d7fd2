"""Holds `assay verify --xet` against PyPI's hf_xet on ten thousand sizes around the lengths that matter to its chunker:
8, 64 and 128 KiB, a byte more or less, and whatever lies between.

    pip install hf_xet
    python data/check_xet.py build/release/cli/assay [FILES] [SEED]

Prints how many agree; exits with 1 where one does not.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import hf_xet

LENGTHS = [8 << 10, 64 << 10, 128 << 10]
AT_ONCE = 500


def size_of(rng, i):
    near = LENGTHS[i % 3]
    if i < 3 * 400:
        return near - 200 + i // 3
    return rng.choice([rng.randrange(near - 1000, near + 1000), rng.randrange(3 * LENGTHS[2]), near + rng.randrange(-70, 70)])


def content(rng, size):
    """Weights are random bytes; what repeats meets the cuts again and again."""
    kind = rng.randrange(4)
    if kind == 0:
        return bytes([rng.randrange(256)]) * size
    if kind == 1:
        period = rng.randbytes(rng.randrange(1, 9000))
        return (period * (size // len(period) + 1))[:size]
    return rng.randbytes(size)


def main(assay, files=10000, seed=1):
    rng, agree, files, older = random.Random(int(seed)), 0, int(files), 0
    for begin in range(0, files, AT_ONCE):
        with tempfile.TemporaryDirectory() as folder:
            names = [f"{i:05}" for i in range(begin, min(files, begin + AT_ONCE))]
            for i, name in enumerate(names, begin):
                (Path(folder) / name).write_bytes(content(rng, size_of(rng, i)))
            want = [made.hash for made in hf_xet.hash_files([f"{folder}/{name}" for name in names])]
            run = subprocess.run([assay, "verify", folder, "--xet", "--no-git", "--json", "-"], capture_output=True, text=True)
            made = {file["name"]: file["xet"] for file in json.loads(run.stdout)["files"]}
            for name, hash_ in zip(names, want):
                if made[name]["current"] == hash_:
                    agree += 1
                else:
                    print(f"{name}: hf_xet {hash_}, assay {made[name]['current']}")
                older += made[name]["current"] != made[name]["older"]
    print(f"{agree} of {files} agree with hf_xet.hash_files; {older} have another hash by the older chunker")
    return 0 if agree == files else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
