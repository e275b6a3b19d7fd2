// What the reference operations share: one body for float and double, one order of summation.
#pragma once

#include <cstddef>
#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

// body(float()) or body(double()), as the elements of a matrix are.
template <class Body>
decltype(auto) with_elements(Real real, Body&& body) {
  if (real == Real::f64) return body(double());
  return body(float());
}

// Σ x[i] w[i] in double, as eight sums of every eighth product, added up at the end: an order that vectors of
// any width can follow.
template <class X, class W>
double dot(const X* x, const W* w, std::size_t n) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t j = 0; j < 8; ++j)
      sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(w[i + j]);
  }
  for (std::size_t j = 0; i < n; ++i, ++j) sums[j] += static_cast<double>(x[i]) * static_cast<double>(w[i]);
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// A vector of weights as the arithmetic holds them; empty of no weight.
inline std::vector<double> vector_of(const WeightView& weight, const Arithmetic& arithmetic) {
  if (!weight) return {};
  std::vector<double> values = decode_vector(weight);
  for (double& value : values) value = arithmetic.round(value);
  return values;
}

// Error::internal with the shapes, where they do not fit each other.
void check_angles(const RotaryCall& call);
void check_heads(const AttentionCall& call);

}  // namespace assay
