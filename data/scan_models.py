"""Models of flash-linear-attention and of mamba_ssm, built by their own code on the meta device: what make_own_code_oracle.py and
check_family_variants.py ask.

    pip install --no-deps flash-linear-attention==0.6.0 fla-core==0.6.0 einops     (kernels, which nothing here calls, need triton)
    git clone https://github.com/state-spaces/mamba                                (its folder on PYTHONPATH)
"""
import importlib
import sys
import types
import warnings

import torch
import transformers

FLA = ["GLA", "RetNet", "GSA", "HGRN", "HGRN2", "DeltaNet", "GatedDeltaNet", "GatedDeltaProduct", "Transformer", "RWKV6"]


class RMSNorm(torch.nn.Module):
    """mamba_ssm's, which are Triton's: a weight and nothing else."""

    def __init__(self, hidden_size, **kwargs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(hidden_size))


class Aside(types.ModuleType):
    """A module of which nothing is computed with."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return RMSNorm if name.startswith("RMSNorm") else lambda *a, **k: torch.nn.Identity()


def fla():
    """Imported with nothing registered: two of its model types are transformers' own."""
    register = transformers.AutoConfig.register, transformers.AutoModel.register, transformers.AutoModelForCausalLM.register
    for auto in (transformers.AutoConfig, transformers.AutoModel, transformers.AutoModelForCausalLM):
        auto.register = lambda *a, **k: None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = importlib.import_module("fla.models")
    transformers.AutoConfig.register, transformers.AutoModel.register, transformers.AutoModelForCausalLM.register = register
    importlib.import_module("fla.layers.attn").flash_attn_func = Aside("flash_attn")  # only asked whether it is there
    return models


def build_fla(document):
    values = {key: value for key, value in document.items() if key not in ("model_type", "architectures")}
    model_class = getattr(fla(), document["architectures"][0])
    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model_class(model_class.config_class(**values))


def build_mamba_ssm(document):
    for name in ("mamba_ssm.ops", "mamba_ssm.ops.selective_scan_interface", "mamba_ssm.ops.triton.layernorm_gated", "mamba_ssm.ops.triton.layer_norm",
                 "mamba_ssm.ops.triton", "mamba_ssm.ops.triton.ssd_combined", "mamba_ssm.ops.triton.selective_state_update",
                 "mamba_ssm.modules.mamba3", "mamba_ssm.utils.generation", "mamba_ssm.utils.hf", "mamba_ssm.distributed",
                 "mamba_ssm.distributed.tensor_parallel", "mamba_ssm.distributed.distributed_utils"):
        sys.modules.setdefault(name, Aside(name))
    sys.modules["mamba_ssm.utils.generation"].GenerationMixin = type("GenerationMixin", (), {})
    if "mamba_ssm" not in sys.modules:  # whose __init__ imports kernels
        package = types.ModuleType("mamba_ssm")
        package.__path__ = [folder + "/mamba_ssm" for folder in sys.path]
        sys.modules["mamba_ssm"] = package
    code = importlib.import_module("mamba_ssm.models.mixer_seq_simple")
    importlib.import_module("mamba_ssm.modules.mha").RotaryEmbedding = lambda *a, **k: torch.nn.Identity()  # angles, no weights
    kind = importlib.import_module("mamba_ssm.models.config_mamba").MambaConfig
    values = {key: value for key, value in document.items() if key not in ("architectures", "model_type")}
    with torch.device("meta"):
        return code.MambaLMHeadModel(kind(**values))


BUILDERS = {**{f"{name}ForCausalLM": build_fla for name in FLA}, "MambaLMHeadModel": build_mamba_ssm}


