"""Makes fixtures/stores/: a small model, and what other programs write down about such a model: bills of materials by
cyclonedx-python-lib, spdx-tools and spdx-python-model, hashes by gguf's gguf_hash, a store by RamaLama's own code, a
download's bookkeeping by ModelScope's, layers packed by gzip and zstd.

    pip install cyclonedx-python-lib spdx-tools spdx-python-model gguf xxhash zstandard jinja2 modelscope
    pip install --no-deps ramalama argcomplete
    python data/make_store_fixtures.py

The same bytes every time, but for times and random identifiers in the documents.
"""

import datetime
import gzip
import hashlib
import io
import json
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

import gguf
import numpy
import xxhash
import zstandard
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.output.xml import XmlV1Dot6
from spdx_python_model import v3_0_1 as spdx3
from spdx_tools.spdx.model import (Actor, ActorType, Checksum, ChecksumAlgorithm, CreationInfo, Document, File, Package,
                                   Relationship, RelationshipType, SpdxNoAssertion)
from spdx_tools.spdx.writer.write_anything import write_file as write_spdx

OUT = Path(__file__).parent / "fixtures" / "stores"
MODEL = OUT / "model"
NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)


def safetensors(metadata, values):
    buffer = numpy.asarray(values, dtype="<f4").tobytes()
    if metadata is not None:
        metadata = dict(metadata, **{"modelspec.hash_sha256": "0x" + hashlib.sha256(buffer).hexdigest()})
    header = {"weight": {"dtype": "F32", "shape": [len(values)], "data_offsets": [0, len(buffer)]}}
    if metadata is not None:
        header["__metadata__"] = metadata
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + buffer


def make_model():
    MODEL.mkdir(parents=True)
    (MODEL / "model.safetensors").write_bytes(safetensors(None, range(300)))
    (MODEL / "config.json").write_text('{"note": "small"}\n')
    (MODEL / "docs").mkdir()
    (MODEL / "docs" / "README.md").write_text("# A small model\n")
    # As Stability-AI's ModelSpec has it: the hash is that of what follows the header.
    (OUT / "modelspec.safetensors").write_bytes(
        safetensors({"modelspec.sai_model_spec": "1.0.0", "modelspec.title": "small"}, range(100)))
    writer = gguf.GGUFWriter(OUT / "small.gguf", "llama")
    for i, size in enumerate((64, 37, 5)):
        writer.add_tensor(f"blk.{i}.attn_q.weight", numpy.arange(size, dtype=numpy.float32) + i)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def digest(algorithm, path):
    return hashlib.new(algorithm, path.read_bytes()).hexdigest()


def files():
    return sorted(p for p in MODEL.rglob("*") if p.is_file())


def make_cyclonedx():
    bom = Bom()
    model = Component(name="org/small", type=ComponentType.MACHINE_LEARNING_MODEL, bom_ref="model")
    for path in files():
        model.components.add(Component(
            name=str(path.relative_to(MODEL)), type=ComponentType.FILE,
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest("sha256", path)),
                    HashType(alg=HashAlgorithm.MD5, content=digest("md5", path))]))
    bom.components.add(model)
    bom.components.add(Component(name="torch", version="2.0", type=ComponentType.LIBRARY, hashes=[
        HashType(alg=HashAlgorithm.SHA_256, content="0" * 64)]))
    (OUT / "model.cdx.json").write_text(JsonV1Dot6(bom).output_as_string(indent=1) + "\n")
    (OUT / "model.cdx.xml").write_text(XmlV1Dot6(bom).output_as_string(indent=1) + "\n")


def make_spdx2(suffix, algorithms):
    info = CreationInfo("SPDX-2.3", "SPDXRef-DOCUMENT", "small", "https://example.org/small",
                        [Actor(ActorType.TOOL, "make_store_fixtures")], NOW)
    package = Package("SPDXRef-Package", "small", SpdxNoAssertion(), files_analyzed=False)
    listed = [File(f"./{path.relative_to(MODEL)}", f"SPDXRef-File-{i}",
                   [Checksum(ChecksumAlgorithm[a], digest(a.lower(), path)) for a in algorithms],
                   comment="FileChecksum: SHA256: in a text\nFileName: ./not-a-file")
              for i, path in enumerate(files())]
    document = Document(info, packages=[package], files=listed, relationships=[
        Relationship("SPDXRef-DOCUMENT", RelationshipType.DESCRIBES, "SPDXRef-Package")])
    write_spdx(document, str(OUT / f"model{suffix}"), validate=False)


