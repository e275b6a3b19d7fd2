// What the forward passes of families read whose layers are of their own making (refimpl/models/own_layers.h).
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_doge(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_jetmoe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_rwkv(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_xlstm(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_zamba(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_zaya(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
