// From logits to the next token: greedy, or drawn. The order is transformers': repetition penalty, then
// temperature, top-k, top-p, min-p.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

struct SampleRule {
  double temperature = 0;         // 0: the largest logit, the first of equals
  std::size_t top_k = 0;          // 0: all
  double top_p = 1;               // the fewest, likeliest first, that have at least this probability together
  double min_p = 0;               // at least this fraction of the likeliest one's probability
  double repetition_penalty = 1;  // of tokens seen: positive logits / penalty, negative ones × penalty
};

// Numbers that depend on the seed alone: SplitMix64 (Steele et al. 2014).
class SampleStream {
 public:
  explicit SampleStream(std::uint64_t seed) : state_(seed) {}
  double uniform();  // in [0, 1), 53 bits

 private:
  std::uint64_t state_;
};

std::size_t argmax(std::span<const double> logits);

// Probabilities that the rule leaves; they sum to 1. `seen`: prompt and output so far.
std::vector<double> sample_distribution(std::span<const double> logits, const SampleRule& rule,
                                        std::span<const TokenId> seen);
// Throws Error::input when a logit is NaN.
TokenId sample(std::span<const double> logits, const SampleRule& rule, std::span<const TokenId> seen,
               SampleStream& stream);

}  // namespace assay
