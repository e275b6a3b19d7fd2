"""golden/transformers.safetensors: what `transformers` computes of a model folder, in three precisions."""

import json
import tempfile
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, DeepseekV3Config, DeepseekV3ForCausalLM
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter

from . import mtp, taps
from .precision import everything_double

GREEDY_COUNT = 64
LEAST_VARIED = 12  # different tokens in a greedy text, lest it say nothing
LONG = 32  # a prompt of so many tokens is there to cross a context length: logits only
FAR = 100  # beyond, float64 alone: of so many choices of keys some are always near a tie
SMALLEST_GAP = 2e-3  # between the two likeliest tokens of every greedy step, so that float32 must take the same one


def load(folder, dtype):
    """The model in `folder`, with plain attention and plain experts. Kimi-K2 has DeepSeek-V3's class."""
    options = {"dtype": dtype, "attn_implementation": "eager", "experts_implementation": "eager"}
    values = json.loads((Path(folder) / "config.json").read_text())
    if values["model_type"] == "kimi_k2":
        values["model_type"] = "deepseek_v3"
        return DeepseekV3ForCausalLM.from_pretrained(folder, config=DeepseekV3Config(**values), **options).eval()
    return AutoModelForCausalLM.from_pretrained(folder, **options).eval()


@torch.no_grad()
def _run(model, tokens):
    with taps.recorded(model) as taken:
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0]
    return logits, taken


@torch.no_grad()
def greedy(model, tokens):
    """The likeliest tokens, each from the whole sequence anew, and the smallest lead of a winner."""
    tokens, gap = list(tokens), float("inf")
    for _ in range(GREEDY_COUNT):
        best = model(torch.tensor([tokens]), use_cache=False).logits[0, -1].topk(2)
        gap = min(gap, (best.values[0] - best.values[1]).item())
        tokens.append(int(best.indices[0]))
    return tokens[-GREEDY_COUNT:], gap


def _same_choices(rough, exact):
    chosen = (name for name in exact if name.endswith(("router_choice", "index_keys")))
    return all(torch.equal(rough[name], exact[name]) for name in chosen)


