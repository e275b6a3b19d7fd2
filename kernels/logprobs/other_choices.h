// A text of a model that chooses, with tokens beyond their budgets: does it say what the truth says where a choice near a tie is another?
//
// The first token beyond is looked at. Every choice near a tie at the tokens before it (choice_ties.h), the newest first, but before all others
// those that turned in the plain computation, is turned in the float64 computation; where the token comes within its own budget and none before it leaves its own, that choice is the side's, and
// what follows is held against the truth with it. No budget is widened: one choice of experts and keys has to explain every token.
#pragma once

#include "kernels/logprobs/choice_ties.h"
#include "kernels/logprobs/judge.h"

namespace assay::logprobs {

struct OtherChoices {
  std::vector<ChoiceTie> turned;
  std::vector<TrueToken> tokens;  // the truth with these; empty where none was turned
  bool explained = false;         // no token is beyond any more
  std::size_t ties = 0;  // of the first token that is: near it and before, all of which were tried, but for
  std::size_t untried = 0;  // these
};

struct BeyondText {
  std::span<const TokenId> ids;
  std::span<const std::vector<TokenId>> asked;
  std::span<const ChoiceErrors> choices;  // in the side's precision
  struct Scored {
    std::size_t at;  // into the ids
    const SavedToken* token;
    double budget;
  };
  std::vector<Scored> scored;     // in the order of the text
  std::vector<ChoiceTie> turned;  // that were found before
  bool partly = false;            // tokens that no choice explains are passed over
};
OtherChoices find_other_choices(TruthMaker& maker, const BeyondText& text);

}  // namespace assay::logprobs
