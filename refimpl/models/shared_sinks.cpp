#include "refimpl/models/shared_sinks.h"

#include <algorithm>
#include <numeric>

#include "core/system/error.h"
#include "refimpl/ops/recurrence.h"

namespace assay {

SharedSinks SharedSinks::read(const Weights& weights, std::size_t layer, const Mixture& mixture,
                              double route_scale) {
  SharedSinks sinks;
  const std::size_t count = mixture.router.rows - weights.tree().experts;
  for (std::size_t e = 0; e < count; ++e) {
    const auto key = [&](Role role) {
      return WeightKey{.role = role, .part = Part::shared_expert, .layer = layer, .expert = e};
    };
    const auto find = [&](Role role) { return weights.find(key(role)); };
    const auto get = [&](Role role) { return weights.get(key(role)); };
    GatedMlp& expert = sinks.experts.emplace_back();
    expert.gate_up = find(Role::mlp_gate_up);
    expert.alternating = static_cast<bool>(expert.gate_up);  // as published
    if (!expert.gate_up) expert.gate = get(Role::mlp_gate), expert.up = get(Role::mlp_up);
    expert.down = get(Role::mlp_down);
    expert.form = mixture.experts.form;
  }
  sinks.scale =
      route_scale *
      decode_vector(weights.get({.role = Role::router_scale, .part = Part::router, .layer = layer})).at(0);
  return sinks;
}

Matrix SharedSinks::forward(const Mixture& mixture, const Matrix& x, Ops& ops, const TapScope& at) const {
  const Matrix logits = ops.linear(x, mixture.router, {}, ResultRounding::float32);
  at("router_logits", logits);
  const std::size_t all = logits.columns(), routed = all - experts.size(), top_k = mixture.rule.top_k;
  const std::vector<double> values = ops.download(logits), correction = decode_vector(mixture.correction);
  Routing routing = {top_k, {}, {}};
  std::vector<double> weights, shares;
  for (std::size_t t = 0; t < x.rows(); ++t) {
    std::vector<double> scores(all);
    for (std::size_t e = 0; e < all; ++e) scores[e] = logistic(values[t * all + e]);
    std::vector<std::int32_t> order(routed);
    std::iota(order.begin(), order.end(), 0);
    const auto rank = [&](std::int32_t e) {
      return scores[static_cast<std::size_t>(e)] + correction[static_cast<std::size_t>(e)];
    };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rank(a) > rank(b); });
    order.resize(top_k);
    double sum = std::accumulate(scores.begin() + static_cast<std::ptrdiff_t>(routed), scores.end(), 0.0);
    for (const std::int32_t e : order) sum += scores[static_cast<std::size_t>(e)];
    for (const std::int32_t e : order) weights.push_back(scores[static_cast<std::size_t>(e)] / sum * scale);
    for (std::size_t e = routed; e < all; ++e) shares.push_back(scores[e] / sum * scale);
    routing.experts.insert(routing.experts.end(), order.begin(), order.end());
  }
  routing.weights = ops.upload(weights, x.rows(), top_k);
  Matrix mixed = ops.fused_moe(x, routing, mixture.experts, mixture.mixing);
  if (experts.empty()) return mixed;
  const Matrix gammas = ops.upload(shares, x.rows(), experts.size());
  Matrix beside;
  for (std::size_t e = 0; e < experts.size(); ++e) {
    const GatedMlp& expert = experts[e];
    const Matrix y = ops.linear(ops.scale(expert.inner(x, ops), gammas.part(e, 1)), expert.down);
    beside = e == 0 ? y : ops.add(beside, y);
  }
  return ops.add(mixed, beside);
}

}  // namespace assay
