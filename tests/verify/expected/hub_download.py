"""Has huggingface_hub itself make caches and --local-dir downloads, from a hub of two repositories on loopback.

    hub_download.py FOLDER     ->  FOLDER/cache, FOLDER/local, FOLDER/listing.json (the tree API's answer)
                                   of org/name, whole; and of org/sharded, by patterns:
                                   FOLDER/parts/<name>/{cache,local} for each name in PARTS

Exits with 77 where huggingface_hub is not installed.
"""
import hashlib
import json
import os
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "1234567890abcdef1234567890abcdef12345678"


def shard(number, count):
    """A safetensors file of one tensor."""
    values = bytes(range(number, 64 + number))
    name = f"layers.{number - 1}.weight"
    header = json.dumps({name: {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]}})
    header += " " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header.encode() + values


SHARDS = {f"model-{n:05d}-of-00002.safetensors": shard(n, 2) for n in (1, 2)}
INDEX = {
    "metadata": {"total_size": 128},
    "weight_map": {f"layers.{n}.weight": name for n, name in enumerate(SHARDS)},
}
REPOSITORIES = {
    "org/name": {
        "config.json": (b'{"model_type": "llama"}\n', False),
        "sub folder/notes.txt": (b"notes\n", False),
        "model.safetensors": (b"w" * 5000, True),
    },
    "org/sharded": {
        ".gitattributes": (b"*.safetensors filter=lfs\n", False),
        "README.md": (b"# A model\n", False),
        "config.json": (b'{"model_type": "llama"}\n', False),
        "tokenizer.json": (b"{}\n", False),
        "model.safetensors.index.json": (json.dumps(INDEX).encode(), False),
        "pytorch_model.bin.index.json": (
            b'{"metadata": {}, "weight_map": {"layers.0.weight": "pytorch_model-00001-of-00001.bin"}}',
            False,
        ),
        "pytorch_model-00001-of-00001.bin": (b"p" * 300, True),
        "onnx/model.onnx": (b"o" * 300, True),
        "original/consolidated.00.pth": (b"c" * 300, True),
        **{name: (data, True) for name, data in SHARDS.items()},
    },
}
# What users and libraries ask for, and (the last two) what leaves a model that cannot be loaded.
PARTS = {
    "transformers": {"allow_patterns": ["*.json", "*.safetensors"]},
    "no_pickles": {"ignore_patterns": ["*.bin", "*.pth", "onnx/*"]},
    "loader": {"allow_patterns": ["config.json", "model.safetensors.index.json", "model-*.safetensors"]},
    "one_shard": {"allow_patterns": ["*.json", "model-00001-*"]},
    "texts": {"allow_patterns": ["*.json", "*.md"]},
}


def git_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def entry(path, data, lfs):
    item = {"type": "file", "oid": git_id(data), "size": len(data), "path": path}
    if lfs:
        item["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 129}
    return item


def tree_of(repository):
    return [entry(path, data, lfs) for path, (data, lfs) in REPOSITORIES[repository].items()]


class Hub(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def answer(self, body, headers):
        self.send_response(200)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def do_GET(self):
        from urllib.parse import unquote, urlparse

        path = unquote(urlparse(self.path).path)
        repository = "/".join(path.removeprefix("/api/models").split("/")[1:3])
        files = REPOSITORIES[repository]
        if path.startswith(f"/api/models/{repository}/tree/"):
            return self.answer(json.dumps(tree_of(repository)).encode(), {"Content-Type": "application/json"})
        if path.startswith(f"/api/models/{repository}"):
            info = {"id": repository, "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
            return self.answer(json.dumps(info).encode(), {"Content-Type": "application/json"})
        name = path.split("/resolve/", 1)[1].split("/", 1)[1]
        data, lfs = files[name]
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{git_id(data)}"', "Content-Type": "application/octet-stream"}
        if lfs:
            headers |= {"X-Linked-Etag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Linked-Size": len(data)}
        self.answer(data, headers)

    do_HEAD = do_GET


def main(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    os.environ["HF_HOME"] = os.path.join(folder, "home")
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        sys.exit(77)
    snapshot_download("org/name", cache_dir=os.path.join(folder, "cache"))
    snapshot_download("org/name", local_dir=os.path.join(folder, "local"))
    with open(os.path.join(folder, "listing.json"), "w") as file:
        json.dump(tree_of("org/name"), file)
    for part, patterns in PARTS.items():
        place = os.path.join(folder, "parts", part)
        snapshot_download("org/sharded", cache_dir=os.path.join(place, "cache"), **patterns)
        snapshot_download("org/sharded", local_dir=os.path.join(place, "local"), **patterns)


main(sys.argv[1])
