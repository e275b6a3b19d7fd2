// Logits of a model that is made up: z = W h + b, h out of the prompt's ids by a hash, through a last norm of either kind.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace assay::test {

struct MadeModel {
  std::size_t hidden = 12, vocabulary = 96;
  bool layer_norm = false, norm_bias = false, head_bias = false;
  double cap = 0;

  // In [0, 1), by SplitMix64 (Steele et al., OOPSLA 2014).
  static double uniform(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return std::ldexp(static_cast<double>((x ^ (x >> 31)) >> 11), -53);
  }
  static double normal(std::uint64_t x) {
    return std::sqrt(-2 * std::log(1 - uniform(2 * x))) * std::cos(2 * M_PI * uniform(2 * x + 1));
  }

  std::vector<double> state(std::uint64_t prompt) const {
    std::vector<double> h(hidden);
    double mean = 0, squares = 0;
    for (std::size_t i = 0; i < hidden; ++i) h[i] = normal(prompt * 100'003 + i);
    for (const double x : h) mean += layer_norm ? x / static_cast<double>(hidden) : 0;
    for (double& x : h) squares += (x - mean) * (x - mean);
    const double rms = std::sqrt(squares / static_cast<double>(hidden));
    for (std::size_t i = 0; i < hidden; ++i)
      h[i] = (h[i] - mean) / rms * (0.5 + uniform(900'000 + i)) + (norm_bias ? normal(800'000 + i) : 0);
    return h;
  }

  std::vector<double> logits(std::uint64_t prompt) const {
    const std::vector<double> h = state(prompt);
    std::vector<double> z(vocabulary);
    for (std::size_t v = 0; v < vocabulary; ++v) {
      z[v] = head_bias ? normal(700'000 + v) : 0;
      for (std::size_t i = 0; i < hidden; ++i)
        z[v] += normal(1'000'000 + v * hidden + i) * h[i] / std::sqrt(static_cast<double>(hidden));
      if (cap > 0) z[v] = cap * std::tanh(z[v] / cap);
    }
    return z;
  }
};

inline std::vector<double> log_softmax(std::vector<double> z) {
  double most = z.front(), sum = 0;
  for (const double x : z) most = std::max(most, x);
  for (const double x : z) sum += std::exp(x - most);
  for (double& x : z) x -= most + std::log(sum);
  return z;
}

}  // namespace assay::test
