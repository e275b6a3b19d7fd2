// What the forward passes of decoders of decoders_2026.cpp, dense_2026.cpp and their like read.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_aria_text(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_bailing_hybrid(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_bitnet(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_cohere_compass(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_diffllama(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_emu3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_flint(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_granite_swa(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_granitemoe_swa(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_kolibri1(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_laguna(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_minimax(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_lfm3(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_mllama(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_modernbert_decoder(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_nemotron_nas(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_recurrent_gemma(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_zamba2(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
