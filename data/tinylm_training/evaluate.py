"""What LOSSES.md and golden.json report: losses per story, greedy text, logits in float32 and double."""

import math

import torch
from torch.nn.functional import cross_entropy

from .model import double_precision


def encode_story(tokenizer, text):
    """BOS, the story, EOS: the unit every loss is measured on."""
    return [*tokenizer.encode(text).ids, tokenizer.token_to_id("<｜end▁of▁sentence｜>")]


@torch.no_grad()
def losses(model, sequences):
    """Mean negative log likelihood per token: the main model's of every token after BOS, the MTP layer's of every
    token after the first."""
    total = torch.zeros(2, dtype=torch.float64)
    count = [0, 0]
    for sequence in sequences:
        tokens = torch.tensor([sequence])
        main, mtp = (logits[0].double() for logits in model(tokens))
        total[0] += cross_entropy(main[:-1], tokens[0, 1:], reduction="sum")
        total[1] += cross_entropy(mtp[:-1], tokens[0, 2:], reduction="sum")
        count[0] += len(sequence) - 1
        count[1] += len(sequence) - 2
    return (total[0] / count[0]).item(), (total[1] / count[1]).item()


def unigram_loss(training, heldout, vocab_size):
    """The best a model without context can do: held-out loss under the training text's token frequencies (+1)."""
    counts = [1] * vocab_size
    for sequence in training:
        for token in sequence[1:]:
            counts[token] += 1
    total = sum(counts)
    tokens = [token for sequence in heldout for token in sequence[1:]]
    return -sum(math.log(counts[token] / total) for token in tokens) / len(tokens)


@torch.no_grad()
def greedy(model, tokens, count):
    """The `count` most likely tokens, one after the other, each from the whole sequence anew (no cache)."""
    tokens = list(tokens)
    for _ in range(count):
        logits = model.main(torch.tensor([tokens]), use_cache=False).logits[0, -1]
        tokens.append(int(logits.argmax()))
    return tokens[-count:]


@torch.no_grad()
def golden(model, tokens, greedy_count):
    """The last position's logits, in float32 as transformers computes them and in double throughout, and greedy tokens.

    The MTP layer's last position is the one before: there it sees the last token and predicts the one after next.
    """
    batch = torch.tensor([tokens])
    main32, mtp32 = (logits[0, -1] for logits in model(batch))
    with double_precision(model):
        main64, mtp64 = (logits[0, -1] for logits in model(batch))

    def described(single, double):
        return {
            "top5": [
                {"id": index, "logit_f32": single[index].item(), "logit_f64": double[index].item()}
                for index in double.topk(5)[1].tolist()
            ],
            "logits_f64": [round(value, 9) for value in double.tolist()],
            "largest_difference_f32": float(f"{(single - double).abs().max().item():.3g}"),
        }

    return {
        "last": described(main32, main64),
        "mtp_last": described(mtp32, mtp64),
        "greedy": greedy(model, tokens, greedy_count),
    }
