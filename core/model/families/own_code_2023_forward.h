// What the forward passes of the models of 2023 read that brought code of their own: Qwen (1), ChatGLM2, ChatGLM3 and GLM-4.
#pragma once

#include "core/model/hyperparameters.h"
#include "core/model/module_tree.h"

namespace assay::families {

Hyperparameters forward_chatglm(ConfigReader& config, const ModuleTree& tree);
Hyperparameters forward_qwen1(ConfigReader& config, const ModuleTree& tree);

}  // namespace assay::families
