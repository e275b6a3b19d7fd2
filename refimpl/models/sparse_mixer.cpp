#include "refimpl/models/sparse_mixer.h"

#include <algorithm>
#include <cmath>
#include <span>

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

}  // namespace

Routing sparse_mixer(const Matrix& logits, double jitter, Ops& ops) {
  const std::size_t tokens = logits.rows(), experts = logits.columns();
  const std::vector<double> all = ops.download(logits);
  Routing routing = {2, {}, {}};
  std::vector<double> weights;
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::span row = std::span(all).subspan(t * experts, experts);
    const Pick first = pick(row, experts, jitter, ops.arithmetic());
    for (const Pick& each : {first, pick(row, first.expert, jitter, ops.arithmetic())}) {
      routing.experts.push_back(static_cast<std::int32_t>(each.expert));
      weights.push_back(each.weight);
    }
  }
  routing.weights = ops.upload(weights, tokens, 2);
  return routing;
}

}  // namespace assay
