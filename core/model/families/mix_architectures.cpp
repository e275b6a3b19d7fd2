// Architectures of GGUF that llama-quantize treats by rules of their own (src/llama-quant.cpp), described here
// or not.
#include <algorithm>

#include "core/model/gguf_mix.h"

namespace assay {
namespace {

constexpr std::string_view kKeptPartsOfGlm5Next[] = {
    "hc_",
    "indexer.attn_q_b",
    "indexer.attn_k",
    "indexer.proj",
    "indexer_compressor_gate",
    "indexer_compressor_ape",
    "ssm_f_a.weight",
    "ssm_f_b.weight",
    "ssm_g_a.weight",
    "ssm_g_b.weight",
    "ssm_beta.weight",
    "attn_kv_a_mqa.weight",
    "attn_k_b.weight",
    "attn_v_b.weight",
};
constexpr std::string_view kEightBitPartsOfGlm5Next[] = {"attn_q_a", "attn_q_b", "nextn.eh_proj"};

// "70B" as llama.cpp names model sizes: by architecture and layers, and a Llama's only with grouped heads.
constexpr MixArchitecture kArchitectures[] = {
    {.name = "llama", .layers_of_70b = 80, .only_grouped_is_70b = true},
    {.name = "qwen2", .layers_of_70b = 80},
    {.name = "olmo", .layers_of_70b = 80},
    {.name = "deci", .layers_of_70b = 80},
    {.name = "jais2", .layers_of_70b = 68},
    {.name = "falcon", .lean = true},
    {.name = "bailingmoe3", .stacked_attention = true},
    {.name = "glm5-next", .kept_parts = kKeptPartsOfGlm5Next, .eight_bit_parts = kEightBitPartsOfGlm5Next},
};

}  // namespace

MixArchitecture mix_architecture(std::string_view name) {
  const auto found = std::find_if(std::begin(kArchitectures), std::end(kArchitectures),
                                  [&](const MixArchitecture& known) { return known.name == name; });
  return found == std::end(kArchitectures) ? MixArchitecture{} : *found;
}

}  // namespace assay
