#!/usr/bin/env python3
"""Holds a running engine against its model in each precision that it serves, and prints the table of docs/logprobs.md.

    data/hold_engine.py ASSAY llama-server [OPTIONS]       the path of a llama-server: F32, BF16, Q8_0 and Q4_K_M of each model
    data/hold_engine.py ASSAY vllm [OPTIONS]               … of vLLM's program: float32 and bfloat16
    data/hold_engine.py ASSAY python --sglang [OPTIONS]    … of a Python that has SGLang: float32 and bfloat16

    --models NAMES     of data/fixtures/engines, by commas (default: all)
    --also TASKS       fingerprint, bench: run these, too, and say what they end with
    --options TEXT     more words for the server ("--no-enable-prefix-caching")
    --ask TEXT         more words for `assay compare endpoint` ("--longest 1500 --tokens 64")
    --port N           (default: 18090)

The models are made by rule (tiny_models/made_weights.py), so nothing is downloaded. Needs NumPy, and the engine. Exit code 1 where a
verdict is not OK and is not one of EXPECTED.
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from tiny_models import engine_models

# In which llama.cpp computes what it keeps so: activations go through 8 bits in blocks before products with quantized weights.
LLAMA_FORMS = {"f32": "f32", "bf16": "bf16", "q8_0": "int8-block", "q4_k_m": "int8-block"}
DTYPES = {"float32": "f32", "bfloat16": "bf16"}
# ggml's GELU is a table of float16.
EXPECTED = {("llama-server", "gemma2", "f32"): "failed"}
STARTING_SECONDS = 600


def llama_server(path, folder, form, port):
    gguf = engine_models.to_gguf(ASSAY, folder, form)
    return [path, "-m", gguf, "--alias", "m", "--port", port, "-ctk", "f32", "-ctv", "f32", "-fa", "off", "-np", "4", "-c", "8192", "-t", "1",
            "--no-warmup"]


def vllm(path, folder, dtype, port):
    return [path, "serve", folder, "--served-model-name", "m", "--dtype", dtype, "--port", port, "--enforce-eager"]


def sglang(path, folder, dtype, port):
    return [path, "-m", "sglang.launch_server", "--model-path", folder, "--served-model-name", "m", "--dtype", dtype, "--port", port, "--device",
            "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch", "--disable-overlap-schedule",
            "--mem-fraction-static", "0.3"]


def answers(url):
    try:
        return urllib.request.urlopen(url + "/health", timeout=10).status == 200
    except (urllib.error.URLError, OSError):
        return False


class Server:
    """Runs while it is held; its words go to a file that is named where it does not come up."""

    def __init__(self, words, url):
        self.log = tempfile.NamedTemporaryFile("w", suffix=".log", delete=False)
        self.process = subprocess.Popen([str(word) for word in words], stdout=self.log, stderr=subprocess.STDOUT)
        self.url = url

    def __enter__(self):
        until = time.monotonic() + STARTING_SECONDS
        while not answers(self.url):
            if self.process.poll() is not None or time.monotonic() > until:
                self.__exit__()
                sys.exit(f"the server does not come up: {self.log.name}")
            time.sleep(0.5)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def compare(url, folder, precision, more):
    """The document of `assay compare endpoint`."""
    run = subprocess.run([ASSAY, "compare", "endpoint", url, "--model", folder, "--precision", precision, "--json", "-", *more],
                         capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def row(form, precision, document):
    """Of all three ways of asking the worst."""
    sides = [each["against_model"] for each in document["sets"] if each["against_model"]]
    if not sides:
        return [form, precision, "", "", document["verdict"]]
    worst = max(side["worst"]["ratio"] for side in sides)
    beyond = max(side["beyond"] for side in sides)
    return [form, precision, f"{beyond} of {sides[0]['against_truth']['tokens']}", f"{worst:.2g}", document["status"]]


def last_line(words):
    run = subprocess.run([ASSAY, *words], capture_output=True, text=True)
    return (run.stdout.strip() or run.stderr.strip()).splitlines()[-1]


def also(task, url):
    if task == "fingerprint":
        return last_line(["fingerprint", url, "--progress", "never"])
    return last_line(["bench", url, "--requests", "16", "--concurrency", "4", "--prompt-tokens", "40", "--output-tokens", "12", "--progress",
                      "never"])


def main():
    global ASSAY
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("assay")
    parser.add_argument("program")
    parser.add_argument("--sglang", action="store_true")
    parser.add_argument("--models", default=",".join(engine_models.names()))
    parser.add_argument("--also", default="")
    parser.add_argument("--options", default="")
    parser.add_argument("--ask", default="")
    parser.add_argument("--port", default=18090)
    given = parser.parse_args()
    ASSAY = os.path.abspath(given.assay)
    kind = "sglang" if given.sglang else "llama-server" if "llama" in os.path.basename(given.program) else "vllm"
    start = {"sglang": sglang, "llama-server": llama_server, "vllm": vllm}[kind]
    forms = LLAMA_FORMS if kind == "llama-server" else DTYPES
    url, wrong = f"http://127.0.0.1:{given.port}", 0
    print("| model | served as | `--precision` | beyond their budget | the worst / its budget | |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as place:
        for name in given.models.split(","):
            folder = engine_models.make(ASSAY, name, pathlib.Path(place) / name)
            for form, precision in forms.items():
                words = start(given.program, folder, form, given.port) + shlex.split(given.options)
                with Server(words, url):
                    document = compare(url, folder, precision, shlex.split(given.ask)) if kind != "llama-server" else compare(
                        url, engine_models.to_gguf(ASSAY, folder, form), precision, shlex.split(given.ask))
                    print("| " + " | ".join([name, *row(form, precision, document)]) + " |", flush=True)
                    wrong += document["status"] != EXPECTED.get((kind, name, form), "passed")
                    for task in filter(None, given.also.split(",")):
                        print(f"  {task}: {also(task, url)}", flush=True)
    return 1 if wrong else 0


sys.exit(main())
