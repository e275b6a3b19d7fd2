// How activations are brought to 8 bits (refimpl/ops/quantize.cpp): shared by all that do it.
#pragma once

#include "core/numeric/block_quantizer.h"
#include "refimpl/ops/interface.h"

namespace assay {

BlockQuantizer quantizer_of(const QuantizeRule& rule, std::size_t block_rows, std::size_t block_columns);
// The scale of a block whose largest magnitude is `amax`.
float activation_scale(const BlockQuantizer& quantizer, float amax);

}  // namespace assay
