// What the forward passes read of decoders that transformers has no class for, in hub_forward.cpp.
#pragma once

#include "core/model/config.h"
#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_bagel(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_jais(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_minimind(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_motif(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_openelm(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_phi3_small(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_rwkv7(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
