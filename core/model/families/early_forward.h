// What the forward passes of the decoders of 2018 to 2022 read: those of decoders_early.cpp, GPT-Neo and CodeGen.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_biogpt(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_codegen(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_ctrl(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_gpt_neo(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_neox_japanese(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_openai_gpt(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_xglm(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
