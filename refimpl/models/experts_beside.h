// Experts beside the dense MLP of a layer, each with norms of their own (Gemma 4 26B-A4B):
//
//   out = norm_1(mlp(norm(x))) + norm_2(experts(norm_3(x)))       the router sees x / rms(x) · scale · hidden^-½
#pragma once

#include "refimpl/models/feed_forward.h"
#include "refimpl/models/norms.h"

namespace assay {

struct ExpertsBeside {
  Mixture mixture;
  WeightView router_scale;
  Norm dense_after, before, after;  // norms 1, 3 and 2
  double epsilon = 0;

  static ExpertsBeside read(const Weights& weights, std::size_t layer, Mixture mixture, const NormRule& rule);
  // x: the residual; `dense`: what the MLP made of it.
  Matrix joined(const Matrix& x, const Matrix& dense, Ops& ops, const TapScope& at) const;
};

}  // namespace assay
