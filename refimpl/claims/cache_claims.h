// Compressed caches (docs/caches.md): with a budget that the text does not fill, each is the full cache, bit for bit.
#pragma once

#include "refimpl/claims/claims.h"

namespace assay {

// Of the methods that make sense for the model. `exact`: do the kernels promise bits that depend on nothing else?
std::vector<Claim> cache_claims(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens,
                                bool exact);

}  // namespace assay
