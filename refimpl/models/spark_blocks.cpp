#include "refimpl/models/spark_blocks.h"

#include <algorithm>
#include <cmath>

#include "refimpl/ops/recurrence.h"

namespace assay {

ResidualGate ResidualGate::read(const Weights& weights, std::size_t layer, int number, double temperature) {
  constexpr double kLeast = 1e-3;
  ResidualGate gate;
  const WeightView stored = weights.get({.role = Role::residual_mix, .layer = layer, .half = number});
  for (const double value : decode_vector(stored)) {
    const double beta = logistic(value / temperature);
    gate.stream_.push_back(std::sqrt(std::max(logistic(-value / temperature) * (1 + beta), kLeast)));
    gate.block_.push_back(beta);
  }
  return gate;
}

Matrix ResidualGate::operator()(const Matrix& x, const Matrix& block, Ops& ops) const {
  if (stream_.empty()) return ops.add(x, block);
  std::vector<double> sum = ops.download(x);
  const std::vector<double> given = ops.download(block);
  for (std::size_t i = 0; i < sum.size(); ++i)
    sum[i] = stream_[i % stream_.size()] * sum[i] + block_[i % block_.size()] * given[i];
  return ops.upload(sum, x.rows(), x.columns());
}

void put_spark_norms(const Weights& weights, std::size_t layer, const SparkForm& form, const NormRule& before,
                     const NormRule& behind, Mixture& mixture) {
  const auto stored = [&](Part part) {
    return weights.get({.role = Role::latent_norm, .part = part, .layer = layer});
  };
  mixture.latent_in_norm = Norm(stored(Part::shared_expert), {}, before);
  mixture.expert_norm = Norm::of_scaled(stored(Part::norm), behind);
  mixture.latent_norm = {};
  mixture.router_scale = form.router_scale;
}

}  // namespace assay
