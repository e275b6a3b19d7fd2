// From logits to the probabilities that tokens are drawn by.
#pragma once

#include <span>
#include <vector>

#include "refimpl/sampling/sampling_params.h"

namespace assay {

// temperature, top-k, top-p, min-p, typical-p, each on what the one before it left, as transformers orders them; the
// sum is 1. Temperature 0: all on the largest logit. Of equal logits the earlier one counts as the likelier: where
// several stand on a limit, exactly the first of them are kept (transformers keeps all of a top-k's last place).
// Throws Error::input where a logit is NaN or +inf, or every one is -inf.
std::vector<double> sampling_law(std::span<const double> logits, const SamplingParams& params);

// The largest logit, the first of equals: what temperature 0 draws, without its law. Throws as sampling_law does.
TokenId likeliest(std::span<const double> logits);

// ln softmax.
std::vector<double> log_probabilities(std::span<const double> logits);

// The token whose interval [sum before, sum after) holds u: the same u and law give the same token.
TokenId token_at(std::span<const double> law, double u);

}  // namespace assay
