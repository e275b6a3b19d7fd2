// Is what stands far back still found? A phrase of four tokens is planted in a text, at some depth, and the text ends with
// the phrase's first token. That is the prompt. Then its second token is made, and the third should follow; it is made, and
// the fourth should. Both are foretold from what the cache kept of the phrase, and what it kept was chosen when it had seen
// the question's beginning. A small model seldom foretells them, with its full cache neither; so it is told as well by how
// much the phrase helps: ln p of what should follow, less ln p in the same text without the phrase, by the full cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cache_compare/cache_compare.h"

namespace assay {

struct RetrievalPlan {
  std::vector<std::size_t> lengths;  // of prompts
  std::vector<double> depths;        // 0: the phrase begins the text; 1: it ends it
  std::size_t trials = 4;            // of each, other phrases in other places of the text
  std::uint64_t seed = 1;
};
struct RetrievalCell {
  std::size_t found = 0, asked = 0;
  double log_probability = 0, without = 0;  // summed over what was asked
  double share() const { return asked == 0 ? 0 : static_cast<double>(found) / static_cast<double>(asked); }
  double gain() const { return asked == 0 ? 0 : (log_probability - without) / static_cast<double>(asked); }
  double mean_log_probability() const {
    return asked == 0 ? 0 : log_probability / static_cast<double>(asked);
  }
};
// [depths][lengths]
using RetrievalMap = std::vector<std::vector<RetrievalCell>>;

// The full cache's map first, then one a method. `filler`: a text of any length, which is gone round. `begin`: what every
// text begins with, or nothing. Phrases are of `phrase_tokens`, at least 4 of them.
std::vector<RetrievalMap> retrieve(const CacheComparison& comparison, const RetrievalPlan& plan,
                                   std::span<const TokenId> filler, std::span<const TokenId> begin,
                                   std::span<const TokenId> phrase_tokens);
RetrievalCell total(const RetrievalMap& map);

}  // namespace assay
