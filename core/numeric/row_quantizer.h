// One row of what quantize_with_scales() does (block_quantizer.h), for those who go on with it while it is at
// hand.
#pragma once

#include "core/numeric/block_quantizer.h"

namespace assay {

// Codes for one row under the scales of its blocks; `quotients` is room for as many values. Returns how many
// values lay beyond the largest code even after rounding, and were clamped to it.
std::uint64_t quantize_row(const BlockQuantizer& quantizer, std::span<const float> values,
                           const float* scales, std::span<float> quotients, std::span<std::byte> codes);

}  // namespace assay