def make_spdx3():
    creation = spdx3.CreationInfo(specVersion="3.0.1", created=NOW)
    agent = spdx3.SoftwareAgent(_id="https://example.org/tool", name="make_store_fixtures", creationInfo=creation)
    creation.createdBy.append(agent)
    objects = spdx3.SHACLObjectSet([agent])
    for i, path in enumerate(files()):
        objects.add(spdx3.software_File(
            _id=f"https://example.org/file{i}", name=str(path.relative_to(MODEL)), creationInfo=creation,
            verifiedUsing=[spdx3.Hash(algorithm=spdx3.HashAlgorithm.sha512, hashValue=digest("sha512", path))]))
    with open(OUT / "model.spdx3.json", "wb") as f:
        spdx3.JSONLDSerializer().write(objects, f, indent=1)


def make_gguf_hashes():
    by_gguf = subprocess.run([sys.executable, "-m", "gguf.scripts.gguf_hash", "small.gguf"], cwd=OUT,
                             capture_output=True, text=True, check=True, env=dict(os.environ, NO_LOCAL_GGUF="1"))
    (OUT / "small.gguf.gguf-py").write_text(by_gguf.stdout)
    # The format of llama.cpp's own gguf-hash (examples/gguf-hash/gguf-hash.cpp).
    lines, whole = [], b""
    for tensor in gguf.GGUFReader(OUT / "small.gguf").tensors:
        data = tensor.data.tobytes()
        whole += data
        lines += [f"{'xxh64':8}  {xxhash.xxh64(data).hexdigest()}  /models/small.gguf:{tensor.name}",
                  f"{'sha1':8}  {hashlib.sha1(data).hexdigest()}  /models/small.gguf:{tensor.name}",
                  f"{'sha256':8}  {hashlib.sha256(data).hexdigest()}  /models/small.gguf:{tensor.name}"]
    lines += [f"{'xxh64':8}  {xxhash.xxh64(whole).hexdigest()}  /models/small.gguf",
              f"{'sha256':8}  {hashlib.sha256(whole).hexdigest()}  /models/small.gguf"]
    (OUT / "small.gguf.manifest").write_text("\n".join(lines) + "\n")
    # XXH64 of 0, 1, 2, … bytes i * 7 mod 251: of each length a line.
    pattern = bytes(i * 7 % 251 for i in range(256))
    (OUT / "xxh64.txt").write_text("".join(xxhash.xxh64(pattern[:n]).hexdigest() + "\n" for n in range(200)))


def make_ramalama():
    os.environ["HOME"] = str(OUT)
    from ramalama.model_store.global_store import GlobalModelStore
    from ramalama.model_store.snapshot_file import LocalSnapshotFile, SnapshotFile, SnapshotFileType
    from ramalama.model_store.store import ModelStore

    class Given(LocalSnapshotFile):  # a download whose bytes are at hand, under the hash its source gave it
        def __init__(self, content, name, type, hash=None):
            super().__init__(content, name, type)
            self.hash = hash or self.hash.replace("sha256-", "sha256:")

    base = OUT / "ramalama"
    store = ModelStore(GlobalModelStore(str(base)), "small", "huggingface", "org")
    named = "sha256-" + hashlib.sha256(b"config.json").hexdigest()  # of its name, as RamaLama does for what is not in LFS
    store.new_snapshot("latest", "sha256:" + "1" * 64, [
        Given((OUT / "small.gguf").read_bytes(), "small.gguf", SnapshotFileType.GGUFModel),
        Given((MODEL / "config.json").read_bytes(), "config.json", SnapshotFileType.Other, named)], verify=False)
    ModelStore(GlobalModelStore(str(base)), "tiny", "ollama", "library").new_snapshot(
        "1b", "sha256:" + "2" * 64,
        [Given((OUT / "small.gguf").read_bytes()[:100], "tiny", SnapshotFileType.Other)], verify=False)
    for ref in base.rglob("refs/*.json"):  # no path of the machine it was made on
        ref.write_text(ref.read_text().replace(str(base), "/home/user/.local/share/ramalama"))