@contextmanager
def rounded_otherwise(model, seed):
    """Every product off by up to half a unit more in bfloat16's last place: as code does that rounds elsewhere."""
    generator = torch.Generator().manual_seed(seed)

    def shift(_module, _inputs, output):
        noise = torch.rand(output.shape, generator=generator, dtype=torch.float32) - 0.5
        return (output.to(torch.float32) * (1 + noise * 2**-7)).to(output.dtype)

    handles = [module.register_forward_hook(shift) for module in model.modules() if isinstance(module, torch.nn.Linear)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def steady_choices(half, tokens, exact):
    """DeepSeek-V4 and LongCat choose so often that what code rounds where would decide about some."""
    if half.config.model_type not in ("deepseek_v4", "longcat_flash"):
        return True
    for seed in range(6):
        with rounded_otherwise(half, seed):
            if not _same_choices(_run(half, tokens)[1], exact):
                return False
    return True


@contextmanager
def routing_of_transformers_4():
    """Releases 4.x gave experts outside the chosen groups the score 0, where 5 gives -inf: with enough negative
    biases they are chosen all the same. Which of them, torch.topk leaves open; here the first."""

    def forward(self, hidden):
        logits = torch.nn.functional.linear(hidden.view(-1, self.hidden_dim), self.weight)
        scores = logits.sigmoid()
        choice = (scores + self.e_score_correction_bias).unflatten(-1, (self.num_group, -1))
        best = choice.topk(2, dim=-1).values.sum(-1).topk(self.topk_group, dim=-1).indices
        allowed = torch.zeros(choice.shape[:2], dtype=torch.bool).scatter_(1, best, True).unsqueeze(-1)
        ranked = torch.where(allowed, choice, 0.0).flatten(1).sort(dim=-1, descending=True, stable=True)
        chosen = ranked.indices[:, : self.top_k]
        weights = scores.gather(1, chosen)
        return logits, weights / (weights.sum(-1, keepdim=True) + 1e-20) * self.routed_scaling_factor, chosen

    kept = DeepseekV3TopkRouter.forward
    DeepseekV3TopkRouter.forward = forward
    try:
        yield
    finally:
        DeepseekV3TopkRouter.forward = kept


class Golden:
    """The model of one folder (plain, decoded weights) in three precisions, and what they make of a prompt."""

    def __init__(self, folder, mtp_tensors=None):
        self.mtp = None
        with everything_double():
            self.double = load(folder, torch.float64)
            if mtp_tensors is not None:
                prefix = f"model.layers.{self.double.config.num_hidden_layers}"
                self.mtp = mtp.load(self.double, mtp_tensors, prefix, torch.float64)
        self.single = load(folder, torch.float32)
        self.half = load(folder, torch.bfloat16)

    def of(self, tokens, with_taps):
        """Everything measured on one prompt; None if it is ill-conditioned: a near tie in routing or in a greedy step,
        which rounding may turn; or a text that repeats itself."""
        if len(tokens) > FAR:
            with everything_double():
                return {"tokens": torch.tensor(tokens, dtype=torch.int32), "logits.f64": _run(self.double, tokens)[0].clone()}
        logits16, taps16 = _run(self.half, tokens)
        with everything_double():
            logits64, taps64 = _run(self.double, tokens)
            assert all(t.dtype in (torch.float64, torch.int64) for t in taps64.values())
            if not _same_choices(taps16, taps64):
                return None
        if not steady_choices(self.half, tokens, taps64):
            return None
        with everything_double():
            chosen, gap = greedy(self.double, tokens) if with_taps else (None, 1.0)
            out = self._mtp(tokens)
            if self.mtp is not None and self.double.config.model_type == "deepseek_v3":
                with routing_of_transformers_4():
                    out["logits_transformers4.f64"] = _run(self.double, tokens)[0]
                if (out["logits_transformers4.f64"] - logits64).abs().max() < 0.1:
                    return None  # it must show
        logits32, taps32 = _run(self.single, tokens)
        if not _same_choices(taps32, taps64) or gap < SMALLEST_GAP or (with_taps and len(set(chosen)) < LEAST_VARIED):
            return None
        if with_taps and greedy(self.single, tokens)[0] != chosen:
            return None
        largest = logits64.abs().max().item()
        error = [(logits - logits64).abs().max().item() / largest for logits in (logits32, logits16)]
        print(f"  {len(tokens)} tokens: max|logit| {largest:.2f}, f32 off {error[0]:.1e}, bf16 off {error[1]:.1e}")
        assert error[0] < 5e-5, error
        out |= {"tokens": torch.tensor(tokens, dtype=torch.int32), "logits.f64": logits64}
        if with_taps:
            out |= {"logits.f32": logits32.float(), "logits.bf16": logits16.float()}
            out |= {"greedy": torch.tensor(chosen, dtype=torch.int32), **taps.as_stored(taps64)}
        return {name: value.contiguous().clone() for name, value in out.items()}

    def _mtp(self, tokens):
        if self.mtp is None:
            return {}
        batch = torch.tensor([tokens])
        if self.double.config.model_type != "deepseek_v3":
            return {"mtp_logits.f64": mtp.logits(self.double, self.mtp, batch, zero_first=False)}
        return {
            "mtp_logits.f64": mtp.logits(self.double, self.mtp, batch, zero_first=False),
            "mtp_logits_vllm.f64": mtp.logits(self.double, self.mtp, batch, zero_first=True),
        }


def write_plain(config, tensors, folder):
    """A folder `transformers` loads without any quantization; in F64, which holds every stored value and which the reader
    of F32 inside everything_double() is not led astray by."""
    plain = {key: value for key, value in config.items() if key != "quantization_config"}
    (Path(folder) / "config.json").write_text(json.dumps(plain, indent=2) + "\n")
    save_file({n: (t.double() if t.is_floating_point() else t).contiguous() for n, t in tensors.items()}, Path(folder) / "model.safetensors", {"format": "pt"})


def search(config, decoded, prompts, with_mtp):
    """The golden tensors of the first of `prompts` (lists of tokens) that is well-conditioned."""
    with tempfile.TemporaryDirectory() as folder:
        write_plain(config, decoded, folder)
        model = Golden(folder, decoded if with_mtp else None)
        for attempt, tokens in enumerate(prompts):
            found = model.of(tokens, with_taps=len(tokens) < LONG)
            if found is not None:
                return found
        raise SystemExit(f"none of {attempt + 1} prompts stays clear of ties")
