// What `assay run` has to say of a generation: text as it comes, likely tokens, a timing line, JSON.
#pragma once

#include <string>
#include <vector>

#include "core/system/report.h"
#include "refimpl/claims/claims.h"
#include "refimpl/engine/engine.h"
#include "refimpl/run_model.h"
#include "refimpl/run_perplexity.h"

namespace assay {

struct LikelyTokens {
  TokenId chosen = 0;
  double log_probability = 0;
  std::vector<std::pair<TokenId, double>> likeliest;  // with ln p, likeliest first
};
LikelyTokens likely_tokens(std::span<const double> logits, TokenId chosen, std::size_t count);

Json to_json(const LikelyTokens& likely);
Json to_json(const EngineTiming& timing, double load_seconds);
Json to_json(const TextLoss& loss);
Json to_json(const std::vector<Claim>& claims);
Json describe_run(const OpenModel& model, const RunSettings& settings);  // {model, precision, kernels …}

// "load 0.01s; prefill 39 tokens, 812 tok/s; decode 64 tokens, 310 tok/s; peak memory 31 MB"
std::string timing_line(const EngineTiming& timing, double load_seconds);
std::string claim_table(const std::vector<Claim>& claims);
// "  -0.0021 ' river' (67)   -6.31 ' lake' (402)"
std::string likely_line(const LikelyTokens& likely, const Tokenizer* tokenizer);

}  // namespace assay
