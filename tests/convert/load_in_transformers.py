"""Loads quantized folders and their decoded twins in transformers and says whether their weights are the same.

    load_in_transformers.py QUANTIZED DECODED …    exits 0: same weights and, for compressed-tensors, a config that its own
                                                   classes write back unchanged; 77: a package is not here
"""
import json
import pathlib
import sys

try:
    import compressed_tensors.quantization
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText
except ImportError as missing:
    print(missing)
    sys.exit(77)


def without_nulls(value):
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def check(quantized, decoded):
    whole = json.loads((quantized / "config.json").read_text())
    config = whole["quantization_config"]
    sees = whole["architectures"][0].endswith("ForConditionalGeneration")
    loader = AutoModelForImageTextToText if sees else AutoModelForCausalLM
    if config["quant_method"] == "compressed-tensors":
        again = compressed_tensors.quantization.QuantizationConfig.model_validate(config).model_dump(mode="json")
        if without_nulls(again) != without_nulls(config):
            sys.exit(f"compressed-tensors writes the config otherwise:\n{again}\n{config}")
    models = []
    for folder in (quantized, decoded):
        model, info = loader.from_pretrained(folder, dtype=torch.bfloat16, output_loading_info=True)
        if info["missing_keys"] or info["unexpected_keys"] or info["mismatched_keys"]:
            sys.exit(f"{folder}: {info}")
        models.append(model.eval())
    tokens = torch.arange(2, 26).view(1, -1)
    with torch.no_grad():
        models[0](tokens)  # decompresses what is decompressed when first used
        if config["quant_method"] == "compressed-tensors":  # which else rounds activations too
            models[0].apply(compressed_tensors.quantization.disable_quantization)
        logits = [model(tokens).logits for model in models]
    for name, module in models[1].named_modules():
        if not isinstance(module, torch.nn.Linear):
            continue
        weight = models[0].get_submodule(name).weight.float()
        # Scales of float32 are rounded to BF16 on loading.
        if not torch.allclose(weight, module.weight.float(), rtol=2**-6, atol=0):
            sys.exit(f"{quantized}: {name}: other weights than assay decodes")
    # BF16's own rounding moves this model's logits by 0.04; the others round activations to 8 bits.
    difference = ((logits[0] - logits[1]).abs().max() / logits[1].abs().max()).item()
    if not difference <= (0.1 if config["quant_method"] == "compressed-tensors" else 0.3):
        sys.exit(f"{quantized}: logits differ by {difference:.3g} of the largest")


folders = list(map(pathlib.Path, sys.argv[1:]))
for pair in zip(folders[::2], folders[1::2]):
    check(*pair)
