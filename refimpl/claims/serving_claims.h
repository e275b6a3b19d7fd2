// The engine's serving, one technique at a time, on a text of the user's choice: each request says what it says alone.
#pragma once

#include <span>
#include <vector>

#include "refimpl/claims/claims.h"
#include "refimpl/models/model.h"

namespace assay {

// Bit for bit where `exact` (KernelSet::exact); else measured and not promised. `tokens`: at least 4, the text.
std::vector<Claim> serving_claims(const LanguageModel& model, Ops& ops, std::span<const TokenId> tokens,
                                  bool exact);

}  // namespace assay
