// Greedy self-speculation: a model's own layer for multi-token prediction guesses the token after next, the
// next step checks the guess while it computes. The text is that of plain greedy decoding, token for token.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "refimpl/engine/engine.h"

namespace assay {

struct Speculation {
  Generation made;
  std::size_t drafted = 0, accepted = 0, steps = 0;
  double acceptance() const {
    return drafted == 0 ? 0 : static_cast<double>(accepted) / static_cast<double>(drafted);
  }
};

// Throws Error::usage where the model has no such layer, or the request asks for sampling.
Speculation speculate(const LanguageModel& model, Ops& ops, const GenerationRequest& request,
                      const std::function<void(TokenId, std::span<const double> logits)>& listener = {});

}  // namespace assay
