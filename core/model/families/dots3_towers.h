// dots3-note's towers, where its config has vision_config and audio_config.
#pragma once

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

void add_dots3_towers(ConfigReader& config, ModuleTree& tree);

}  // namespace assay::families
