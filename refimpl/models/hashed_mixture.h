// DeepSeek-V4's experts: scores √softplus, chosen by them and a correction, or in the first layers by a table of
// tokens; gate and up are cut off at a limit.
#pragma once

#include <span>
#include <vector>

#include "refimpl/models/feed_forward.h"

namespace assay {

struct HashedMixture {
  Mixture mixture;                  // its weights
  std::vector<std::int32_t> table;  // [vocabulary, top_k]; empty: chosen by scores
  double limit = 0;                 // of gate from above, of up on both sides

  static HashedMixture read(const Weights& weights, std::size_t layer);
  Matrix forward(const Matrix& x, std::span<const TokenId> tokens, Ops& ops, const TapScope& at) const;
};

}  // namespace assay
