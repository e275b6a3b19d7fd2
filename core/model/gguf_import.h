// A GGUF as transformers would have it: the inverse of gguf_export, as far as the metadata says what it
// needs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/gguf.h"
#include "core/formats/json.h"
#include "core/model/config.h"
#include "core/model/derived_tensor.h"
#include "core/model/gguf_family.h"
#include "core/model/module_tree.h"
#include "core/numeric/element_type.h"

namespace assay {

struct HfModel {
  std::string family;  // empty: unknown, and tensors keep their GGUF names
  std::vector<DerivedTensor> tensors;
  std::vector<std::pair<std::string, std::string>> files;  // config.json and the tokenizer's, as texts
  std::vector<std::string> notes;                          // what is missing
  std::vector<std::string> left_out;                       // tensors of the GGUF that nothing above holds
};

// `type`: of the weights to be written, for config.json.
HfModel import_gguf(const Checkpoint& gguf, const StoredTensors& stored, ElementType type);

// --- parts of it -------------------------------------------------------------------------------------------

// Of which family the file is; nullptr: of none that gguf_export writes.
const GgufFamily* family_of_gguf(const Checkpoint& gguf);

// Appends rope_freqs.weight to HfModel::left_out where no rope_scaling says the same.
ParsedJson hf_config(const Checkpoint& gguf, const GgufFamily& family, const StoredTensors& stored,
                     ElementType type, HfModel& model);

// All tensors of `tree`, which hf_config describes, under transformers' names. Throws Error::input where one is
// missing or misshapen; appends what has no such name to `left_out`, but for rope_freqs.weight, which is a matter of
// the config.
std::vector<DerivedTensor> hf_tensors(const Checkpoint& gguf, const GgufFamily& family,
                                      const StoredTensors& stored, const ModelConfig& config,
                                      const ModuleTree& tree, std::vector<std::string>& left_out);

// The values of rope_freqs.weight; empty where there is no such tensor. Throws Error::input for one that is
// no list of factors.
std::vector<float> rope_factors(const Checkpoint& gguf, const StoredTensors& stored);

std::vector<std::pair<std::string, std::string>> hf_tokenizer(const gguf::Header& header,
                                                              std::vector<std::string>& notes);

}  // namespace assay
