// Which tokens of two saved texts are the same: by ids, or by their bytes where one side has no ids.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/formats/logprobs/saved.h"
#include "kernels/logprobs/figures.h"

namespace assay::logprobs {

bool same_token(const SavedToken& a, const SavedToken& b);

// `count` tokens from begin_a and begin_b on. Texts may begin or end at different places: one has its prompt, too.
struct TextMatch {
  std::size_t begin_a = 0, begin_b = 0, count = 0;
  std::string fault;  // the texts are not the same: "token 7 is 13 in A, 42 in B"
  std::string note;
};
TextMatch match_texts(const SavedText& a, const SavedText& b);

// Text by text, in the order of the files. Tokens that one side has no log-probability of are passed over, as are those
// whose value is the lowest that can be saved, on the side that has the smaller one.
struct MatchedPairs {
  std::vector<LogprobPair> pairs;  // positions are A's
  std::vector<TextMatch> texts;
  std::vector<std::string> faults, notes;
  std::size_t unsaid = 0;  // both have the token, and one has no log-probability of it
};
MatchedPairs match_responses(const SavedResponses& a, const SavedResponses& b);

// The rank of the text's own token: as it was saved, else its place among the likeliest, where it is not the last of
// these (servers add it behind them).
std::optional<std::uint64_t> rank_of(const SavedToken& token);
const SavedCandidate* first_of(
    const SavedToken& token);  // the likeliest; nullptr where fewer than two were saved

}  // namespace assay::logprobs
