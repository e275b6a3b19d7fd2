"""Makes data/fixtures/perplexity/windows.json: the loss of tinylm-bf16 on the first 1,000 letters of heldout.txt, by `transformers`, under two rules for windows.

    python data/make_tinylm_windows.py

transformers: huggingface.co/docs/transformers/perplexity (every token once, and each as often as the others);
llama.cpp: tools/perplexity/perplexity.cpp (BOS in place of each window's first token, the second half counted).
"""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import DeepseekV3ForCausalLM
from transformers.utils import logging

DATA = Path(__file__).parent
CONTEXT, STRIDE, LETTERS = 64, 24, 1000


@torch.no_grad()
def nats(model, window):
    """-ln p of each token of the window but the first."""
    logits = model(torch.tensor([window]), use_cache=False).logits[0, :-1].double()
    return torch.nn.functional.cross_entropy(logits, torch.tensor(window[1:]), reduction="none")


def by_transformers(model, tokens):
    losses, counted = [], 1
    for begin in range(0, len(tokens), STRIDE):
        end = min(begin + CONTEXT, len(tokens))
        losses.append(nats(model, tokens[begin:end])[counted - end :])
        counted = end
        if end == len(tokens):
            break
    return torch.cat(losses)


def by_llama_cpp(model, tokens, bos):
    windows = [[bos, *tokens[at + 1 : at + CONTEXT]] for at in range(0, len(tokens) - CONTEXT + 1, CONTEXT)]
    return torch.cat([nats(model, window)[CONTEXT // 2 :] for window in windows])


def main():
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    folder = DATA / "tinylm-bf16"
    model = DeepseekV3ForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    bos = json.loads((folder / "config.json").read_text())["bos_token_id"]
    tokens = tokenizer.encode((DATA / "tinylm" / "heldout.txt").read_text()[:LETTERS]).ids
    tokens = tokens if tokens[0] == bos else [bos, *tokens]
    found = {"context": CONTEXT, "stride": STRIDE, "tokens": len(tokens)}
    for name, losses in (("transformers", by_transformers(model, tokens)), ("llama.cpp", by_llama_cpp(model, tokens, bos))):
        found[name] = {"tokens": len(losses), "loss": losses.mean().item()}
    (DATA / "fixtures" / "perplexity" / "windows.json").write_text(json.dumps(found, indent=2) + "\n")
    print(found)


if __name__ == "__main__":
    main()
