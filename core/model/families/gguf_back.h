// What a GGUF tells of a config.json beside the names of its keys (GgufRules::back): the functions of gguf_*.cpp that make
// a key of several values of a config, or of the tree, backwards.
#pragma once

#include "core/model/gguf_said.h"

namespace assay::families::back {

using Back = void(const GgufSaid& said, ParsedJson& config);

// Layers with states.
Back mamba, mamba2, jamba, gated_delta, qwen3_5, qwen3_5_moe, lfm2, nemotron_h, granite_hybrid, falcon_h1,
    kimi_linear;
bool has_no_experts(const GgufSaid& said);
bool is_granite4_attention(const GgufSaid& said);
// Decoders.
Back afmoe, apertus, bailing_v2, cohere2_moe, falcon, gemma3n, gemma4, hunyuan_moe, internlm2, local_experts,
    minicpm, nanbeige, phi3, stablelm, windows, gemma2, gemma3, ministral, untied_bias, glm, deepseek_sparse,
    chatglm, ernie_moe, mpt, dots1, gpt2, mimo, minimax_m3, muse, exaone4, granite_swa, llama4, mistral4,
    mellum, orion, gpt_oss;
// Of 2026, and with lists of heads or widths.
Back bailing_v3, deepseek_v4, glm5_next, hy_v4, laguna, minimax_01, nemotron_nas, step3p5;
inline constexpr std::string_view kNotTold = "no config.json is made of its keys";
bool has_window(const GgufSaid&said), has_experts(const GgufSaid&said),
    has_shared_experts(const GgufSaid&said);

}  // namespace assay::families::back
