// A GGUF read by the tables that wrote it: config.json is made of its keys (GgufOwnKey), and to be sure of it the keys
// are made of that again, as they would be written; tensors are found by turning the plans round by which they would
// be put together (gguf_undo.h). For families that have GgufRules; what a GGUF of one tells that these do not say is
// said by GgufRules::back.
#pragma once

#include <string>
#include <vector>

#include "core/model/derived_tensor.h"
#include "core/model/gguf_rules.h"
#include "core/model/gguf_said.h"
#include "core/model/llama3_rope.h"
#include "core/model/module_tree.h"

namespace assay {

// Which family it is, of those that are read back in whatever way; nullptr: of none.
const GgufFamily* family_of_gguf(const GgufSaid& said);

// config.json, without dtype and tokens. Throws Error::input, naming the key, where one of the file says what no
// config.json of the family would be written with. `notes`: keys that nobody here knows.
ParsedJson mirrored_config(const GgufSaid& said, const GgufFamily& family, std::vector<std::string>& notes);

// The tensors of the checkpoint that `tree` describes; appends what is none of them to `left_out`. Throws Error::input
// where one is missing or misshapen.
std::vector<DerivedTensor> mirrored_tensors(const ModelConfig& config, const ModuleTree& tree,
                                            const GgufFamily& family, const GgufSaid& said,
                                            const StoredTensors& gguf, std::vector<std::string>& left_out);

// As `rope_scaling` of config.json.
ParsedJson llama3_scaling(const Llama3Rope& rope);

// Ways back that several families share: GgufOwnKey::back.
namespace keys_back {
void partial_rotary(const GgufSaid& said,
                    ParsedJson& config);  // of rope.dimension_count, where it is not a head
void windowed_layers(const GgufSaid& said, ParsedJson& config);  // flags as layer_types
void nothing(const GgufSaid& said, ParsedJson& config);          // other keys say it
}  // namespace keys_back

}  // namespace assay
