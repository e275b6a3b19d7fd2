#include "kernels/logprobs/figures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/numeric/quantile.h"

namespace assay::logprobs {

double LogprobPair::delta() const {
  return a == b ? 0.0 : b - a;  // of two infinities too
}

double lumped_kl(std::span<const std::pair<double, double>> shared) {
  double sum = 0, rest_p = 1, rest_q = 1;
  for (const auto& [log_p, log_q] : shared) {
    const double p = std::exp(log_p);
    rest_p -= p;
    rest_q -= std::exp(log_q);
    if (p > 0) sum += p * (log_p - log_q);
  }
  // Less than rounding leaves of 1 is nothing.
  constexpr double kNothing = 1e-6;
  if (rest_p > kNothing && rest_q > kNothing) sum += rest_p * std::log(rest_p / rest_q);
  return std::max(sum, 0.0);
}

PairFigures pair_figures(std::span<const LogprobPair> pairs, std::optional<double> limit) {
  PairFigures f;
  f.tokens = pairs.size();
  double kl_sum = 0, squares = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const LogprobPair& pair = pairs[i];
    const double delta = pair.delta();
    f.mean += delta;
    f.mean_abs += std::abs(delta);
    squares += delta * delta;
    if (!(std::abs(delta) <= f.max_abs)) {
      f.max_abs = std::abs(delta);
      f.max_at = i;
    }
    if (limit && !(std::abs(delta) <= *limit)) {
      if (!f.first_beyond) f.first_beyond = i;
      ++f.beyond;
    }
    if (pair.kl) {
      ++f.kl_tokens;
      kl_sum += *pair.kl;
      f.kl_max = std::max(f.kl_max, *pair.kl);
    }
    if (pair.rank_a && pair.rank_b) {
      ++f.ranked;
      f.rank_flips += *pair.rank_a != *pair.rank_b ? 1 : 0;
    }
    if (pair.same_first) {
      ++f.firsts;
      f.same_first += *pair.same_first ? 1 : 0;
    }
  }
  if (f.kl_tokens > 0) f.kl_mean = kl_sum / static_cast<double>(f.kl_tokens);
  if (pairs.empty()) return f;
  const auto n = static_cast<double>(pairs.size());
  f.mean /= n;
  f.mean_abs /= n;
  f.rms = std::sqrt(squares / n);
  return f;
}

RatioFigures ratio_figures(std::span<const LogprobPair> pairs) {
  RatioFigures f;
  f.tokens = pairs.size();
  if (pairs.empty()) return f;
  std::vector<double> ratios;
  std::map<std::size_t, std::pair<double, std::size_t>> texts;  // Σ ln r, tokens
  double sum = 0, squares = 0;
  for (const LogprobPair& pair : pairs) {
    const double log_ratio = pair.delta(), ratio = std::exp(log_ratio);
    ratios.push_back(ratio);
    sum += ratio;
    squares += ratio * ratio;
    f.kl_k1 -= log_ratio;
    f.kl_k3 += ratio - 1 - log_ratio;
    const double apart = std::abs(std::exp(pair.b) - std::exp(pair.a));
    f.probability_mean += apart;
    f.probability_max = std::max(f.probability_max, apart);
    texts[pair.text].first += log_ratio;
    ++texts[pair.text].second;
    for (std::size_t i = 0; i < kClipRanges.size(); ++i)
      f.outside[i] += ratio >= kClipRanges[i].low && ratio <= kClipRanges[i].high ? 0 : 1;
  }
  const auto n = static_cast<double>(pairs.size());
  f.mean = sum / n;
  f.kl_k1 /= n;
  f.kl_k3 /= n;
  f.probability_mean /= n;
  for (double& share : f.outside) share /= n;
  f.effective = squares > 0 ? sum * sum / squares / n : 0;
  std::sort(ratios.begin(), ratios.end());
  f.min = ratios.front();
  f.max = ratios.back();
  for (std::size_t i = 0; i < kRatioQuantiles.size(); ++i)
    f.quantiles[i] = linear_quantile(ratios, kRatioQuantiles[i]);
  f.text_min = f.text_mean_min = std::numeric_limits<double>::infinity();
  for (const auto& [text, of] : texts) {
    const double whole = std::exp(of.first), mean = std::exp(of.first / static_cast<double>(of.second));
    f.text_min = std::min(f.text_min, whole);
    f.text_max = std::max(f.text_max, whole);
    f.text_mean_min = std::min(f.text_mean_min, mean);
    f.text_mean_max = std::max(f.text_mean_max, mean);
  }
  return f;
}

}  // namespace assay::logprobs
