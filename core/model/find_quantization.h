// Where a checkpoint says how its weights are quantized: config.json, at its top or in the part that describes
// the language model, and where that is silent ModelOpt's hf_quant_config.json beside it.
#pragma once

#include <filesystem>
#include <optional>

#include "core/model/config.h"

namespace assay {

// In one object: under any of the keys that tools write. Throws Error::input on values of the wrong types.
std::optional<QuantizationConfig> quantization_in(const ParsedJson& object,
                                                  const std::filesystem::path& source);

// In `folder`/hf_quant_config.json; nullopt: there is none, or it says that nothing is quantized.
std::optional<QuantizationConfig> quantization_beside(const std::filesystem::path& folder);

}  // namespace assay
