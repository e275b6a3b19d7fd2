#include "refimpl/models/logit_choice.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "refimpl/ops/own_choice.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

std::vector<std::int32_t> best_of(std::span<const double> logits, std::span<const double> correction,
                                  std::size_t count) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](std::int32_t expert) {
    const auto e = static_cast<std::size_t>(expert);
    return logits[e] + (correction.empty() ? 0 : correction[e]);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return score(a) > score(b); });
  order.resize(count);
  return order;
}

}  // namespace

Routing logit_choice(const Matrix& logits, const WeightView& correction, const GateRule& rule, Ops& ops) {
  const std::size_t experts = logits.columns();
  const std::vector<double> corrections = correction ? decode_vector(correction) : std::vector<double>();
  const auto chosen = [&](std::span<const double> row) { return best_of(row, corrections, rule.top_k); };
  const std::vector<double> all = ops.download(watched_scores(ops, logits, chosen));
  Routing routing = {rule.top_k, {}, {}};
  std::vector<double> weights;
  for (std::size_t t = 0; t < logits.rows(); ++t) {
    const std::span row = std::span(all).subspan(t * experts, experts);
    const std::vector<std::int32_t> own = chosen(row);
    double sum = 0;
    for (const std::int32_t e : own) sum += logistic(row[static_cast<std::size_t>(e)]);
    for (const std::int32_t e : own)
      weights.push_back(logistic(row[static_cast<std::size_t>(e)]) / (rule.renormalize ? sum : 1) *
                        rule.scale);
    routing.experts.insert(routing.experts.end(), own.begin(), own.end());
  }
  routing.weights = ops.upload(weights, logits.rows(), rule.top_k);
  return routing;
}

}  // namespace assay
