#!/usr/bin/env python3
"""What a running server answers to a fixed set of requests, kept as data/fixtures/engines/ENGINE/MODEL-PRECISION.json.

    data/record_engines.py model ASSAY qwen3 FOLDER                 makes the model that the server is to serve (NumPy)
    vllm serve FOLDER --served-model-name m --dtype float32 --enforce-eager   … or SGLang, or llama-server with a GGUF of it, as "m"
    data/record_engines.py answers ASSAY http://127.0.0.1:8000 FOLDER qwen3 f32

The fixed requests are those whose answers `assay compare logprobs` reads when they are saved. Those that `assay compare endpoint` sends
are kept as they pass by: a proxy stands between it and the server. tests/refimpl/serve/recorded_engines_test.cpp reads all of them,
and holds them against the model, which it makes again (tiny_models/made_weights.py). No key of an answer is left out except those
of DROPPED; requests are kept without their salt, which is drawn.
"""
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request

from tiny_models import engine_models

HERE = pathlib.Path(__file__).resolve().parent
PROMPT = [54, 259, 223, 316, 267, 84]  # "The river" as tinylm's tokenizer has it
HALVES = [54, 259, 163]  # behind which qwen3 writes halves of characters
PROMPTS = ["The river", "Fluss, 河"]
CHAT = [{"role": "user", "content": "The river"}]
DROPPED = {"id", "created", "text_offset", "generation_settings", "timings", "e2e_latency", "server_info", "weight_version", "metadata"}
IDS = {"return_token_ids": True, "return_tokens_as_token_ids": True}
STREAM = {"stream": True, "stream_options": {"include_usage": True}}


def completions(**more):
    return "/v1/completions", {"model": "m", "prompt": PROMPT, "max_tokens": 6, "temperature": 0, **more}


def chat(**more):
    body = {"model": "m", "messages": CHAT, "max_tokens": 6, "temperature": 0, "logprobs": True, "top_logprobs": 2, **more}
    return "/v1/chat/completions", body


COMMON = {
    "what it writes": completions(logprobs=2),
    "what it writes, with ids": completions(logprobs=2, **IDS),
    "a chat": chat(),
    "a stream": completions(logprobs=1, return_token_ids=True, **STREAM),
    "a stream of a chat": chat(**STREAM),
}
REQUESTS = {
    "vllm": COMMON | {
        "echo": completions(logprobs=2, echo=True, **IDS),
        "echo by text": completions(logprobs=2, echo=True),
        "echo of the prompt alone": completions(logprobs=1, echo=True, max_tokens=0, **IDS),
        "prompt_logprobs": completions(logprobs=1, prompt_logprobs=1, return_token_ids=True),
        "no candidates": completions(logprobs=0, prompt_logprobs=0, return_token_ids=True),
    },
    "sglang": COMMON | {
        "generate": ("/generate", {"input_ids": PROMPT, "sampling_params": {"max_new_tokens": 6, "temperature": 0}, "return_logprob": True,
                                   "logprob_start_len": 0, "top_logprobs_num": 2}),
        "generate, behind the prompt": ("/generate", {"input_ids": PROMPT, "sampling_params": {"max_new_tokens": 6, "temperature": 0},
                                                      "return_logprob": True, "top_logprobs_num": 1, "return_text_in_logprobs": True}),
        "echo": completions(logprobs=2, echo=True, **IDS),
        "echo by text": completions(logprobs=2, echo=True),
    },
    "llama-server": COMMON | {
        "completion": ("/completion", {"prompt": PROMPT, "n_predict": 12, "temperature": 0, "n_probs": 2, "return_tokens": True}),
        "completion with halves": ("/completion", {"prompt": HALVES, "n_predict": 8, "temperature": 0, "n_probs": 2, "return_tokens": True}),
        "completion, some left out": ("/completion", {"prompt": HALVES, "n_predict": 8, "temperature": 0, "n_probs": 2}),
        "after samplers": ("/completion", {"prompt": PROMPT, "n_predict": 4, "temperature": 0.5, "n_probs": 2, "post_sampling_probs": True,
                                           "seed": 1}),
    },
}

FEW = {"echo", "what it writes, with ids", "completion"}  # in other precisions than f32


def ask(url, route, body=None):
    """(status, text) of a POST, or of a GET without a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + route, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def engine_of(url):
    """Which engine answers there, and its version in its own words."""
    for engine, route, key in [("sglang", "/get_server_info", "version"), ("llama-server", "/props", "build_info"), ("vllm", "/version", "version")]:
        status, text = ask(url, route)
        if status == 200 and key in (told := json.loads(text)):
            return engine, told[key]
    sys.exit(f"{url}: neither vLLM nor SGLang nor llama-server")


def kept(value):
    if isinstance(value, dict):
        return {key: kept(part) for key, part in value.items() if key not in DROPPED or (key == "id" and isinstance(part, int))}
    return [kept(part) for part in value] if isinstance(value, list) else value


def exchange(name, route, body, status, text):
    """A stream is kept as the text of its events, anything else as JSON."""
    answer = text if body.get("stream") and status == 200 else kept(json.loads(text))
    return {"name": name, "route": route, "asked": {key: value for key, value in body.items() if key != "cache_salt"}, "status": status,
            "answer": answer}


class Passing(http.server.BaseHTTPRequestHandler):
    """Hands requests on to the server, and keeps those that are POSTed, each once."""
    protocol_version = "HTTP/1.1"
    url, passed = "", []

    def answer(self, body=None):
        status, text = ask(self.url, self.path, body)
        if body is not None:
            one = exchange("", self.path, body, status, text)
            if all(one["route"] != old["route"] or one["asked"] != old["asked"] for old in self.passed):
                self.passed.append(one)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, *_):
        pass


def compare_endpoint(assay, url, model, precision):
    """What `assay compare endpoint` asks and is answered, and its verdict."""
    Passing.url = url
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as prompts:
        prompts.write("\n".join(PROMPTS))
        prompts.flush()
        run = subprocess.run([assay, "compare", "endpoint", f"http://127.0.0.1:{server.server_port}", "--model", model, "--precision", precision,
                              "--prompts", prompts.name, "--tokens", "5"], capture_output=True, text=True)
    server.shutdown()
    print(run.stdout + run.stderr)
    return Passing.passed


def main():
    if len(sys.argv) == 5 and sys.argv[1] == "model":
        return engine_models.make(sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]))
    if len(sys.argv) != 7 or sys.argv[1] != "answers":
        sys.exit(__doc__)
    assay, url, model, name, precision = sys.argv[2:]
    engine, version = engine_of(url)
    fixed = {what: request for what, request in REQUESTS[engine].items() if precision == "f32" or what in FEW}
    exchanges = [exchange(what, route, body, *ask(url, route, body)) for what, (route, body) in fixed.items()]
    exchanges += compare_endpoint(assay, url, model, precision)
    path = HERE / "fixtures/engines" / engine / f"{name}-{precision}.json"
    path.parent.mkdir(exist_ok=True)
    head = {"engine": engine, "version": version, "model": name, "precision": precision, "prompts": PROMPTS}
    lines = ",\n".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in exchanges)
    path.write_text(json.dumps(head, ensure_ascii=False)[:-1] + ', "exchanges": [\n' + lines + "\n]}\n")
    print(f"{path}: {len(exchanges)} requests, {path.stat().st_size} bytes")


main()
