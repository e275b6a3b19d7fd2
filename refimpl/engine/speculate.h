// One text with guesses ahead, through the serving engine: what `assay run --speculate` does.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "refimpl/engine/serving.h"

namespace assay {

struct Speculation {
  Generation made;
  ServingCounts counts;
  std::size_t drafted = 0, accepted = 0, steps = 0;
  double acceptance() const {
    return drafted == 0 ? 0 : static_cast<double>(accepted) / static_cast<double>(drafted);
  }
};

// Without a source the model's own layer for multi-token prediction guesses one token; throws Error::usage where it has none.
Speculation speculate(const LanguageModel& model, Ops& ops, const GenerationRequest& request,
                      const std::function<void(TokenId, std::span<const double> logits)>& listener = {},
                      SpeculationOptions options = {});

// Tokens a step where each of k guesses in a row is right with probability a: (1 - a^(k+1)) / (1 - a).
double expected_tokens(double acceptance, std::size_t guesses);
// Of guesses that were tried, how many were right.
double acceptance(const ServingCounts& counts);

}  // namespace assay
