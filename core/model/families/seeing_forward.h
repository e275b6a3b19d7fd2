// What the forward passes of language models read that stand behind encoders alone (glm.cpp, omni.cpp and their like). Of
// text the axes of their positions are one.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_glm4v_text(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_glm4v_moe_text(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_glm_ocr(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_hunyuan_vl(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_paddleocr_vl(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_qwen2_5_omni_text(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_qwen3_omni_moe_text(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
