#!/usr/bin/env python3
"""Writes data/fixtures/quantiles.json: quantiles of odd lists by NumPy's default method, which latencies are told by."""
import json
import pathlib

import numpy as np

OUT = pathlib.Path(__file__).parent / "fixtures" / "quantiles.json"
SHARES = [0.0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0]


def main():
    rng = np.random.default_rng(5)
    lists = [[3.25], [1.0, 2.0], [0.1, 0.1, 0.1], [5.0, 1.0, 4.0]]
    lists += [rng.lognormal(size=n).tolist() for n in (5, 7, 10, 11, 100, 101, 998)]
    cases = [{"values": sorted(v), "shares": SHARES, "quantiles": np.quantile(v, SHARES).tolist()} for v in lists]
    text = "[" + ",\n ".join(json.dumps(case) for case in cases) + "]\n"
    OUT.write_text(text)


main()
