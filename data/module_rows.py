"""data/fixtures/modules/<name>.tsv: a row for each name (numbers as "#") and shape, with how many tensors have it."""
import collections
import pathlib
import re

OUT = pathlib.Path(__file__).parent / "fixtures" / "modules"


def write_rows(name, shapes):
    """`shapes`: of each tensor, by its name."""
    counts, total = collections.Counter(), 0
    for key, shape in shapes.items():
        pattern = re.sub(r"(?<=\.)\d+(?=\.|$)|^\d+(?=\.)", "#", key)
        counts[pattern, "x".join(map(str, shape))] += 1
        elements = 1
        for extent in shape:
            elements *= extent
        total += elements
    lines = [f"# parameters {total}"]
    lines += [f"{pattern}\t{shape}\t{count}" for (pattern, shape), count in sorted(counts.items())]
    (OUT / f"{name}.tsv").write_text("\n".join(lines) + "\n")
