"""LOSSES.md: what was trained, how well, and with what."""

import math

import safetensors
import tokenizers
import torch
import transformers


def write_losses(path, facts):
    count, history = facts["parameters"], facts["history"]
    last = history[-20:]
    mean = [sum(pair[index] for pair in last) / len(last) for index in (0, 1)]
    rows = [f"| {name} | {main:.4f} | {math.exp(main):.3f} | {mtp:.4f} |" for name, (main, mtp) in facts["results"].items()]
    biases = [f"| `{name}` | {min(values):+.3f} | {max(values):+.3f} |" for name, values in facts["bias"].items()]
    path.write_text(f"""# tinylm: how it was trained, and how good it is

Written by `data/train_tinylm.py`; seed {facts["seed"]}, {facts["steps"]} steps of {facts["batch"]} x {facts["length"]} tokens on two
{facts["processor"]} cores, torch {torch.__version__.split("+")[0]}, transformers {transformers.__version__}, \
tokenizers {tokenizers.__version__}, safetensors {safetensors.__version__}.

Parameters: {count["main"]:,} in the main model (routing biases included), {count["mtp"]:,} in the MTP layer;
{count["copies"]:,} more are the stored copies of embedding and head.
Text: {facts["training"][0]:,} stories, {facts["training"][1]:,} tokens; held out: {facts["heldout"][0]} stories (`heldout.txt`, one a paragraph),
{facts["heldout"][1]:,} predicted tokens.

## Losses

In nats per token. Training, mean of the last {len(last)} steps: main {mean[0]:.4f}, MTP {mean[1]:.4f} (first step: main {history[0][0]:.4f},
MTP {history[0][1]:.4f}). Held out, each story alone as BOS, text, EOS, computed in float32; the main model is scored on every
token after BOS, the MTP layer, which predicts the token after next, on every token after the first:

| weights | main | perplexity | MTP |
|---|---|---|---|
{chr(10).join(rows)}
| token frequencies alone | {facts["unigram"]:.4f} | {math.exp(facts["unigram"]):.3f} | |

## Routing biases

Moved by the update rule alone, 0.001 a step:

| tensor | least | greatest |
|---|---|---|
{chr(10).join(biases)}

## Greedy continuation

FP8 weights, dequantized to float32:

> {facts["prompt"]} **{facts["continuation"].strip()}**
""")
