// Which tensors, in which shapes, a GGUF holds of a model: what the plans that write its family (gguf_export.h) make of
// a checkpoint of which there are names and shapes alone.
//
//   blk.7.attn_k_b.weight    [128, 512, 128] of DeepSeek-V3, though no tensor of its checkpoint has that shape
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/model/gguf_rules.h"
#include "core/model/module_tree.h"
#include "core/model/stored_form.h"

namespace assay {

// What a checkpoint of the tree would hold of which a GGUF keeps something: names and shapes.
struct ImaginedCheckpoint {
  Checkpoint checkpoint;
  StoredTensors stored;
};
ImaginedCheckpoint imagine(const ModuleTree& tree, const GgufRules& rules);

using GgufShapes = std::unordered_map<std::string, std::vector<std::uint64_t>>;  // outermost first, by name

// Without multi-token prediction. Empty where no plan writes such a model.
GgufShapes planned_gguf_shapes(const ModelConfig& config, const ModuleTree& tree, const GgufFamily& family);

// Of a tensor that is one of the checkpoint under another name, or a stack of those of all experts: of an MTP layer, a
// head stored again. Empty where its family makes it otherwise.
std::vector<std::uint64_t> plain_gguf_shape(const TensorSpec& spec, std::uint64_t experts,
                                            const GgufFamily* family);

// Dimensions of 1 before all others are not kept in a file, and llama.cpp asks for none.
bool is_same_gguf_shape(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b);

}  // namespace assay
