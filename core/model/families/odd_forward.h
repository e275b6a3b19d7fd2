// What the forward passes of mixtures read that go ways of their own: Trinity, Command A with experts, DBRX.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_afmoe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_cohere2_moe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_dbrx(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
