"""Writes data/fixtures/dumps: arrays as NumPy writes them, and activations of a tiny model as transformers gives them.

    python data/make_dump_fixtures.py

arrays/      one .npy of every kind of type, order and header version, the same in two .npz, and EXPECTED.tsv: type,
             shape and values as NumPy has them; refused/: what must not be read
llama/       data/models/llama: every module's output of one prompt (transformers.safetensors, the snippet of
             docs/dumps.md), and of two prompts padded on the left to one length (padded.npz)
maps/        the snippet's dumps of families with module names of their own, for the maps of docs/maps
"""

import json
import re
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import torch
from transformers import AutoModelForCausalLM

ROOT = Path(__file__).parent.parent
OUT = ROOT / "data" / "fixtures" / "dumps"
PROMPT = [0, 17, 42, 5, 5, 90, 61, 33, 8, 77, 12]
SECOND = [0, 3, 64, 28, 71, 9, 50]


def arrays():
    folder = OUT / "arrays"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    some = rng.standard_normal((2, 3, 4))
    made = {
        "f2": some.astype(np.float16), "f4": some.astype(np.float32), "f8": some,
        "bf16": some.astype(ml_dtypes.bfloat16), "big_f4": some.astype(">f4"), "big_i2": np.array([[1, -2, 300]], ">i2"),
        "e5m2": some.astype(ml_dtypes.float8_e5m2),
        "fortran": np.asfortranarray(some.astype(np.float32)), "big_fortran": np.asfortranarray(some.astype(">f8")),
        "bool": np.array([[True, False, True]]), "complex": np.array([1 + 2j, -3.5j], np.complex64),
        "scalar": np.float32(2.5), "empty": np.zeros((0, 3), np.float32), "vector": np.arange(5, dtype=np.int64) - 2,
    }
    for code in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
        made[code] = np.array([[0, 1, 100], [7, 120, 2]], code)
    rows = []
    for name, value in made.items():
        value = np.asarray(value)
        np.save(folder / f"{name}.npy", value)
        numbers = np.asarray(value.astype(np.complex64).view(np.float32) if value.dtype.kind == "c" else value.astype(np.float64))
        rows.append(f"{name}\t{','.join(map(str, value.shape))}\t{','.join(float(x).hex() for x in numbers.ravel(order='C'))}")
    for version in [(2, 0), (3, 0)]:
        with open(folder / f"version_{version[0]}.npy", "wb") as file:
            np.lib.format.write_array(file, made["f4"], version=version)
        rows.append(rows[1].replace("f4", f"version_{version[0]}", 1))
    (folder / "EXPECTED.tsv").write_text("\n".join(rows) + "\n")
    plain = {name: value for name, value in made.items() if name not in ("bf16", "e5m2")}
    np.savez(OUT / "stored.npz", **plain, **{"nested/name": made["f4"]})
    np.savez_compressed(OUT / "deflated.npz", **plain, zeros=np.zeros((64, 64), np.float32))
    refused = folder / "refused"
    refused.mkdir(exist_ok=True)
    np.save(refused / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save(refused / "records.npy", np.zeros(2, [("a", "f4"), ("b", "i2")]))
    np.save(refused / "text.npy", np.array(["a", "bc"]))
    np.save(refused / "e4m3.npy", some.astype(ml_dtypes.float8_e4m3fn))
    np.save(refused / "longdouble.npy", some.astype(np.longdouble))


def snippet():
    """The Python of docs/dumps.md between its marks: what users are shown is what is run."""
    text = (ROOT / "docs" / "dumps.md").read_text()
    return re.search(r"<!-- snippet: transformers -->\n```python\n(.*?)```", text, re.S).group(1)


def maps():
    folder = OUT / "maps"
    folder.mkdir(parents=True, exist_ok=True)
    for family in ["gemma2", "olmo2", "gpt2"]:
        sys.argv = ["dump.py", str(ROOT / "data" / "models" / family), "1,5,9,13,40", str(folder / f"{family}.safetensors")]
        exec(compile(snippet(), "docs/dumps.md", "exec"), {"__name__": "__main__"})


def activations():
    folder = OUT / "llama"
    folder.mkdir(parents=True, exist_ok=True)
    model_dir = ROOT / "data" / "models" / "llama"
    sys.argv = ["dump.py", str(model_dir), ",".join(map(str, PROMPT)), str(folder / "transformers.safetensors")]
    exec(compile(snippet(), "docs/dumps.md", "exec"), {"__name__": "__main__"})

    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32, attn_implementation="eager").eval()
    width = len(PROMPT) + 2
    ids = torch.tensor([[9] * (width - len(p)) + p for p in (SECOND, PROMPT)])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in (SECOND, PROMPT)])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    taps = {}
    for index, layer in enumerate(model.model.layers):
        def keep(_module, _inputs, output, name=f"layers.{index}.out"):
            taps[name] = (output[0] if isinstance(output, tuple) else output).detach().numpy().copy()
        layer.register_forward_hook(keep)
    model.model.embed_tokens.register_forward_hook(lambda m, i, o: taps.__setitem__("embed", o.detach().numpy().copy()))
    with torch.no_grad():
        taps["logits"] = model(ids, attention_mask=mask, position_ids=positions).logits.numpy()
    np.savez(folder / "padded.npz", attention_mask=mask.numpy(), **taps)
    (folder / "PROMPTS.json").write_text(json.dumps({"prompt": PROMPT, "second": SECOND}) + "\n")


if __name__ == "__main__":
    arrays()
    activations()
    maps()
