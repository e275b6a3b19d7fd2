// Embeddings of the layers (Gemma 3n, 4): beside the vector that enters the first layer, a token has a short one for
// every layer, out of a table and out of that vector, which the layer takes in behind its MLP.
//
//   own = (table[token] · √width + norm(projection x · hidden^-½)) / √2        [layers · width] a token
//   x  += norm(up(act(gate x) · own of the layer))
#pragma once

#include <optional>

#include "refimpl/models/norms.h"
#include "refimpl/step/batch.h"

namespace assay {

struct PerLayerInputs {
  WeightView table, projection;
  Norm norm;
  std::size_t layers = 0, width = 0;
  bool rounded_factors = false;  // the factors are numbers of the weights' type

  static std::optional<PerLayerInputs> find(const Weights& weights, const NormRule& rule);
  // `x`: what enters the first layer. Tokens beyond the table's rows count as token 0.
  Matrix operator()(const Batch& batch, const Matrix& x, Ops& ops) const;  // [tokens, layers · width]
};

// What a layer does with its own.
struct PerLayerStep {
  WeightView gate, up;
  Norm norm;
  Activation activation = Activation::gelu_tanh;

  static std::optional<PerLayerStep> find(const Weights& weights, std::size_t layer, const NormRule& rule,
                                          Activation activation);
  // What is to be added: [tokens, hidden]
  Matrix operator()(const Matrix& x, const Matrix& own, Ops& ops) const;
};

}  // namespace assay
