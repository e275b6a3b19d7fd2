#!/usr/bin/env python3
"""Writes data/fixtures/singular_values.json: matrices and their singular values, by NumPy (LAPACK).

    data/make_singular_fixtures.py

Tall, wide, of a low rank, and one whose singular values lie twelve powers of ten apart.
"""
import json
import pathlib

import numpy as np

OUT = pathlib.Path(__file__).parent / "fixtures" / "singular_values.json"


def main():
    rng = np.random.default_rng(7)
    graded = np.linalg.qr(rng.normal(size=(9, 9)))[0] * 10.0 ** -np.arange(0, 13.5, 1.5)
    matrices = {
        "tall": rng.normal(size=(12, 7)),
        "wide": rng.normal(size=(5, 11)),
        "rank 4 of 10": rng.normal(size=(10, 4)) @ rng.normal(size=(4, 13)),
        "twelve powers of ten": graded @ np.linalg.qr(rng.normal(size=(9, 9)))[0],
    }
    document = [
        {"name": name, "rows": a.tolist(), "singular_values": np.linalg.svd(a, compute_uv=False).tolist()}
        for name, a in matrices.items()
    ]
    OUT.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
