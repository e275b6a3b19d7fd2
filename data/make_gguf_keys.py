"""Writes data/fixtures/gguf/KEYS.txt: every key below the architecture that the gguf package knows.

    python data/make_gguf_keys.py
"""

from importlib.metadata import version
from pathlib import Path

from gguf.constants import Keys

OUT = Path(__file__).parent / "fixtures" / "gguf" / "KEYS.txt"


def keys_of(holder):
    for name, value in vars(holder).items():
        if isinstance(value, type):
            yield from keys_of(value)
        elif isinstance(value, str) and value.startswith("{arch}.") and not name.startswith("_"):
            yield value.removeprefix("{arch}.").replace("{dense}", "dense_2")


OUT.write_text(f"# gguf {version('gguf')}\n" + "\n".join(sorted(set(keys_of(Keys)))) + "\n")
