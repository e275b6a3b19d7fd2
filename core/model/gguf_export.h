// A checkpoint of transformers' naming as llama.cpp names and keys it (convert_hf_to_gguf.py): which tensors
// a GGUF of it holds, in which order, and what its metadata says. Families: Llama, Mistral, Mixtral, Qwen2,
// Qwen3, Qwen3-MoE, DeepSeek V2 and V3.
#pragma once

#include <string>
#include <vector>

#include "core/formats/gguf.h"
#include "core/model/config.h"
#include "core/model/derived_tensor.h"
#include "core/model/gguf_family.h"
#include "core/model/module_tree.h"

namespace assay {

struct GgufTensor {
  DerivedTensor made;
  bool always_f32 = false;     // norms, biases, routers: llama.cpp computes with them in float32
  bool whole_numbers = false;  // a table of them: int32, whatever the file's type
};

// In the converter's order: by the source's files and then by name, a layer's experts where the last of them
// was, generated ones first. Multi-token prediction is left out, as llama.cpp's DeepSeek does. Throws
// Error::refused, naming the tensor, for one that GGUF has no place for, for one that is missing, and for a
// shape that is not the config's.
std::vector<GgufTensor> gguf_tensors(const ModelConfig& config, const ModuleTree& tree,
                                     const GgufFamily& family, const Checkpoint& checkpoint,
                                     const StoredTensors& stored);

// "llama.block_count" and all others below the architecture, with general.file_type where the converter has
// it. What config.json leaves out takes the default of transformers' class.
std::vector<gguf::KeyValue> gguf_hyperparameters(const ModelConfig& config, const GgufFamily& family,
                                                 std::uint64_t file_type);

// What stands right behind general.architecture: what the converter notes while it goes through the tensors.
std::vector<gguf::KeyValue> gguf_early_keys(const ModelConfig& config, const GgufFamily& family);

// GgufRules::tensor_keys, of the values stored.
std::vector<gguf::KeyValue> gguf_tensor_keys(const ModuleTree& tree, const GgufFamily& family,
                                             const Checkpoint& checkpoint, const StoredTensors& stored);

// Llama 3's factors on the rotary frequencies, which ggml reads from a tensor; empty where the config asks
// for none.
std::vector<float> rope_frequency_factors(const ModelConfig& config, const GgufFamily& family);

}  // namespace assay
