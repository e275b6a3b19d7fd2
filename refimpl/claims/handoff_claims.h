// Prompt and text by two engines, one technique of handing over at a time; and caches without positions, cut at their
// beginning, which are no such technique beyond the first layer.
#pragma once

#include <span>
#include <vector>

#include "refimpl/claims/claims.h"
#include "refimpl/handoff/prefill.h"

namespace assay {

// Bit for bit where `exact` (KernelSet::exact); else measured and not promised. `tokens`: at least 4, the text.
std::vector<Claim> handoff_claims(const HandoffModel& with, std::span<const TokenId> tokens, bool exact);

// How far a text's keys (before they are rotated), or its latents, are from those of the same text without its first `cut`
// tokens, layer by layer: the largest difference, relative to the largest number. AttentionStore (arXiv 2403.19708) keeps
// keys without positions and cuts a conversation that outgrows the window at its beginning; what a layer's keys are made of
// has seen what was cut in every layer but the first.
struct TruncationError {
  std::uint64_t layer = 0;  // of those that keep keys
  double error = 0;
};
std::vector<TruncationError> truncation_errors(const LanguageModel& model, Ops& ops,
                                               std::span<const TokenId> tokens, std::size_t cut);

}  // namespace assay
