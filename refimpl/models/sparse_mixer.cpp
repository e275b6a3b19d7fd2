#include "refimpl/models/sparse_mixer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "refimpl/ops/own_choice.h"

namespace assay {
namespace {

struct Pick {
  std::size_t expert = 0;
  double weight = 0;
};

// The best but for `left_out`.
Pick pick(std::span<const double> logits, std::size_t left_out, double jitter, const Arithmetic& arithmetic) {
  Pick best = {.expert = left_out == 0 ? 1U : 0U};
  for (std::size_t e = 0; e < logits.size(); ++e) {
    if (e != left_out && logits[e] > logits[best.expert]) best.expert = e;
  }
  const double top = logits[best.expert];
  double sum = 0;
  for (std::size_t e = 0; e < logits.size(); ++e) {
    const double size = std::max(std::fabs(logits[e]), top);
    const bool far = arithmetic.stage(arithmetic.stage(top - logits[e]) / size) > 2 * jitter;
    if (e != left_out && !far) sum += std::exp(logits[e] - top);
  }
  best.weight = 1 / sum;
  return best;
}

// The best, and the best of the others.
std::array<Pick, 2> two_of(std::span<const double> logits, double jitter, const Arithmetic& arithmetic) {
  const Pick first = pick(logits, logits.size(), jitter, arithmetic);
  return {first, pick(logits, first.expert, jitter, arithmetic)};
}

}  // namespace

Routing sparse_mixer(const Matrix& logits, double jitter, Ops& ops) {
  const std::size_t tokens = logits.rows(), experts = logits.columns();
  const auto chosen = [jitter, arithmetic = ops.arithmetic()](std::span<const double> row) {
    std::vector<std::int32_t> both;
    for (const Pick& each : two_of(row, jitter, arithmetic))
      both.push_back(static_cast<std::int32_t>(each.expert));
    return both;
  };
  const std::vector<double> all = ops.download(watched_scores(ops, logits, chosen));
  Routing routing = {2, {}, {}};
  std::vector<double> weights;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (const Pick& each : two_of(std::span(all).subspan(t * experts, experts), jitter, ops.arithmetic())) {
      routing.experts.push_back(static_cast<std::int32_t>(each.expert));
      weights.push_back(each.weight);
    }
  }
  routing.weights = ops.upload(weights, tokens, 2);
  return routing;
}

}  // namespace assay