def make_modelscope():
    from modelscope.hub.utils.caching import ModelFileSystemCache
    cache = ModelFileSystemCache(str(OUT / "modelscope"), "org", "small")
    root = Path(cache.get_root_location())
    for path in files():
        target = root / path.relative_to(MODEL)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        cache.cached_files.append({"Path": str(path.relative_to(MODEL)), "Revision": "f01d" * 10})
    cache.save_cached_files()
    cache.save_model_version({"Revision": "master", "CreatedAt": 1700000000})
    (OUT / "modelscope.json").write_text(json.dumps({"Code": 200, "Data": {"Files": [
        {"Path": str(p.relative_to(MODEL)), "Name": p.name, "Type": "blob", "Size": p.stat().st_size,
         "Sha256": digest("sha256", p), "IsLFS": p.suffix == ".safetensors", "Revision": "f01d" * 10} for p in files()]
        + [{"Path": "docs", "Type": "tree", "Size": 0, "Sha256": ""}]}, "Success": True}, indent=1) + "\n")


def tar(members, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_layers():
    """A ModelPack layout with a layer of each packing."""
    root = OUT / "modelpack"
    blobs = root / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(data):
        name = hashlib.sha256(data).hexdigest()
        (blobs / name).write_bytes(data)
        return {"digest": "sha256:" + name, "size": len(data)}

    weights = (MODEL / "model.safetensors").read_bytes()
    config = (MODEL / "config.json").read_bytes()
    readme = (MODEL / "docs" / "README.md").read_bytes()
    long_name = "d" * 90 + "/" + "n" * 120 + ".txt"
    plain = [("weight", "raw", weights, "model.safetensors"),
             ("weight.config", "tar+gzip", tar([("config.json", config), (long_name, b"long")]), "config.json"),
             ("doc", "tar+zstd", tar([("docs/README.md", readme)], tarfile.GNU_FORMAT), "docs/README.md"),
             ("code", "tar", tar([("run.py.txt", b"pass\n"), (long_name, b"long")], tarfile.GNU_FORMAT), "run.py.txt")]
    pack = {"raw": lambda b: b, "tar": lambda b: b, "tar+gzip": lambda b: gzip.compress(b, mtime=0),
            "tar+zstd": zstandard.ZstdCompressor().compress}
    layers = [{"mediaType": f"application/vnd.cncf.model.{kind}.v1.{form}", **put(pack[form](data)),
               "annotations": {"org.cncf.model.filepath": title}} for kind, form, data, title in plain]
    described = json.dumps({"descriptor": {"name": "small"}, "config": {}, "modelfs": {
        "type": "layers", "diffIds": ["sha256:" + hashlib.sha256(data).hexdigest() for _, _, data, _ in plain]}})
    manifest = json.dumps({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                           "artifactType": "application/vnd.cncf.model.manifest.v1+json",
                           "config": {"mediaType": "application/vnd.cncf.model.config.v1+json", **put(described.encode())},
                           "layers": layers})
    (root / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (root / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [
        {"mediaType": "application/vnd.oci.image.manifest.v1+json", **put(manifest.encode()),
         "annotations": {"org.opencontainers.image.ref.name": "v1"}}]}))


def main():
    random.seed(1)
    shutil.rmtree(OUT, ignore_errors=True)
    make_model()
    make_cyclonedx()
    make_spdx2(".spdx.json", ["SHA1", "SHA256"])
    make_spdx2(".spdx", ["SHA1", "SHA256"])
    make_spdx2(".weak.spdx.json", ["SHA1", "MD5"])
    make_spdx3()
    make_gguf_hashes()
    make_ramalama()
    make_modelscope()
    make_layers()


if __name__ == "__main__":
    main()
