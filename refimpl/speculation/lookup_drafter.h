// Guesses of what comes next from the text itself: what stood behind the last occurrence of its newest tokens. Texts
// that repeat their prompt (summaries, edits, code) are guessed well, others cost what the guesses cost.
#pragma once

#include <span>
#include <vector>

#include "refimpl/speculation/drafter.h"

namespace assay {

// At most `most` tokens; none where the newest token was never there before. Longer matches are sought first.
std::vector<TokenId> looked_up(std::span<const TokenId> text, std::size_t most);

// A chain as long as the tree's shape is deep.
class LookupDrafts : public DraftSource {
 public:
  std::unique_ptr<Drafter> start() const override;
};

}  // namespace assay
