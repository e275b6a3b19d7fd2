// Edits what a forward pass is made by: which layers look how far, and whose keys they read.
#pragma once

#include "core/model/module_tree.h"
#include "refimpl/step/layer_groups.h"

namespace assay {

// Throws Error::input where the model's layers are grouped already, or attend otherwise than by heads.
void regroup(ModuleTree& tree, const LayerGroups& groups);

}  // namespace assay