def make_scans(draw):
    """Odd configs of these, for check_family_variants.py."""
    chance = lambda p=0.5: draw.random() < p  # noqa: E731
    flags = lambda *names: {name: chance() for name in names if chance(0.7)}  # noqa: E731
    divisor = lambda n: draw.choice([d for d in range(1, n + 1) if n % d == 0])  # noqa: E731

    def common(heads, of=8):
        config = {"vocab_size": draw.randint(50, 300), "hidden_size": heads * of * draw.randint(1, 3), "num_hidden_layers": draw.randint(1, 5), "num_heads": heads}
        config["tie_word_embeddings"] = chance()
        if chance(0.6):
            config["intermediate_size"] = draw.randint(5, 90)
        elif chance():
            config["hidden_ratio"] = draw.randint(1, 9)
        return config

    def attends(config):
        if chance():
            heads = config["num_heads"]
            layers = sorted(draw.sample(range(config["num_hidden_layers"]), draw.randint(1, config["num_hidden_layers"])))
            config["attn"] = {"layers": layers, "num_heads": heads, "num_kv_heads": divisor(heads), "window_size": draw.choice([None, 7]), "qkv_bias": chance()}
        return config

    def convolutions():
        return {"conv_size": draw.randint(2, 5)} | flags("use_short_conv")

    def spread(grouped=True, key="expand_k"):
        heads = draw.choice([1, 2, 4])
        config = common(heads) | {key: draw.choice([0.5, 1, 1.5]), key[:-1] + "v": draw.choice([0.5, 1, 2.5])}
        return attends(config | ({"num_kv_heads": divisor(heads)} if grouped and chance() else {}))

    def gated(*options):
        config = common(draw.choice([1, 2, 3])) | {"head_dim": 2 * draw.randint(2, 6), "expand_v": draw.choice([0.5, 1, 2])}
        return attends(config | convolutions() | flags(*options))

    def gated_deltanet():
        config = gated("use_gate")
        return config | ({"num_v_heads": config["num_heads"] * draw.randint(1, 3)} if chance() else {})

    def hgrn2():
        ratio = draw.choice([4, 8, None])
        return attends(common(draw.choice([1, 2, 4])) | convolutions() | flags("use_lower_bound", "elementwise_affine") | {"expand_ratio": ratio})

    def transformer():
        heads = draw.choice([1, 2, 4, 6])
        return common(heads) | {"num_kv_heads": divisor(heads), "window_size": draw.choice([None, 9])} | flags("qkv_bias", "qk_norm")

    def rwkv6():
        config = common(draw.choice([1, 2, 4])) | flags("norm_first", "norm_bias")
        return config | {"expand_k": draw.choice([0.5, 1]), "expand_v": draw.choice([0.5, 1, 2]), "proj_low_rank_dim": draw.randint(2, 9), "gate_low_rank_dim": draw.randint(2, 9)}

    def mamba1():
        return flags("bias", "conv_bias") | {"d_state": draw.randint(2, 9), "d_conv": draw.randint(2, 5), "expand": draw.randint(1, 3), "dt_rank": draw.choice(["auto", 5])}

    def mamba2(hidden):
        sizes = {"layer": "Mamba2", "d_state": draw.randint(2, 9), "d_conv": draw.randint(2, 5), "headdim": draw.choice([4, 8]), "expand": draw.randint(1, 3)}
        return flags("bias", "conv_bias", "rmsnorm") | sizes | ({"ngroups": divisor(hidden // 8)} if chance() else {})

    def mamba_ssm():
        hidden, layers, heads = 24 * draw.randint(1, 3), draw.randint(1, 6), draw.choice([1, 2, 4])
        config = {"d_model": hidden, "n_layer": layers, "vocab_size": draw.randint(50, 300), "fused_add_norm": False} | flags("rms_norm", "tie_embeddings")
        config["ssm_cfg"] = draw.choice([{}, mamba1(), mamba2(hidden)])
        if chance():
            attend = {"num_heads": heads, "num_heads_kv": divisor(heads), "head_dim": draw.choice([4, 6]), "d_conv": draw.choice([0, 3, 4])}
            config["attn_layer_idx"] = draw.sample(range(layers), draw.randint(1, layers))
            config["attn_cfg"] = attend | flags("qkv_proj_bias", "out_proj_bias")
        return config | {"d_intermediate": draw.choice([0, 0, 60, 200]), "pad_vocab_size_multiple": draw.choice([1, 8, 16])}

    affine = lambda: flags("elementwise_affine")  # noqa: E731
    return {
        "gla": ("GLAForCausalLM", lambda: spread() | convolutions() | affine() | flags("use_output_gate", "fuse_norm")),
        "retnet": ("RetNetForCausalLM", lambda: spread() | affine() | flags("use_output_gate", "fuse_norm")),
        "gsa": ("GSAForCausalLM", lambda: spread(key="exapnd_k") | convolutions() | affine() | {"num_slots": draw.choice([None, 5, 9])}),
        "hgrn": ("HGRNForCausalLM", lambda: attends(common(draw.choice([1, 2])) | convolutions() | affine() | flags("use_lower_bound") | {"expand_ratio": draw.randint(1, 3)})),
        "hgrn2": ("HGRN2ForCausalLM", hgrn2),
        "delta_net": ("DeltaNetForCausalLM", lambda: spread(False) | convolutions() | flags("use_gate", "use_beta")),
        "gated_deltanet": ("GatedDeltaNetForCausalLM", gated_deltanet),
        "gated_deltaproduct": ("GatedDeltaProductForCausalLM", lambda: gated("use_output_gate", "use_forget_gate") | {"num_householder": draw.randint(1, 3)}),
        "transformer": ("TransformerForCausalLM", transformer),
        "rwkv6": ("RWKV6ForCausalLM", rwkv6),
        "state_spaces": ("MambaLMHeadModel", mamba_ssm),
    }
