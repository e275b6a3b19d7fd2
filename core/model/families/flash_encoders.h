// XLM-RoBERTa under the names of Jina's own code, whose configs name transformers' class.
#pragma once

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

bool is_flash_encoder(const ModelConfig& config);
void describe_flash_encoder(ConfigReader& config, ModuleTree& tree);

}  // namespace assay::families
