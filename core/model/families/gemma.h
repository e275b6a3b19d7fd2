// What the forward passes of Gemma's kin read, where it is much the same.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_gemma3n(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
