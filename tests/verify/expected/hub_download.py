"""Has huggingface_hub itself make a cache and a --local-dir download, from a hub of one repository on loopback.

    hub_download.py FOLDER     ->  FOLDER/cache, FOLDER/local, FOLDER/listing.json (the tree API's answer)

Exits with 77 where huggingface_hub is not installed.
"""
import hashlib
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "1234567890abcdef1234567890abcdef12345678"
FILES = {
    "config.json": (b'{"model_type": "llama"}\n', False),
    "sub folder/notes.txt": (b"notes\n", False),
    "model.safetensors": (b"w" * 5000, True),
}


def git_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def entry(path, data, lfs):
    item = {"type": "file", "oid": git_id(data), "size": len(data), "path": path}
    if lfs:
        item["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 129}
    return item


TREE = [entry(path, data, lfs) for path, (data, lfs) in FILES.items()]


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
        if path.startswith("/api/models/org/name/tree/"):
            return self.answer(json.dumps(TREE).encode(), {"Content-Type": "application/json"})
        if path.startswith("/api/models/org/name"):
            info = {"id": "org/name", "sha": COMMIT, "siblings": [{"rfilename": name} for name in FILES]}
            return self.answer(json.dumps(info).encode(), {"Content-Type": "application/json"})
        name = path.split("/resolve/", 1)[1].split("/", 1)[1]
        data, lfs = FILES[name]
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
        json.dump(TREE, file)


main(sys.argv[1])
