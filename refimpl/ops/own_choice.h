// Choices that a model makes beside the operations, by a rule of its own (DeepSeek-V4's and Phi-3.5-MoE's routers): told to
// who watches choices (kernels/logprobs/choice_ops.h).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

class ChoiceWatcher {
 public:
  // Whom one row of scores chooses, in any order.
  using Rule = std::function<std::vector<std::int32_t>(std::span<const double> scores)>;
  virtual ~ChoiceWatcher() = default;
  // scores: [tokens, experts]. Back come those to choose by: the same, or some by which the rule chooses others.
  virtual Matrix scores_of_choice(const Matrix& scores, const Rule& rule) = 0;
};

// `scores` as they are, where `ops` watches nothing.
inline Matrix watched_scores(Ops& ops, const Matrix& scores, const ChoiceWatcher::Rule& rule) {
  auto* watcher = dynamic_cast<ChoiceWatcher*>(&ops);
  return watcher == nullptr ? scores : watcher->scores_of_choice(scores, rule);
}

}  // namespace assay
