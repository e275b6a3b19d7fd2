"""Tiny random models whose modules transformers names otherwise than their checkpoints: a router that moves, experts that are
stacked, a vision tower beside the language model.

    make_odd_models.py OUT        writes OUT/phimoe, OUT/gpt-oss, OUT/llava; exits 77 where a package is not here
"""
import pathlib
import sys

try:
    import torch
    import transformers
except ImportError as missing:
    print(missing)
    sys.exit(77)

SIZES = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=128, max_position_embeddings=64, tie_word_embeddings=False)


def phimoe():
    config = transformers.PhimoeConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, sliding_window=64)
    return transformers.PhimoeForCausalLM(config)


def gpt_oss():
    config = transformers.GptOssConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, head_dim=16, sliding_window=16)
    return transformers.GptOssForCausalLM(config)


def llava():
    text = transformers.LlamaConfig(**SIZES)
    vision = transformers.CLIPVisionConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                                           image_size=16, patch_size=8, projection_dim=32)
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_id=127, tie_word_embeddings=False)
    return transformers.LlavaForConditionalGeneration(config)


def main():
    torch.manual_seed(3)
    for name, make in (("phimoe", phimoe), ("gpt-oss", gpt_oss), ("llava", llava)):
        model = make().to(torch.bfloat16)
        model.save_pretrained(pathlib.Path(sys.argv[1]) / name)


main()
