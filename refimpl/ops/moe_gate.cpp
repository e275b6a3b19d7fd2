// From a router's logits to experts and their weights, a token at a time:
//
//   scores   s = softmax(logits) or σ(logits)
//   choice   c = s + correction; with groups, of the best groups only, whose score is their largest c or
//            the sum of their two largest; the top_k largest c, the earlier one of equals
//   weights  w = s of the chosen, / Σ w where renormalized, × routed_scaling_factor
//
// Sources: Mixtral, Qwen3-MoE (softmax, then top k), gpt-oss (top k, then softmax), DeepSeek-V2 (groups by
// their largest), DeepSeek-V3 §2.1.2 (σ, correction for the choice alone, groups by two). What a masked
// group's experts count differs: -inf in DeepSeek's inference/model.py and in transformers 5; 0 in
// transformers 4, which chooses otherwise where the correction makes scores negative.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "refimpl/ops/reference.h"
#include "refimpl/ops/softmax.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

// Places of the `count` largest, largest first. NaN is never chosen while a number is left.
std::vector<std::size_t> largest(const std::vector<double>& values, std::size_t count) {
  std::vector<std::size_t> chosen;
  std::vector<bool> taken(values.size());
  while (chosen.size() < std::min(count, values.size())) {
    std::size_t best = values.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (taken[i]) continue;
      if (best == values.size() || values[i] > values[best] || std::isnan(values[best])) best = i;
    }
    taken[best] = true;
    chosen.push_back(best);
  }
  return chosen;
}

void mask_groups(std::vector<double>& choice, const GateRule& rule) {
  const std::size_t size = choice.size() / rule.groups;
  std::vector<double> scores;
  for (std::size_t g = 0; g < rule.groups; ++g) {
    const auto begin = choice.begin() + static_cast<std::ptrdiff_t>(g * size);
    const std::vector<double> group(begin, begin + static_cast<std::ptrdiff_t>(size));
    double score = 0;
    for (const std::size_t i : largest(group, rule.group_score == GateRule::GroupScore::largest ? 1 : 2))
      score += group[i];
    scores.push_back(score);
  }
  const std::vector<std::size_t> kept = largest(scores, rule.chosen_groups);
  const double masked = rule.masked_is_zero ? 0 : -std::numeric_limits<double>::infinity();
  for (std::size_t e = 0; e < choice.size(); ++e) {
    if (std::find(kept.begin(), kept.end(), e / size) == kept.end()) choice[e] = masked;
  }
}

std::vector<double> scores_of(std::vector<double> logits, GateRule::Score score) {
  if (score == GateRule::Score::softmax) {
    softmax_three_pass(logits);
  } else {
    for (double& s : logits) s = 1 / (1 + std::exp(-s));
  }
  return logits;
}

struct Chosen {
  std::vector<std::size_t> experts;
  std::vector<double> weights;
};

Chosen choose(const std::vector<double>& logits, const std::vector<double>& correction,
              const GateRule& rule) {
  const std::vector<double> scores = rule.top_k_first ? logits : scores_of(logits, rule.score);
  std::vector<double> choice = scores;
  for (std::size_t e = 0; e < correction.size(); ++e) choice[e] += correction[e];
  if (rule.groups > 1) mask_groups(choice, rule);
  Chosen chosen = {largest(choice, rule.top_k), {}};
  for (const std::size_t e : chosen.experts) chosen.weights.push_back(scores[e]);
  if (rule.top_k_first) chosen.weights = scores_of(chosen.weights, rule.score);
  double sum = rule.epsilon;
  for (const double w : chosen.weights) sum += w;
  for (double& w : chosen.weights) w = (rule.renormalize ? w / sum : w) * rule.scale;
  return chosen;
}

}  // namespace

Routing ReferenceOps::run(const MoeGateCall& call) {
  const Matrix& logits = call.logits;
  const GateRule& rule = call.rule;
  if (rule.top_k == 0 || rule.top_k > logits.columns() || rule.groups == 0 ||
      logits.columns() % rule.groups != 0 || rule.chosen_groups > rule.groups)
    throw Error::internal(fmt::format("moe_gate: top {} of {} experts in {} of {} groups", rule.top_k,
                                      logits.columns(), rule.chosen_groups, rule.groups));
  const std::vector<double> bias = call.correction ? decode_vector(call.correction) : std::vector<double>();
  Routing routing = {rule.top_k, {}, allocate(logits.rows(), rule.top_k)};
  with_elements(logits.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t t = 0; t < logits.rows(); ++t) {
      const T* row = logits.row<T>(t);
      const Chosen chosen = choose(std::vector<double>(row, row + logits.columns()), bias, rule);
      for (std::size_t i = 0; i < rule.top_k; ++i) {
        const double w = chosen.weights[i];
        const bool rounds = rule.rounding == ResultRounding::as_arithmetic;
        routing.experts.push_back(static_cast<std::int32_t>(chosen.experts[i]));
        routing.weights.row<T>(t)[i] = static_cast<T>(rounds ? arithmetic().round(w) : w);
      }
    }
  });
  return routing;
}

}  // namespace assay
