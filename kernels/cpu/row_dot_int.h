// y[r] = Σ_k W[r, k]·x[k] for one token and weights in GGUF blocks, in integers: codes of the stored bytes,
// brought to 16 bits, by an input of 16 or 24 bits (int_input.h).
//
//   Σ W·x = Σ_groups scale_W · scale_x · (Σ code · q) + minimum_W · Σ x
//
// The inner sums are exact; what is rounded are those over groups, in float32.
#pragma once

#include <cstddef>

#include "kernels/cpu/int_input.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

// Of a weight that has_integer_rows.
// Rows [first, first + count) of `weight`.
void integer_row_dots(const WeightView& weight, std::size_t first, std::size_t count, const IntInput& x,
                      float* y);

}  // namespace assay::cpu
