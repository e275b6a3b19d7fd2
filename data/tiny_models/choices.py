"""Choices that a model makes on its way, of experts and of keys, and which of them a rounding turned.

A choice is no sum: where two scores are nearer to each other than rounding, one computation takes this one and another
that one, and either is right. What comes behind, of this token and of later ones, is then another text's."""

import sys
from contextlib import contextmanager

import numpy as np
import torch

NOTHING = -1e30  # scores of what must not be chosen


@contextmanager
def recorded():
    """Yields a list of (scores, places, how many tokens stood before) of every torch.topk."""
    kept, seen = (torch.topk, torch.Tensor.topk), []

    def watched(pick):
        def topk(scores, *arguments, **options):
            result = pick(scores, *arguments, **options)
            token = sys._getframe(1).f_locals.get("query_idx")  # Qwen4-Exp goes query by query
            seen.append((scores.detach().double(), result.indices.detach().clone(), token))
            return result

        return topk

    torch.topk, torch.Tensor.topk = watched(torch.topk), watched(torch.Tensor.topk)
    try:
        yield seen
    finally:
        torch.topk, torch.Tensor.topk = kept


def rows_of(choice, tokens):
    """(token, scores, places) of each; a token of -1 may be any."""
    scores, places, token = choice
    leading = places.shape[:-1]
    axes = [axis for axis, size in enumerate(leading) if size == tokens]
    flat_scores, flat_places = scores.reshape(-1, scores.shape[-1]), places.reshape(-1, places.shape[-1])
    for row, (s, p) in enumerate(zip(flat_scores, flat_places)):
        at = token if token is not None else -1
        if token is None and axes:
            at = int(np.unravel_index(row, leading)[axes[-1]])
        elif token is None and len(flat_places) % tokens == 0 and leading:
            at = row % tokens if len(flat_places) == tokens else -1
        yield at, s, p


def picked(scores, places):
    return {place for place in places.tolist() if scores[place] > NOTHING}


def turned_at(exact, rounded, tokens):
    """The first token that another choice was made for; `tokens` where there is none."""
    first = tokens
    for one, other in zip(exact, rounded):
        if one[1].shape != other[1].shape:
            return -1
        for (at, scores, places), (_, others, other_places) in zip(rows_of(one, tokens), rows_of(other, tokens)):
            if picked(scores, places) != picked(others, other_places):
                first = min(first, at)
    return first


def tied(choices, tokens):
    """Whether the last of the picked and the best of the rest score the same to the last digits: which is taken, nobody promises."""
    for choice in choices:
        for _, scores, places in rows_of(choice, tokens):
            count, ordered = len(places), scores.sort(descending=True).values
            if count < len(ordered) and ordered[count] > NOTHING:
                apart = (ordered[count - 1] - ordered[count]).item()
                if apart <= 1e-13 * scores[scores > NOTHING].abs().max().item():
                    return True
    return False


def turned_in_taps(exact, rounded, tokens):
    """As turned_at(), of two runs of assay."""
    first = tokens
    for name, truth in exact.items():
        if name.endswith(("router_weights", "index_keys")):
            kinds = (truth.reshape(tokens, -1), rounded[name].reshape(tokens, -1))
            one, other = (rows != 0 if name.endswith("weights") else rows for rows in kinds)
            differs = (one != other).any(-1).nonzero()
            first = min([first, *differs.flatten().tolist()])
    return first
