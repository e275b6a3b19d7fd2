// general.*: what a GGUF says of the model as a whole, gathered as llama.cpp's converter gathers it
// (gguf-py/gguf/metadata.py) from the folder's name, config.json and generation_config.json. A model card
// (README.md) is not read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/formats/gguf.h"
#include "core/model/gguf_export.h"

namespace assay {

// "Llama-3-8B-Instruct-v2": what the parts between the dashes stand for; empty: none does.
struct ModelNameParts {
  std::string name, organization, basename, finetune, version, size_label;
};
// `parameters`: of the model; a size in the name that is far from it is taken for something else.
ModelNameParts model_name_parts(std::string_view id, std::uint64_t parameters);
// "llama-2-chat" -> "Llama 2 Chat".
std::string title_of_id(std::string_view id);
// "8.0B"; of experts "8x7B".
std::string size_label(const std::vector<GgufTensor>& tensors);

// From general.architecture to the licence's place, without file_type and quantization_version.
std::vector<gguf::KeyValue> gguf_general(const std::filesystem::path& folder, const ModelConfig& config,
                                         std::string_view architecture,
                                         const std::vector<GgufTensor>& tensors);

}  // namespace assay
