// A mixture's text with tokens beyond their budgets: does it say what the truth says where a router near a tie chooses otherwise?
//
// The first token beyond is looked at. Every router near a tie at the tokens before it (router_ties.h), the newest first, is turned in the
// float64 computation; where the token comes within its own budget and none before it leaves its own, that choice is the side's, and
// what follows is held against the truth with it. No budget is widened: one choice of experts has to explain every token.
#pragma once

#include "kernels/logprobs/judge.h"
#include "kernels/logprobs/router_ties.h"

namespace assay::logprobs {

struct OtherExperts {
  std::vector<RouterTie> turned;
  std::vector<TrueToken> tokens;  // the truth with these; empty where none was turned
  bool explained = false;         // no token is beyond any more
  std::size_t ties = 0;  // of the first token that is: near it and before, all of which were tried, but for
  std::size_t untried = 0;  // these
};

struct BeyondText {
  std::span<const TokenId> ids;
  std::span<const std::vector<TokenId>> asked;
  std::span<const RouterErrors> routers;  // in the side's precision
  struct Scored {
    std::size_t at;  // into the ids
    const SavedToken* token;
    double budget;
  };
  std::vector<Scored> scored;  // in the order of the text
};
OtherExperts find_other_experts(TruthMaker& maker, const BeyondText& text);

}  // namespace assay::logprobs
