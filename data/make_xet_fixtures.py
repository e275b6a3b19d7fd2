"""Makes fixtures/xet/GOLDENS.tsv: inputs by rule, and their Xet hashes by both chunkers.

    pip install hf_xet blake3
    python data/make_xet_fixtures.py XET_CORE      # a clone of huggingface/xet-core, with its history

The hash of today is that of hf_xet.hash_files. The older one is put together here from the boundaries that
xet-core's own tests expected before PR #487 (commit fe71e3dd), of data made to hit them.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import hf_xet
from blake3 import blake3

OUT = Path(__file__).parent / "fixtures" / "xet"
BEFORE = "fe71e3dd^:deduplication/src/chunking.rs"
MASK = (1 << 64) - 1


def random_bytes(size, seed):
    """SplitMix64, as xet-core's tests have it."""
    out, state = bytearray(), seed
    while len(out) < size:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        out += (z ^ (z >> 31)).to_bytes(8, "little")
    return bytes(out[:size])


def hitting_bytes(size, padding, pattern):
    data = bytearray(pattern) + bytes(padding)
    while len(data) < size:
        data += data[: min(size - len(data), len(data))]
    return bytes(data)


def from_source(source, name):
    body = source[source.index(f"const {name}") :]
    return bytes(int(x) for x in re.findall(r"\d+", body[body.index("= [") : body.index("];")]))


def text(raw):
    return b"".join(raw[i : i + 8][::-1] for i in range(0, 32, 8)).hex()


def tree_hash(nodes, node_key):
    """`nodes`: (hash, bytes). Written after hub-docs' docs/xet, not after xet-core."""
    if not nodes:
        return bytes(32)
    while len(nodes) > 1:
        above, rest = [], nodes
        while rest:
            cut = len(rest)
            if cut > 2:
                cut = next((i + 1 for i in range(2, min(9, cut)) if rest[i][0][24] % 4 == 0), min(9, cut))
            group, rest = rest[:cut], rest[cut:]
            line = "".join(f"{text(h)} : {n}\n" for h, n in group).encode()
            above.append((blake3(line, key=node_key).digest(), sum(n for _, n in group)))
        nodes = above
    return blake3(nodes[0][0], key=bytes(32)).digest()


def main(xet_core):
    show = lambda what: subprocess.run(["git", "-C", xet_core, "show", what], check=True, capture_output=True, text=True).stdout
    chunking = show(BEFORE)
    keys = show("fe71e3dd^:merklehash/src/data_hash.rs")
    data_key, node_key = (from_source(keys, name) for name in ("DATA_KEY", "INTERNAL_NODE_HASH"))
    body = chunking[chunking.index("fn get_triggering_base_data"):]
    pattern = bytes(int(x) for x in re.findall(r"\d+", body[body.index("vec![") : body.index("];")]))
    older = {int(i): [int(x) for x in cuts.split(",")] for i, cuts in re.findall(r"ref_cb\[(\d+)\] = vec!\[([\d, ]+)\];", chunking)}
    assert len(pattern) == 128 and len(older) == 128

    def older_hash(data, cuts):
        begins = [0, *cuts[:-1]]
        return text(tree_hash([(blake3(data[a:b], key=data_key).digest(), b - a) for a, b in zip(begins, cuts)], node_key))

    cases = []  # kind, parameter, data, older hash or "-"
    for padding, cuts in sorted(older.items()):
        data = hitting_bytes(65536, padding, pattern)
        cases.append(("hitting", padding, data, older_hash(data, cuts)))
    first = chunking[chunking.index("fn test_correctness_1mb_random_data"):]
    cuts = [int(x) for x in re.search(r"chunk_boundaries,\s*vec!\[([\d,\s]+)\]", first)[1].split(",")]
    data = random_bytes(1000000, 0)
    cases.append(("random", 0, data, older_hash(data, cuts)))
    for byte in (0, 59):
        for size in (8191, 8192, 131072, 131073, 1000000):
            cases.append(("constant", byte, bytes([byte]) * size, "-"))
    sizes = [0, 1, 64, 8127, 8128, 8191, 8192, 8193, 65535, 65536, 65537, 131071, 131072, 131073, 262144]
    for seed, size in enumerate(sizes + [1 << 20, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 5000000, 9000001], 1):
        cases.append(("random", seed, random_bytes(size, seed), "-"))

    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for i, (_, _, data, _) in enumerate(cases):
            names.append(f"{folder}/{i}")
            Path(names[-1]).write_bytes(data)
        today = [made.hash for made in hf_xet.hash_files(names)]
    lines = ["kind\tparameter\tbytes\tcurrent\tolder\n"]
    for (kind, parameter, data, other), hash_ in zip(cases, today):
        lines.append(f"{kind}\t{parameter}\t{len(data)}\t{hash_}\t{other}\n")
    (OUT / "GOLDENS.tsv").write_text("".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
