// What the forward passes of dense decoders read (Hyperparameters): one function a family, most of them a list of what
// their class has where the config is silent.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_arcee(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_baichuan(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_bloom(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_cohere(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_cohere2(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_cwm(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_ernie4_5(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_exaone4(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_falcon(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_gemma(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_glm(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_gpt_bigcode(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_gpt_neox(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_gptj(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_granite(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_helium(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_hunyuan(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_hyperclovax(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_internlm2(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_jais2(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_minicpm(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_ministral(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_mistral3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_mpt(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_nanochat(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_nemotron(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_olmo(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_olmo3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_opt(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_persimmon(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_phi(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_seed_oss(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_smollm3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_stablelm(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_starcoder2(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_vaultgemma(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
