// What the forward passes of mixtures read, as kin_forward.h has it of dense decoders; of decoders that see, the text's.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

// DeepSeek-V3's way of choosing, under its keys and Kimi's.
void read_groups(ConfigReader& config, const ModuleTree& tree, bool renormalizes, Hyperparameters& h);
// Throws Error::input where experts do not make so many groups, or those chosen have fewer than a token takes.
void require_groups(const ConfigReader& config, const ModuleTree& tree, const ExpertRouting& routing);

Hyperparameters forward_dots1(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_ernie4_5_moe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_flex_olmo(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_glm4_moe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_hunyuan_moe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_llama4(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_mimo(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_mimo_v2(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_minimax_m2(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_olmoe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_qwen2_moe(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_qwen2_vl(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_qwen2_5_vl(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_qwen3_vl(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_solar_open(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
