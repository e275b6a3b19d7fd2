// Step 3's ViT, and what it shares with Step 3.5: how a config lists its layers of experts.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

void add_step3_eyes(ConfigReader& document, ModuleTree& tree);
// step3p5.cpp: moe_layers_enum, "3,4,5,…".
std::vector<std::uint64_t> step_layers_listed(ConfigReader& config);

}  // namespace assay::families
