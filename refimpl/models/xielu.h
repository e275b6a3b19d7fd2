// xIELU (arXiv 2411.13010), an activation with two weights a layer and two constants beside them:
//
//   x > 0:  p x² + β x                        p = softplus(alpha_p)
//   else    (e^min(x, ε) - 1 - x) n + β x     n = β + softplus(alpha_n)
#pragma once

#include <optional>

#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"

namespace assay {

struct Xielu {
  double alpha_p = 0, alpha_n = 0, beta = 0, epsilon = 0;  // as stored

  static std::optional<Xielu> find(const Weights& weights, std::size_t layer);
  Matrix operator()(const Matrix& x, Ops& ops) const;
};

}  // namespace assay
