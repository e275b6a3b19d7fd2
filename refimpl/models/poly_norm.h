// Motif's PolyNorm (arXiv 2411.03884), in place of an activation: w0 norm(x³) + w1 norm(x²) + w2 norm(x) + b, where norm divides by the
// root of the mean square of a row and 1e-6. Source: vLLM 0.10's layernorm.py.
#pragma once

#include <array>

#include "refimpl/models/weights.h"
#include "refimpl/ops/interface.h"

namespace assay {

struct PolyNorm {
  std::array<double, 3> weights;  // of the cube, the square and x itself
  double bias = 0;

  static PolyNorm read(const Weights& weights, std::size_t layer);
  Matrix operator()(const Matrix& x, Ops& ops) const;
};

}  // namespace assay
