// Two log-probabilities of each of many tokens: how far apart, and what a trainer makes of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace assay::logprobs {

// One token that both sides score. Of three-way comparisons A is the truth.
struct LogprobPair {
  std::size_t text = 0, position = 0;
  double a = 0, b = 0;
  std::optional<std::uint64_t> rank_a, rank_b;
  std::optional<bool> same_first;  // both would choose the same token
  std::optional<double> kl;        // KL(A ‖ B), see lumped_kl
  double delta() const;            // b - a; 0 where both are the same infinity
};

// KL(p ‖ q) over the tokens that both name, and one more event, "any other token", with what is left of 1 on either
// side: what merging events does to it, by the log-sum inequality, is to lower it. So the whole vocabulary's is at
// least this. `shared`: ln p and ln q.
double lumped_kl(std::span<const std::pair<double, double>> shared);

struct PairFigures {
  std::size_t tokens = 0;
  double mean = 0, mean_abs = 0, rms = 0, max_abs = 0;  // of B - A, nats
  std::size_t max_at = 0;                               // into the pairs
  std::size_t kl_tokens = 0;
  double kl_mean = 0, kl_max = 0;
  std::size_t ranked = 0, rank_flips = 0;  // of the text's own tokens, where both tell a rank
  std::size_t firsts = 0, same_first = 0;
  std::optional<std::size_t> first_beyond;  // of |B - A| > limit, into the pairs
  std::size_t beyond = 0;
};
PairFigures pair_figures(std::span<const LogprobPair> pairs, std::optional<double> limit);

// r = p_B / p_A of each token: importance ratios where A drew the text (the rollout) and B learns from it (the trainer).
struct ClipRange {
  double low, high;
  const char* whose;
};
inline constexpr std::array<ClipRange, 4> kClipRanges = {{{0.8, 1.2, "PPO, GRPO: 0.2"},
                                                          {0.8, 1.28, "DAPO: 0.2 and 0.28"},
                                                          {0.8, 1.25, "a factor of 1.25"},
                                                          {0.5, 2, "truncated importance sampling: 2"}}};
inline constexpr std::array<double, 7> kRatioQuantiles = {0.001, 0.01, 0.05, 0.5, 0.95, 0.99, 0.999};
struct RatioFigures {
  std::size_t tokens = 0;
  double mean = 0, min = 0, max = 0;
  std::array<double, kRatioQuantiles.size()> quantiles{};
  std::array<double, kClipRanges.size()> outside{};  // shares
  double effective = 0;                              // (Σr)² / Σr², as a share of the tokens
  double kl_k1 = 0, kl_k3 = 0;  // estimates of KL(A ‖ B): mean of -ln r; of r - 1 - ln r
  double probability_mean = 0, probability_max = 0;  // of |p_B - p_A|
  // Of whole texts: Π r, and its root of as many tokens (GSPO's).
  double text_min = 0, text_max = 0, text_mean_min = 0, text_mean_max = 0;
};
RatioFigures ratio_figures(std::span<const LogprobPair> pairs);

}  // namespace assay::logprobs
