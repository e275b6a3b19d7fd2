// By how much rounding may move the weights of a softmax, in units of the accumulators' roundoff u.
//
// To first order, scores that are off by δ move p by p (δ - Σ p δ): at most p (δ + Σ p δ). The subtraction of
// the maximum rounds, which the exponential carries on as |s - max| u; it is itself good to 2 ulp, twice
// where sums are rescaled; the sum of n terms is good to λ = 4·√n u (measure.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/harness/measure.h"

namespace assay {

struct SoftmaxWeights {
  std::vector<double> p;
  std::vector<double> relative;  // error of p[i] / (u p[i])
};

inline SoftmaxWeights softmax_weights(std::span<const double> scores, std::span<const double> score_errors) {
  SoftmaxWeights w;
  const double largest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  double sum = 0, carried = 0;
  for (const double s : scores) sum += w.p.emplace_back(std::exp(s - largest));
  for (std::size_t i = 0; i < scores.size(); ++i) carried += (w.p[i] /= sum) * score_errors[i];
  const double constant = carried + accumulation_factor(scores.size()) + 8;
  for (std::size_t i = 0; i < scores.size(); ++i)
    w.relative.push_back(score_errors[i] + (largest - scores[i]) + constant);
  return w;
}

// The same where scores are off by as much as an arithmetic's own roundings between its stages may make them:
// not to first order, since bfloat16 moves a score of 100 by a quarter. Weights become at most p e^δ / Σ p
// e^-δ and at least p e^-δ / Σ p e^δ.
inline std::vector<double> moved_weights(std::span<const double> p, std::span<const double> score_errors) {
  double least = 0, most = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    least += p[i] * std::exp(-score_errors[i]);
    most += p[i] * std::exp(score_errors[i]);
  }
  std::vector<double> relative;
  for (const double error : score_errors)
    relative.push_back(std::max(std::exp(error) / least - 1, 1 - std::exp(-error) / most));
  return relative;
}

}  // namespace assay
