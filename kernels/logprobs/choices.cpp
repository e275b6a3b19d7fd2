#include "kernels/logprobs/choices.h"

#include <algorithm>
#include <cmath>

#include "refimpl/ops/reference.h"

namespace assay::logprobs {
namespace {

constexpr double kOfLargest = 2, kOfSpread = 6;

}  // namespace

Chooser chooser_of_experts(const WeightView& correction, const GateRule& rule) {
  return [correction, rule](std::span<const double> logits) {
    ReferenceOps exact(Arithmetic{Precision::f64}, 1);
    Routing routing = exact.moe_gate(exact.upload(logits, 1, logits.size()), correction, rule);
    std::sort(routing.experts.begin(), routing.experts.end());
    return std::move(routing.experts);
  };
}

Chooser chooser_of_keys(std::size_t top_k) {
  return [top_k](std::span<const double> scores) { return best_keys(scores, top_k); };
}

double ChoiceErrors::at(std::size_t token) const {
  const OfToken of = token < tokens.size() ? tokens[token] : OfToken();
  const double spread = of.count == 0 ? 0 : std::sqrt(of.squares / static_cast<double>(of.count));
  return std::max(kOfLargest * largest, kOfSpread * spread);
}

}  // namespace assay::logprobs
