"""Models that engines are asked about: of each config of data/fixtures/engines a folder with weights that follow from their names
(made_weights.py), in bfloat16, and tinylm's tokenizer, so that engines and GGUF take them. Their heads have 32 and 64 elements, which
vLLM's CPU backend computes, and their rows 256 and 512, which llama.cpp's blocks of 256 divide. Needs NumPy alone."""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np

from . import made_weights

DATA = Path(__file__).resolve().parent.parent
CONFIGS = DATA / "fixtures/engines"
# For /v1/chat/completions, which some engines refuse without one.
CHAT_TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ '\\n' }}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"


def names():
    return sorted(path.stem for path in CONFIGS.glob("*.json"))


def tensors_of(assay, config):
    """(name, shape) of every tensor that a checkpoint of this config has, as `assay paramcount` lists them."""
    table = subprocess.run([assay, "paramcount", config, "--tensors", "--format", "csv"], check=True, capture_output=True, text=True).stdout
    for row in csv.DictReader(table.splitlines()):
        if row["storage"] == "own":
            yield row["name"], [int(size) for size in row["shape"].split("x")]


def bfloat16(values):
    """The bytes of numbers that bfloat16 holds exactly."""
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()


def write_safetensors(path, tensors):
    header, at, parts = {}, 0, []
    for name, shape in tensors:
        part = bfloat16(made_weights.weight(name, shape))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + len(part)]}
        at += len(part)
        parts.append(part)
    head = json.dumps(header | {"__metadata__": {"format": "pt"}}).encode()
    path.write_bytes(np.array(len(head), "<u8").tobytes() + head + b"".join(parts))


def make(assay, name, folder):
    """`folder` becomes the model of this name; returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(CONFIGS / f"{name}.json", folder / "config.json")
    write_safetensors(folder / "model.safetensors", tensors_of(assay, folder / "config.json"))
    shutil.copy(DATA / "tinylm/tokenizer.json", folder / "tokenizer.json")
    config = json.loads((DATA / "tinylm/tokenizer_config.json").read_text())
    length = json.loads((folder / "config.json").read_text())["max_position_embeddings"]
    config |= {"chat_template": CHAT_TEMPLATE, "model_max_length": length}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1))
    return folder


def to_gguf(assay, folder, form):
    """A GGUF of this form (f32, q8_0, …) beside the folder."""
    path = folder.with_name(f"{folder.name}-{form}.gguf")
    subprocess.run([assay, "convert", folder, path, "--to", f"gguf:{form}", "--overwrite", "--progress", "never"], check=True,
                   capture_output=True)
    return path
