#include "refimpl/models/xielu.h"

#include <algorithm>
#include <cmath>

namespace assay {

std::optional<Xielu> Xielu::find(const Weights& weights, std::size_t layer) {
  const auto number = [&](int place) {
    const WeightView view =
        weights.find({.role = Role::layer_scale, .part = Part::dense_mlp, .layer = layer, .half = place});
    return view ? std::optional(decode_vector(view).at(0)) : std::nullopt;
  };
  const auto p = number(0), n = number(1), beta = number(2), epsilon = number(3);
  if (!p || !n || !beta || !epsilon) return std::nullopt;
  return Xielu{*p, *n, *beta, *epsilon};
}

Matrix Xielu::operator()(const Matrix& x, Ops& ops) const {
  const auto stage = [&](double value) { return ops.arithmetic().stage(value); };
  const auto softplus = [&](double value) {
    return stage(std::max(value, 0.0) + std::log1p(std::exp(-std::fabs(value))));
  };
  const double p = softplus(alpha_p), n = stage(beta + softplus(alpha_n));
  std::vector<double> values = ops.download(x);
  for (double& v : values) {
    const double straight = stage(beta * v);
    v = v > 0 ? stage(stage(p * v) * v) + straight
              : stage(stage(stage(std::expm1(std::min(v, epsilon))) - v) * n) + straight;
  }
  return ops.upload(values, x.rows(), x.columns());
}

}  // namespace assay
