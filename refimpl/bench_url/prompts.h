// Prompts of exactly so many tokens, drawn by seed: of token ids, or of words that cost one token each.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "refimpl/bench_url/load_plan.h"

namespace assay {

using TokenNumber = std::uint32_t;
using PromptSent = std::variant<std::vector<TokenNumber>, std::string>;

// What prompts are made of: ids, or else words.
struct PromptPool {
  std::vector<TokenNumber> ids;
  std::string first_word;          // of every text: where a text begins, a word may be another token
  std::vector<std::string> words;  // one token each behind that
  std::size_t overhead = 0;        // tokens of the first word alone, with what the server puts around it
};

// Prompts of one seed whose blocks have equal numbers begin with equal tokens; all others differ from the first on (of a
// text: the second).
PromptSent make_prompt(const PromptPool& pool, const LoadPlan& plan, std::size_t index, std::uint64_t seed);
// Throws Error::usage where what the server adds to a text is longer than a prompt.
void check_prompts(const PromptPool& pool, const LoadPlan& plan);

}  // namespace assay
