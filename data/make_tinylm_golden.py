#!/usr/bin/env python3
"""Writes data/tinylm/assay-golden.json: what `assay check` holds the model to (docs/check.md).

Digests of the tensors by hashlib from the files' own headers; the logits after golden.json's prompt are those that
transformers computed in float64 (data/train_tinylm.py). Needs nothing but Python.
"""
import hashlib
import json
import pathlib
import struct

MODEL = pathlib.Path(__file__).resolve().parent / "tinylm"
KEPT = 64  # logits, the largest first


def tensors_of(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        yield name, {
            "type": entry["dtype"],
            "shape": entry["shape"],
            "sha256": hashlib.sha256(data[begin:end]).hexdigest(),
        }


def main():
    golden = json.loads((MODEL / "golden.json").read_text())
    logits = golden["tinylm"]["last"]["logits_f64"]
    order = sorted(range(len(logits)), key=lambda i: -logits[i])[:KEPT]
    record = {
        "schema": "assay.golden/1",
        "config": json.loads((MODEL / "config.json").read_text()),
        "tensors": dict(sorted(t for f in sorted(MODEL.glob("*.safetensors")) for t in tensors_of(f))),
        "behaviour": {"tokens": golden["prompt_ids"], "logits": [[i, logits[i]] for i in order]},
    }
    (MODEL / "assay-golden.json").write_text(json.dumps(record, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
