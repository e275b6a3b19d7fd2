// A model's own modules for multi-token prediction guess. With tokens t₀ … tₙ, of which tₙ is the newest, and h what the main
// model's head saw:
//
//   module 1:  (h₍ᵢ₎, t₍ᵢ₊₁₎) for i < n           the last row says t₍ₙ₊₁₎
//   module m:  (module m - 1's row i, t₍ᵢ₊ₘ₎)     the last row says t₍ₙ₊ₘ₎; tokens behind tₙ are guesses
//
// (DeepSeek-V3, arXiv 2412.19437 §2.2). Where there is one module and more is asked, it goes on from its own last row: at
// position n with (its row n - 1, the guess of t₍ₙ₊₁₎), as engines have it. Rows with sure tokens are kept, others computed anew.
#pragma once

#include "refimpl/models/model.h"
#include "refimpl/speculation/drafter.h"

namespace assay {

// Beside a block of the pool: row i of a module m depends on token i + m, so that of the block's own rows the last depend on what
// comes behind it. Kept are the rows that stand so many before, which depend on nothing else, and what the head saw of the block's
// last tokens, from which the rest is computed with whatever comes. Nothing of a hit is given up for it.
class LayerDrafts : public DraftSource {
 public:
  // How a block's rows are kept: as above, or its own ones with the successors that they had (vllm#50438, a planted fault).
  enum class Keeping : std::uint8_t { without_successors, with_successors };

  // Throws Error::usage where the model has no such layer. Both outlive the drafters.
  LayerDrafts(const LanguageModel& model, Ops& ops, Keeping keeping = Keeping::without_successors);
  std::unique_ptr<Drafter> start() const override;

 private:
  const LanguageModel& model_;
  Ops& ops_;
  Keeping keeping_;
};

}  // namespace assay
