// Mistral's own description of a model, params.json, in the words of config.json: of Mistral Large 3, whose releases bring no other.
// Sources: vLLM 0.32, transformers_utils/configs/mistral.py and models/mistral_large_3.py.
#pragma once

#include <filesystem>
#include <optional>

#include "core/formats/json.h"

namespace assay {

// nullopt where it describes another model: one without latent attention, or without experts beside shared ones.
std::optional<ParsedJson> config_of_mistral_params(const ParsedJson& params);

// The description of a folder's model: its config.json, else a params.json that can be read so; empty where it has neither.
std::filesystem::path model_description_in(const std::filesystem::path& folder);

}  // namespace assay
