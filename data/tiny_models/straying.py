"""How far two computations stray from a truth, where one text alone says little."""

import random

import torch

from . import choices, kin

TEXTS = 8  # more of a variant, where one strays too far


def moved(config, tensors, tokens, exact):
    """{tap: how far it strays} of the class in double, where every weight is moved by up to half a unit in its last place: what
    no order of operations can be held to. The larger of two."""
    strayed = {name: 0.0 for name in exact}
    generator = torch.Generator().manual_seed(1)
    for _ in range(2):
        shaken = {
            name: tensor.double() * (1 + (torch.rand(tensor.shape, dtype=torch.float64, generator=generator) - 0.5) * 2.0**-52)
            for name, tensor in tensors.items()
        }
        found = kin.exactly(config, shaken, tokens)
        for name, truth in exact.items():
            strayed[name] = max(strayed[name], (found[name] - truth).abs().max().item())
    return strayed


def by_token(logits, exact, tokens):
    """Of each token, its logits' root mean square error relative to their root mean square."""
    truth, found = exact.reshape(tokens, -1), logits.reshape(tokens, -1)
    return (found - truth).pow(2).mean(-1).sqrt() / truth.pow(2).mean(-1).sqrt()


class InBfloat16:
    """A text in bfloat16, by assay and by the class: of the tokens before the first that stands behind a choice which rounding
    turned in either. `run(tokens, precision)`: what assay computes."""

    def __init__(self, config, tensors, tokens, run):
        count = len(tokens)
        with choices.recorded() as right:
            exact = kin.exactly(config, tensors, tokens)
        with choices.recorded() as rounded:
            theirs = kin.in_bfloat16(config, tensors, tokens)
        ours = run(tokens, "bf16")
        turned = min(choices.turned_at(right, rounded, count), choices.turned_in_taps(run(tokens, "f64"), ours, count))
        self.before, self.turned = max(0, turned), turned < count
        self.truth, self.ours, self.theirs = (
            taps["logits"].reshape(count, -1)[: self.before] for taps in (exact, ours, theirs)
        )

    def ratio(self):
        """Of the largest errors; 0 where nothing is left to compare."""
        if self.before == 0:
            return 0.0
        return ((self.ours - self.truth).abs().max() / (self.theirs - self.truth).abs().max()).item()

    def errors(self):
        """Of each token, assay's and the class's: root mean squares of what its logits are off by, relative to theirs."""
        size = self.truth.pow(2).mean(-1).sqrt()
        return tuple((logits - self.truth).pow(2).mean(-1).sqrt() / size for logits in (self.ours, self.theirs))


def median_ratio(config, tensors, tokens, run):
    """Of what the median token is off by, in more texts of the same weights; 0 where no token is left to compare."""
    draw, errors = random.Random(1), []
    for _ in range(TEXTS):
        text = [draw.randrange(2, kin.words_of(config)) for _ in tokens]
        errors.append(InBfloat16(config, tensors, text, run).errors())
    ours, theirs = (torch.cat(each) for each in zip(*errors))
    return (ours.median() / theirs.median()).item() if len(ours) else 0.0
