// y[t, r] = Σ_k W[r, k]·x[t, k] for a few tokens and weights in GGUF blocks, in integers: codes of the stored bytes,
// brought to 16 bits, by an input of 16 or 24 bits (int_input.h).
//
//   Σ W·x = Σ_groups scale_W · scale_x · (Σ code · q) + minimum_W · Σ x
//
// The inner sums are exact; what is rounded are those over groups, in float32. Codes are unpacked once for several
// tokens; a token's bits are the same whoever is beside it.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cpu/int_input.h"
#include "kernels/cpu/stored_rows.h"
#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

// Rows [first, first + count) of a weight that has_integer_rows, in y's columns of that number; y is the whole
// result, [tokens, outputs].
void integer_row_dots(const WeightView& weight, std::size_t first, std::size_t count,
                      std::span<const IntInput> x, const Matrix& y);

}  // namespace assay::cpu
