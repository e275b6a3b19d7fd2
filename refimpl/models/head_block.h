// What stands in front of an output head: norm(act(dense(x))), a matrix as wide as the model (ModernBERT's decoder); or
// dense(x), into the width of the embedding (OPT).
#pragma once

#include <optional>

#include "refimpl/models/norms.h"
#include "refimpl/models/projection.h"

namespace assay {

struct HeadBlock {
  Projection dense;
  std::optional<Activation> activation;
  Norm norm;

  // By the names that its tensors have: `prefix`.dense and `prefix`.norm.
  static HeadBlock get(const Weights& weights, const std::string& prefix, Activation activation,
                       const NormRule& rule);
  explicit operator bool() const { return static_cast<bool>(dense); }
  Matrix operator()(const Matrix& x, Ops& ops) const {
    const Matrix y = dense(x, ops);
    return norm(activation ? ops.activation(y, *activation) : y, ops);
  }
};

}  // namespace assay
