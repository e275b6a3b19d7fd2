"""Makes data/fixtures/config_keys/transformers.tsv: which keys of config.json the classes of `transformers` know.

    python data/make_config_keys.py

Columns: model_type; key; `read`, where the code of the language model (attention, mask, rotary positions included) or the
config class itself looks at it, else `-`; the default of the config class, as JSON, `-` where it has none.
"""

import ast
import dataclasses
import inspect
import json
import re
import sys
from pathlib import Path

from transformers import modeling_rope_utils
from transformers.configuration_utils import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

OUT = Path(__file__).parent / "fixtures" / "config_keys" / "transformers.tsv"
MODEL_TYPES = [
    "afmoe", "apertus", "arcee", "axk1", "bamba", "bloom", "cohere", "cohere2", "cohere2_moe", "cwm", "dbrx", "deepseek_v2", "deepseek_v3", "deepseek_v32",
    "deepseek_v4", "dots1", "ernie4_5", "ernie4_5_moe", "exaone4", "exaone_moe", "falcon", "falcon_h1", "flex_olmo", "gemma", "gemma2", "gemma3_text",
    "gemma4_text", "glm", "glm4", "glm4_moe", "glm4_moe_lite", "glm_moe_dsa", "gpt2", "gpt_bigcode", "gpt_neox", "gpt_oss", "gptj",
    "granite", "granitemoe", "granitemoehybrid", "granitemoeshared", "helium", "hunyuan_v1_dense", "hunyuan_v1_moe", "hy_v3", "hyperclovax", "jais2",
    "kimi_linear", "lfm2", "llama", "llama4_text", "longcat_flash", "mamba", "mamba2", "mellum", "mimo_v2_flash", "minicpm3", "minimax_m2", "ministral", "ministral3", "mistral", "mistral4",
    "mixtral", "mpt", "nemotron", "nemotron_h", "olmo", "olmo2", "olmo3", "olmoe", "opt", "persimmon", "phi", "phi3", "phimoe", "qwen2",
    "qwen2_5_vl_text", "qwen2_moe", "qwen2_vl_text", "qwen3", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_moe", "qwen3_next",
    "qwen3_vl_moe_text", "qwen3_vl_text", "seed_oss", "smollm3", "solar_open", "stablelm", "starcoder2", "step3p5",
    "vaultgemma", "youtu",
    "aria_text", "axk2", "dots3_note_text", "glm5_next_text", "hy_v4", "bailing_hybrid", "biogpt", "bitnet", "codegen", "cohere_compass_text", "ctrl", "diffllama", "emu3_text_model",
    "flint", "glm4v_moe_text", "glm4v_text", "glm_ocr_text", "gpt_neo", "gpt_neox_japanese", "granite_swa",
    "granitemoe_swa", "hunyuan_vl_text", "kolibri1", "laguna", "lfm3", "minimax", "mllama_text_model",
    "modernbert-decoder", "nanochat", "openai-gpt", "paddleocr_vl_text", "qwen2_5_omni_text", "qwen3_omni_moe_text",
    "recurrent_gemma", "xglm", "zamba2",
    "mistral_large4_text", "qwen4_exp_text", "hrm_text",
    "ernie4_5_vl_moe_text", "inkling_text", "molmo2_text", "muse_glimmer_text", "muse_spark_text",
    "doge", "falcon_mamba", "jetmoe", "rwkv", "xlstm", "zamba", "zaya",
]
# Classes of a file that say nothing about the next token.
OTHER_HEADS = re.compile(
    r"Vision|ForSequenceClassification|ForTokenClassification|ForQuestionAnswering|DoubleHeads|SequenceSummary"
    r"|ConditionalGeneration|MultiModal|^Gemma3Model|^Llama4Model"
)
NO_KEYS = re.compile(r"^_|^(get_text_config|name_or_path|to_dict|rope_parameters_keys|per_layer_config|is_heterogeneous)$")
ROPE_KEYS = {"rope_scaling", "rope_theta", "original_max_position_embeddings"}  # RotaryEmbeddingConfigMixin moves them


def reads(tree):
    """config.X, self.config.X, getattr(config, "X"), kwargs.get("X"), kwargs.pop("X")"""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            if name == "config":
                found.add(node.attr)
        elif isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            if isinstance(node.func, ast.Name) and node.func.id == "getattr" and "config" in ast.unparse(node.args[0]):
                found.add(node.args[1].value)
    return found


def of_modeling(config_class):
    module = sys.modules[config_class.__module__]
    path = Path(module.__file__.replace("configuration_", "modeling_"))
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not OTHER_HEADS.search(node.name):
            found |= reads(node)
    return found


def of_config(config_class):
    """What the class makes other values of: self.X in its methods, kwargs it takes out."""
    source = inspect.getsource(config_class)
    found = set(re.findall(r"kwargs\.(?:get|pop)\(\s*\"(\w+)\"", source))
    for method in re.findall(r"\n    def .*?(?=\n    def |\Z)", source, re.S):
        found |= set(re.findall(r"self\.(\w+)\b(?!\()", method))
    return found


def rows(model_type):
    config_class = CONFIG_MAPPING[model_type]
    base = {field.name for field in dataclasses.fields(PreTrainedConfig)} - {"tie_word_embeddings"}
    fields = {field.name: field for field in dataclasses.fields(config_class)}
    aliases = getattr(config_class, "attribute_map", {})
    read = {aliases.get(key, key) for key in of_modeling(config_class) | of_config(config_class)}
    known = (set(fields) - base) | {key for key in read if key in fields or key in aliases.values()} | set(aliases)
    known |= {key for key in of_config(config_class) if f'("{key}"' in inspect.getsource(config_class)}
    known |= {key for key in of_modeling(config_class) if key in ("head_dim", "sliding_window", "layer_types")}
    if "rope_parameters" in fields:
        known |= ROPE_KEYS
        read |= ROPE_KEYS | {"rope_parameters"}
    for key in sorted(known):
        if NO_KEYS.search(key) or key in ("transformers_version", "architectures", "model_type"):
            continue
        field = fields.get(aliases.get(key, key)) or fields.get(key)
        default = "-"
        if field is not None and isinstance(field.default, (int, float, str, bool, type(None))):
            default = json.dumps(field.default)
        if key not in base:
            yield model_type, key, "read" if aliases.get(key, key) in read | {"tie_word_embeddings"} else "-", default


def main():
    assert modeling_rope_utils.ROPE_INIT_FUNCTIONS.keys() >= {"linear", "dynamic", "yarn", "longrope", "llama3"}
    lines = ["\t".join(row) for model_type in MODEL_TYPES if model_type in CONFIG_MAPPING for row in rows(model_type)]
    OUT.write_text("\n".join(lines) + "\n")
    print(len(lines), "keys of", len({line.split("\t")[0] for line in lines}), "classes")


if __name__ == "__main__":
    main()
