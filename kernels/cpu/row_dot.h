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

// x as row_dots wants it for a weight: beside the values, their sums over groups of 32, where it is of
// blocks.
struct DotInput {
  // int16: x and W are rounded to integers (kernels/operands/int16.h), for a weight that
  // has_int16_floats. x stays where it is.
  DotInput() = default;
  DotInput(std::span<const float> x, const WeightView& weight, bool int16 = false);
  const float* values() const { return int16 ? rounded.data() : x.data(); }

  std::span<const float> x;
  bool int16 = false;
  std::vector<float> rounded;
  bool moderate = false;  // `rounded`: no product with a weight of usual size is lost or overflows
  std::vector<float> sums_of_32;
};

// Whether row_dots reads the stored bytes of this form itself; it decodes the others a row at a time.
bool reads_directly(const WeightView& weight);

// Rows [first, first + count) of `weight`, which is not input_major.
void row_dots(const WeightView& weight, std::size_t first, std::size_t count, const DotInput& x, float* y);

}  // namespace assay::cpu
