// What Phi-4-multimodal's two codes have in common: its encoders of images and of sound, under the names of either.
#pragma once

#include <string>

#include "core/model/blocks.h"

namespace assay::families {

// transformers renames what Microsoft's own code calls "img_projection.0", "self_attn.linear_q", …
enum class PhiCode { transformers, microsoft };
void add_phi_eyes(ConfigReader& vision, ModuleTree& tree, PhiCode code);
void add_phi_ears(ConfigReader& audio, ModuleTree& tree, PhiCode code);

}  // namespace assay::families
