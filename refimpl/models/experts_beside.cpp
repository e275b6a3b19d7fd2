#include "refimpl/models/experts_beside.h"

#include <cmath>

namespace assay {

ExpertsBeside ExpertsBeside::read(const Weights& weights, std::size_t layer, Mixture mixture,
                                  const NormRule& rule) {
  const auto norm = [&](Role role, int number) {
    return Norm(weights.get({.role = role, .layer = layer, .half = number}), {}, rule);
  };
  ExpertsBeside e;
  e.mixture = std::move(mixture);
  e.mixture.expert_scales = weights.get({.role = Role::router_scale, .layer = layer, .half = 1});
  e.router_scale = weights.get({.role = Role::router_scale, .layer = layer});
  e.dense_after = norm(Role::post_feedforward_norm, 1);
  e.after = norm(Role::post_feedforward_norm, 2);
  e.before = norm(Role::pre_feedforward_norm, 1);
  e.epsilon = rule.epsilon;
  return e;
}

Matrix ExpertsBeside::joined(const Matrix& x, const Matrix& dense, Ops& ops, const TapScope& at) const {
  const Matrix one = dense_after(dense, ops);
  at("dense_norm", one);
  const Matrix scaled = ops.rms_norm(x, router_scale, epsilon, NormForm::weight_last);
  const Matrix seen = ops.multiply(scaled, 1 / std::sqrt(static_cast<double>(x.columns())));
  const Matrix given = before(x, ops);
  at("experts_in", given);
  const Matrix made = mixture.forward(seen, given, ops, at);
  at("experts_out", made);
  const Matrix two = after(made, ops);
  at("experts_norm", two);
  return ops.add(one, two);
}

}  // namespace assay
