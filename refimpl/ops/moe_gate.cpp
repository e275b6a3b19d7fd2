// Which experts a token goes to, and how much each of them counts. Of a token's router logits z:
//
//   s = softmax(z) or σ(z)               scores
//   c = s + correction                   what chooses; the correction never weighs  (DeepSeek-V3, §2.1.2)
//   c outside the best groups := -inf    a group's score: its largest c (DeepSeek-V2) or its two largest (V3)
//   E = the top_k of c
//   w = s[E], / (Σ w + ε) if renormalized, · scale
//
// top_k_first (gpt-oss): E = the top_k of z, w = softmax(z[E]). Of equal candidates the lower number wins.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "refimpl/ops/reference.h"
#include "refimpl/ops/softmax.h"
#include "refimpl/ops/support.h"

namespace assay {
namespace {

using Numbers = std::vector<double>;

std::vector<std::size_t> best(const Numbers& values, std::size_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

Numbers scores_of(Numbers logits, GateRule::Score score) {
  if (score == GateRule::Score::softmax) {
    softmax_three_pass(logits);
  } else {
    for (double& z : logits) z = 1 / (1 + std::exp(-z));
  }
  return logits;
}

double group_score(const Numbers& choice, std::size_t first, std::size_t count, GateRule::GroupScore kind) {
  Numbers group(choice.begin() + static_cast<std::ptrdiff_t>(first),
                choice.begin() + static_cast<std::ptrdiff_t>(first + count));
  std::sort(group.begin(), group.end(), std::greater<>());
  const bool two = kind == GateRule::GroupScore::sum_of_two && count > 1;
  return group[0] + (two ? group[1] : 0);
}

void keep_best_groups(Numbers& choice, const GateRule& rule) {
  const std::size_t size = choice.size() / rule.groups;
  Numbers scores(rule.groups);
  for (std::size_t g = 0; g < rule.groups; ++g)
    scores[g] = group_score(choice, g * size, size, rule.group_score);
  std::vector<bool> kept(rule.groups);
  for (const std::size_t g : best(scores, rule.chosen_groups)) kept[g] = true;
  const double outside = rule.masked_is_zero ? 0 : -std::numeric_limits<double>::infinity();
  for (std::size_t e = 0; e < choice.size(); ++e) {
    if (!kept[e / size]) choice[e] = outside;
  }
}

struct Chosen {
  std::vector<std::size_t> experts;
  Numbers weights;
};

Chosen top_k_then_softmax(const Numbers& logits, const GateRule& rule) {
  Chosen chosen{best(logits, rule.top_k), {}};
  for (const std::size_t e : chosen.experts) chosen.weights.push_back(logits[e]);
  softmax_three_pass(chosen.weights);
  return chosen;
}

Chosen choose(const Numbers& logits, const Numbers& correction, const GateRule& rule) {
  if (rule.top_k_first) return top_k_then_softmax(logits, rule);
  const Numbers scores = scores_of(logits, rule.score);
  Numbers choice = scores;
  for (std::size_t e = 0; e < correction.size(); ++e) choice[e] += correction[e];
  if (rule.groups > 1) keep_best_groups(choice, rule);

  Chosen chosen{best(choice, rule.top_k), {}};
  for (const std::size_t e : chosen.experts) chosen.weights.push_back(scores[e]);
  const double sum = std::accumulate(chosen.weights.begin(), chosen.weights.end(), 0.0) + rule.epsilon;
  for (double& w : chosen.weights) w = (rule.renormalize ? w / sum : w) * rule.scale;
  return chosen;
}

void check(const Matrix& logits, std::size_t corrections, const GateRule& rule) {
  const std::size_t experts = logits.columns();
  const bool fits = rule.top_k >= 1 && rule.top_k <= experts && rule.groups >= 1 &&
                    experts % rule.groups == 0 && rule.chosen_groups >= 1 &&
                    rule.chosen_groups <= rule.groups && (corrections == 0 || corrections == experts);
  if (!fits) throw Error::internal("a gate's rule does not fit its experts");
}

}  // namespace

Routing ReferenceOps::moe_gate(const Matrix& logits, const WeightView& correction, const GateRule& rule) {
  const Numbers c = correction ? decode_vector(correction) : Numbers{};  // float32 in every reference
  check(logits, c.size(), rule);
  Routing routing{rule.top_k, {}, allocate(logits.rows(), rule.top_k)};
  with_elements(logits.real(), [&](auto element) {
    using T = decltype(element);
    for (std::size_t t = 0; t < logits.rows(); ++t) {
      const T* z = logits.row<T>(t);
      const Chosen chosen = choose(Numbers(z, z + logits.columns()), c, rule);
      for (std::size_t k = 0; k < rule.top_k; ++k) {
        const double w = chosen.weights[k];
        routing.experts.push_back(static_cast<std::int32_t>(chosen.experts[k]));
        routing.weights.row<T>(t)[k] =
            static_cast<T>(rule.rounding == ResultRounding::float32 ? w : arithmetic().round(w));
      }
    }
  });
  return routing;
}

}  // namespace assay
