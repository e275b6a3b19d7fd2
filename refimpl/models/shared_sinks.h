// Inkling's experts: the router scores shared experts, which every token visits, beside the others. Of the chosen and
// the shared together the weights are σ(logit) / Σ σ(logit), times two factors; a shared expert's scales what its down
// projection is given. Source: transformers 5.23 (inkling).
#pragma once

#include <vector>

#include "refimpl/models/feed_forward.h"

namespace assay {

struct SharedSinks {
  std::vector<GatedMlp> experts;
  double scale = 1;  // route_scale · global_scale

  // `mixture`: whose experts are the others.
  static SharedSinks read(const Weights& weights, std::size_t layer, const Mixture& mixture,
                          double route_scale);
  Matrix forward(const Mixture& mixture, const Matrix& x, Ops& ops, const TapScope& at) const;
};

}  // namespace assay
