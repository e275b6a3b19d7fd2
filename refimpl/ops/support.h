// What the reference operations share: one body for float and double, one order of summation.
#pragma once

#include <cstddef>
#include <vector>

#include "core/numeric/dot.h"
#include "refimpl/ops/interface.h"

namespace assay {

// body(float()) or body(double()), as the elements of a matrix are.
template <class Body>
decltype(auto) with_elements(Real real, Body&& body) {
  if (real == Real::f64) return body(double());
  return body(float());
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
