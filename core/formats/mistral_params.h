// Mistral's own description of a model, params.json, in the words of config.json: of its dense models and Mixtral, of what sees
// (Pixtral) and hears (Voxtral, Voxtral Realtime), and of Mistral Large 3. Some releases bring no other (Pixtral 12B, Large 3); most bring both, for the same
// weights under two sets of names: consolidated.safetensors, and shards as transformers has them.
// Sources: mistral-inference 1.6, args.py; vLLM 0.33, transformers_utils/configs/mistral.py.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/json.h"

namespace assay {

// nullopt where it describes another model (Mamba, the first Llamas) or what is not described here.
std::optional<ParsedJson> config_of_mistral_params(const ParsedJson& params);

// The description of a folder's model: its config.json, else a params.json that can be read so; empty where it has neither.
std::filesystem::path model_description_in(const std::filesystem::path& folder);

// The same of the files that are taken for the model's weights: where all of them are Mistral's own (consolidated.safetensors) and both
// descriptions lie beside them, params.json is theirs.
std::filesystem::path description_of_weights(const std::filesystem::path& folder,
                                             const std::vector<std::string>& weights);

}  // namespace assay
