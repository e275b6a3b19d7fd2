// Do engines that fuse q, k and v, gate and up, get the weights that the checkpoint holds?
#pragma once

#include <optional>

#include "cli/check/stages.h"

namespace assay {

// nullopt: nothing here has a scale for a whole tensor, and nothing is quantized in part.
std::optional<Stage> examine_fused(const CheckSettings& settings);

}  // namespace assay
