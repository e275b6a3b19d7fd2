// A module tree for an architecture nobody has described, from the names and shapes in a checkpoint's headers.
//
//   model.layers.{0…31}.attn.wq.weight [4096, 4096]      -> a group of 32 layers, a matrix of the part "attention"
//   ….experts.{0…63}.up.weight                           -> 64 experts, of which a key of the config says how many act
//
// Numbers that repeat the same tensors are layers and experts, between dots or behind a word (layer_3, block3:
// core/model/cut_names.h); other numbers stay what they are. Parts and roles follow from names as decoders use them, and are
// `other` where names tell nothing. Dimensions that a key of the config names are shown under it. Nothing here is known of how the model computes: no plan, no forward pass.
#pragma once

#include "core/formats/checkpoint.h"
#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay {

// Whether a family describes it.
bool is_described(const ModelConfig& config);

// What stands in for the config of a checkpoint that has none.
ModelConfig absent_config(const Checkpoint& checkpoint);

// A config.json with neither architectures nor model_type, as diffusers writes it; and that config under the name that it
// has otherwise. Its sizes still name dimensions.
bool names_no_architecture(const Checkpoint& checkpoint);
ModelConfig nameless_config(const Checkpoint& checkpoint);

// `config`: whose architecture is unknown, or absent_config(), or nameless_config(). Throws Error::input where a weight's storage cannot be
// told.
ModuleTree derive_tree(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace assay
