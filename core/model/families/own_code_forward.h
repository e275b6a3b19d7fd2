// What the forward passes of families read whose checkpoints bring code of their own (dense_own_code.cpp, dense_hub.cpp, plamo3.cpp,
// sarvam.cpp, pangu_mixtures.cpp, bailing_kin.cpp), as kin_forward.h has it of others.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_aquila(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_deepseek_v1(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_exaone3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_internlm1(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_internlm3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_iquestcoder(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_k2_horizon(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_kormo(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_ling25(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_ring_linear(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_nanbeige(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_orion(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_pangu_embedded(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_pangu_ultra(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_param2(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_plamo3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_rnj1(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_sarvam_mla(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_sarvam_moe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_step1(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_solar(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_telechat2(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_telechat3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_teleflm(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_xverse(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
