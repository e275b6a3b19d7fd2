// How one sequence's tokens are chosen: plain data, for whoever asks for a text.
//
// The rules act in this order, as vLLM and transformers document theirs:
//   1. logit_bias           added to the logits
//   2. what may not come    a constraint's tokens (a grammar), and end tokens before min_tokens are there
//   3. penalties            repetition (prompt and output), then frequency and presence (output alone)
//   4. temperature, top-k, top-p, min-p, typical-p: each on what the one before it left (law.h)
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "refimpl/ops/calls.h"

namespace assay {

struct SamplingParams {
  double temperature = 0;  // 0: the largest logit, the first of equals
  std::size_t top_k = 0;   // 0: all
  double top_p = 1;        // the fewest, likeliest first, that have at least this probability together
  double min_p = 0;        // at least this fraction of the likeliest one's probability
  double typical_p = 1;    // the fewest, nearest to the entropy first, that have more than this together
  double repetition_penalty = 1;  // of tokens seen: positive logits / penalty, negative ones × penalty
  double presence_penalty = 0;    // subtracted once from the logit of a token of the output
  double frequency_penalty = 0;   // subtracted as often as the token is in the output
  std::vector<std::pair<TokenId, double>> logit_bias;
  std::size_t min_tokens = 0;        // no end token before so many tokens were made
  std::vector<TokenId> stop_tokens;  // each ends the text; it is among the ids
  std::uint64_t seed = 0;
  std::uint32_t sample = 0;  // which of a request's n samples: each has numbers of its own
};

// Throws Error::usage for what no rule can be: a top_p of 0, a temperature below 0, NaN …
void check_sampling(const SamplingParams& params);

}  // namespace assay
