// A matrix with its bias, where there is one.
#pragma once

#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"

namespace assay {

struct Projection {
  WeightView weight, bias;
  explicit operator bool() const { return static_cast<bool>(weight); }
  Matrix operator()(const Matrix& x, Ops& ops) const { return ops.linear(x, weight, bias); }
  LinearCall of(const Matrix& x) const { return {x, weight, bias}; }
};
// Weight and bias of a role, where the layer has them.
Projection find_projection(const Weights& weights, Role role, std::size_t layer);
Projection get_projection(const Weights& weights, Role role, std::size_t layer);

}  // namespace assay
