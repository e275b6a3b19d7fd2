// What the forward passes of families with attention of their own read: gates, experts in other orders, activations
// with weights.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

// DeepSeek-V3's way of choosing experts, with a class's own groups and scale.
void read_choice(ConfigReader& config, const ModuleTree& tree, std::uint64_t groups, std::uint64_t chosen,
                 double scale, Hyperparameters& h);

Hyperparameters forward_apertus(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_exaone_moe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_hy3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_ling(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_ling2(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_ling3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_mellum(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_minimax_m3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_mistral4(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_mistral_large3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_phimoe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_step3p5(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
