// Where multimodal models keep the description of their language model inside config.json; some releases
// (Kimi K2.5) keep quantization_config there as well.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace assay {

// An object of the document, one inside it where the second name is not empty, and what must stand beside it where the
// third is not: an encoder's decoder is no language model of its own, that of VibeVoice is one.
struct LanguageModelNest {
  std::string_view outer, inner = {}, beside = {};
};
inline constexpr std::array<LanguageModelNest, 5> kLanguageModelNests = {
    {{"text_config"},
     {"llm_config"},
     {"language_config"},
     {"thinker_config", "text_config"},
     {"decoder_config", "", "semantic_tokenizer_config"}}};

// Of these, in their order, those that `document` has.
std::vector<const nlohmann::json*> language_model_nests(const nlohmann::json& document);

// The keys under which a config keeps how its weights are quantized.
inline constexpr std::array<std::string_view, 3> kQuantizationKeys = {"quantization_config",
                                                                      "compression_config", "quantization"};

}  // namespace assay
