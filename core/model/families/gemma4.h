// What the forward passes of Gemma 4 read.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_gemma4(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
