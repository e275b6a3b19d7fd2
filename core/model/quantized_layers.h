// ModelOpt's quantized_layers: which algorithm each module is quantized by, where they differ
// ("quant_algo": "MIXED_PRECISION").
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "core/formats/json.h"
#include "core/model/config.h"

namespace assay {

// The document of a config.json or hf_quant_config.json, with quantized_layers as the text of an object that says the same
// of fewer names (numbered_names.h): they have an entry for each expert's matrix, 22,000 in 3 MB for MiniMax-M3. Read as Python does (kPythonJson). A params.json of Mistral's as the
// config.json that it stands for; a config of mamba_ssm's, which names no class, with the name of that one.
ParsedJson read_config_json(const std::filesystem::path& path);

// {"model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4", "group_size": 16}, …}: a group for each algorithm and
// group_size, in their order; of a module said twice the last counts. `text`: the object, or its JSON text. Throws
// Error::input (with `source` as the file) for a group_size that is none.
std::vector<QuantizationConfig::Group> parse_quantized_layers(const ParsedJson& text,
                                                              const std::filesystem::path& source);

// ModelOpt's mixture over a release in blocks of FP8 (nvidia's DeepSeek-V4: experts NVFP4): what `layers` do not name is
// as it was.
bool mixed_over_blocks(const QuantizationConfig& config);

}  // namespace assay
