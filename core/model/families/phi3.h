// Phi-3's decoder, which Phi-4-multimodal has with other sizes.
#pragma once

#include "core/model/blocks.h"

namespace assay::families {

void describe_phi3_of(ConfigReader& config, ModuleTree& tree, const blocks::DecoderDefaults& defaults);

}  // namespace assay::families
