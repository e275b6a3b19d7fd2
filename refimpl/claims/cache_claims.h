// Compressed caches (docs/caches.md): with a budget that the text does not fill, each is the full cache, bit for bit.
#pragma once

#include "refimpl/claims/claims.h"

namespace assay {

// Of the methods that make sense for the model. `exact`: do the kernels promise bits that depend on nothing else?
std::vector<Claim> cache_claims(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens,
                                bool exact);

// Layers grouped so that a window holds all of the text: how far the logits are from the full model's, of the largest. The
// model is opened once more, as another one. Throws Error::input where its layers cannot be grouped.
double grouped_difference(const Weights& weights, const ModelOptions& options, Ops& ops, int jobs,
                          std::span<const TokenId> tokens, std::size_t window);
// The claim that it is nothing; none where layers cannot be grouped.
std::vector<Claim> grouped_claims(const Weights& weights, const ModelOptions& options, Ops& ops, int jobs,
                                  std::span<const TokenId> tokens, bool exact);

}  // namespace assay
