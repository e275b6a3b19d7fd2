// y[r] = Σ_k W[r, k]·x[k] for one token, straight from the stored bytes: the work of decoding one token is
// reading the weights once, so that memory sets the pace.
//
// Products and sums are float32, in vector lanes that are added up at the end of a row; nothing but those
// sums is rounded.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

// x as row_dots wants it: beside the values, their sums over groups of 16 and 32, for types with minima.
struct DotInput {
  explicit DotInput(std::span<const float> x);
  std::span<const float> values;
  std::vector<float> sums_of_32;
};

// Whether row_dots reads the stored bytes of this form itself; it decodes the others a row at a time.
bool reads_directly(const WeightView& weight);

// Rows [first, first + count) of `weight`, which is not input_major.
void row_dots(const WeightView& weight, std::size_t first, std::size_t count, const DotInput& x, float* y);

}  // namespace assay::cpu
