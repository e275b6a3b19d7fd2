#include "refimpl/models/per_layer_input.h"

#include <cmath>

namespace assay {

std::optional<PerLayerInputs> PerLayerInputs::find(const Weights& weights, const NormRule& rule) {
  const auto of = [&](Part part) { return weights.find({.role = Role::per_layer_embedding, .part = part}); };
  PerLayerInputs inputs;
  inputs.table = of(Part::embedding);
  if (!inputs.table) return std::nullopt;
  inputs.projection = weights.get({.role = Role::per_layer_embedding, .part = Part::dense_mlp});
  inputs.norm = Norm(weights.get({.role = Role::per_layer_embedding, .part = Part::norm}), {}, rule);
  inputs.layers = weights.tree().layers;
  inputs.width = inputs.table.columns / inputs.layers;
  return inputs;
}

Matrix PerLayerInputs::operator()(const Batch& batch, const Matrix& x, Ops& ops) const {
  const auto factor = [&](double value) { return rounded_factors ? ops.arithmetic().round(value) : value; };
  std::vector<TokenId> tokens = batch.tokens;
  for (TokenId& token : tokens) token = token < table.rows ? token : 0;
  const Matrix said =
      ops.multiply(ops.embed(tokens, table), ops.arithmetic().round(std::sqrt(static_cast<double>(width))));
  const Matrix seen = norm(
      ops.multiply(ops.linear(x, projection), factor(1 / std::sqrt(static_cast<double>(x.columns())))), ops);
  return ops.multiply(ops.add(seen, said), factor(1 / std::sqrt(2.0)));
}

std::optional<PerLayerStep> PerLayerStep::find(const Weights& weights, std::size_t layer,
                                               const NormRule& rule, Activation activation) {
  PerLayerStep step;
  step.gate = weights.find({.role = Role::latent_down, .part = Part::dense_mlp, .layer = layer});
  if (!step.gate) return std::nullopt;
  step.up = weights.get({.role = Role::latent_up, .part = Part::dense_mlp, .layer = layer});
  step.norm = Norm(weights.get({.role = Role::latent_norm, .part = Part::norm, .layer = layer}), {}, rule);
  step.activation = activation;
  return step;
}

Matrix PerLayerStep::operator()(const Matrix& x, const Matrix& own, Ops& ops) const {
  return norm(ops.linear(ops.gated_activation(ops.linear(x, gate), own, {.activation = activation}), up),
              ops);
}

}  // namespace assay
