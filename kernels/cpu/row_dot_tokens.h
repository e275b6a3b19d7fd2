// y[t, r] = Σ_k W[r, k]·x[t, k] for several tokens, each to the bit as row_dots (row_dot.h) has it for one: what is
// stored is brought to float32 once for all of them, and a row, once in a register, meets a few tokens. The order of
// a token's sum is row_dots', whoever is beside it; that is what batch invariance costs against a panel's order.
#pragma once

#include <span>

#include "kernels/cpu/row_dot.h"
#include "refimpl/ops/matrix.h"

namespace assay::cpu {

// Rows as float32 without their scales.
struct DecodedRows {
  std::vector<float> values;  // [rows][terms]
  std::vector<float> scales;  // [rows][blocks()]; none where all terms are one block without a scale
  std::size_t terms = 0, block = 0;

  std::size_t blocks() const { return (terms + block - 1) / block; }
};

// Rows [first, first + count) of `weight`, which is not input_major; y is the whole result, [tokens, outputs].
void row_dots(const WeightView& weight, std::size_t first, std::size_t count, std::span<const DotInput> x,
              const Matrix& y);

}  // namespace assay::cpu
