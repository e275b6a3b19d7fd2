// What stands in front of an output head: norm(act(dense(x))), a matrix as wide as the model (ModernBERT's decoder).
#pragma once

#include "refimpl/models/norms.h"
#include "refimpl/models/projection.h"

namespace assay {

struct HeadBlock {
  Projection dense;
  Activation activation = Activation::gelu;
  Norm norm;

  // By the names that its tensors have: `prefix`.dense and `prefix`.norm.
  static HeadBlock get(const Weights& weights, const std::string& prefix, Activation activation,
                       const NormRule& rule);
  explicit operator bool() const { return static_cast<bool>(dense); }
  Matrix operator()(const Matrix& x, Ops& ops) const {
    return norm(ops.activation(dense(x, ops), activation), ops);
  }
};

}  // namespace assay
