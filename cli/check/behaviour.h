// A short forward pass: the reference in float64, the reference in float32, and the kernels.
#pragma once

#include <optional>
#include <vector>

#include "cli/check/golden.h"
#include "cli/check/stages.h"

namespace assay {

struct BehaviourResult {
  Stage stage;
  std::vector<TokenId> tokens;
  std::vector<double> last_logits;  // in float64; empty where nothing was computed
};

// Rounding each result once to float32 leaves an error e32; a kernel that also rounds its sums of K products
// may be λ(K) = 4 √K times as far off (docs/compare.md), not more: so are allowed the kernels' logits, and
// those of a golden record, which somebody computed in some float32. Then perplexity, where a text is given.
BehaviourResult examine_behaviour(const CheckSettings& settings, const std::optional<Golden>& golden);

}  // namespace assay
