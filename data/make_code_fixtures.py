"""Files that run code when they are loaded, and harmless ones that look alike, as Python and NumPy write them.

Writes data/fixtures/code/: what `assay verify` must name (code_*), and must not (plain_*). The pickles call
nothing harmful: they hold numbers, a range and a date.
"""

import datetime
import io
import pathlib
import pickle
import zipfile

import numpy as np

OUT = pathlib.Path(__file__).parent / "fixtures" / "code"


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    value = {"weights": [1.5, -2, 2**70], "name": "x\ny", "when": datetime.date(2024, 1, 2), "r": range(3)}
    many = [f"token {i}" for i in range(2000)]
    for protocol in range(6):
        (OUT / f"code_pickle{protocol}.bin").write_bytes(pickle.dumps(value, protocol))
    (OUT / "code_long0.bin").write_bytes(pickle.dumps(many, 0)[:8192])
    (OUT / "code_long1.bin").write_bytes(pickle.dumps(many, 1)[:8192])

    objects = np.array([1, "two", None], dtype=object)
    np.save(OUT / "code_object.npy", objects)
    np.save(OUT / "code_record.npy", np.array([(1, None)], dtype=[("n", "<i4"), ("o", "O")]))
    np.savez(OUT / "code_object.npz", plain=np.zeros(3), objects=objects)
    np.savez_compressed(OUT / "code_object_compressed.npz", plain=np.zeros(3), objects=objects)
    with zipfile.ZipFile(OUT / "code_late.bin", "w") as archive:  # the pickle lies beyond the first 4096 bytes
        archive.writestr("a/first", bytes(6000))
        archive.writestr("a/second", pickle.dumps(value, 0))

    np.save(OUT / "plain_floats.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(OUT / "plain_record.npy", np.array([(1, 2.0)], dtype=[("n", "<i4"), ("f", "<f8")]))
    np.savez(OUT / "plain.npz", a=np.zeros(3), b=np.ones(2))
    (OUT / "plain_floats.bin").write_bytes(np.arange(2000, dtype=np.float32).tobytes())
    (OUT / "plain_zeros.bin").write_bytes(bytes(64))
    text = io.StringIO()
    text.write("(C) 2024 Nobody. I am a licence.\nVersion 1\n.\n")
    (OUT / "plain_licence.bin").write_text(text.getvalue())
    (OUT / "plain_sentence.bin").write_text("Nothing.\nc\nd\n.")


if __name__ == "__main__":
    main()
