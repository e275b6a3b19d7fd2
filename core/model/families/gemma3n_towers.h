// What Gemma 3n sees and hears with: MobileNet-V5-300M of timm, a conformer, and an embedder behind each.
#pragma once

#include "core/model/blocks.h"

namespace assay::families {

void add_gemma3n_towers(ConfigReader& config, ModuleTree& tree, const Quantity& text_hidden);

}  // namespace assay::families
