// A pair i of a rotary part d wide rotates by θ^(-2i/d) radians a position: its wavelength is 2π θ^(2i/d).
//
//   linear     every frequency / factor                                    (Chen et al. 2023)
//   dynamic    beyond the context, θ grows: θ · (f L/C - (f - 1))^(d/(d-2))       ("NTK-aware")
//   yarn       fast pairs as they are, slow ones / factor, a ramp between; which is fast: rotates more than
//              beta_fast times within the original context                  (Peng et al. 2023)
//   llama3     by wavelength against the original context: short ones stay, long ones / factor, between them
//              a blend                                                      (Llama 3.1's reference code)
//   longrope   every pair by its own factor, of two lists: within the original context, or beyond
//                                                                           (Ding et al. 2024; Phi-3)
#include "refimpl/ops/rope_frequencies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

double dynamic_theta(const RopeRule& rule, std::size_t sequence_length) {
  const double d = static_cast<double>(rule.rotary_dim), context = static_cast<double>(rule.context);
  const double length = std::max(static_cast<double>(sequence_length), context);
  return rule.theta * std::pow(rule.factor * length / context - (rule.factor - 1), d / (d - 2));
}

// The pair, as a fraction, that rotates so many times within the original context.
double pair_rotating(const RopeRule& rule, double rotations) {
  const double ratio = static_cast<double>(rule.original_context) / (rotations * kTurn);
  return static_cast<double>(rule.rotary_dim) * std::log(ratio) / (2 * std::log(rule.theta));
}

void stretch_as_yarn(const RopeRule& rule, std::vector<double>& inverse) {
  double low = pair_rotating(rule, rule.beta_fast), high = pair_rotating(rule, rule.beta_slow);
  if (rule.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rule.rotary_dim) - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double slow = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inverse[i] = inverse[i] / rule.factor * slow + inverse[i] * (1 - slow);
  }
}

double yarn_scale(const RopeRule& rule) {
  const auto m = [&](double s) { return rule.factor <= 1 ? 1.0 : 0.1 * s * std::log(rule.factor) + 1; };
  if (rule.attention_factor != 0) return rule.attention_factor;
  if (rule.mscale != 0 && rule.mscale_all_dim != 0) return m(rule.mscale) / m(rule.mscale_all_dim);
  return m(1);
}

void stretch_as_llama3(const RopeRule& rule, std::vector<double>& inverse) {
  const auto original = static_cast<double>(rule.original_context);
  for (double& frequency : inverse) {
    const double wavelength = kTurn / frequency;
    if (wavelength < original / rule.high_freq_factor) continue;
    const double kept =
        wavelength > original / rule.low_freq_factor
            ? 0
            : (original / wavelength - rule.low_freq_factor) / (rule.high_freq_factor - rule.low_freq_factor);
    frequency = (1 - kept) * frequency / rule.factor + kept * frequency;
  }
}

double longrope_scale(const RopeRule& rule) {
  if (rule.attention_factor != 0) return rule.attention_factor;
  if (rule.factor <= 1) return 1;
  return std::sqrt(1 + std::log(rule.factor) / std::log(static_cast<double>(rule.original_context)));
}

}  // namespace

RopeFrequencies rope_frequencies(const RopeRule& rule, std::size_t sequence_length) {
  const double theta =
      rule.type == RopeRule::Type::dynamic ? dynamic_theta(rule, sequence_length) : rule.theta;
  RopeFrequencies result;
  for (std::size_t i = 0; i < rule.rotary_dim / 2; ++i) {
    const double exponent = 2 * static_cast<double>(i) / static_cast<double>(rule.rotary_dim);
    result.inverse.push_back(1 / std::pow(theta, exponent));
  }
  switch (rule.type) {
    case RopeRule::Type::standard:
    case RopeRule::Type::dynamic: break;
    case RopeRule::Type::proportional:
      for (std::size_t i = 0; i < result.inverse.size(); ++i)
        result.inverse[i] = i < rule.moving_pairs ? result.inverse[i] / rule.factor : 0;
      break;
    case RopeRule::Type::linear:
      for (double& frequency : result.inverse) frequency /= rule.factor;
      break;
    case RopeRule::Type::yarn:
      stretch_as_yarn(rule, result.inverse);
      result.scale = yarn_scale(rule);
      break;
    case RopeRule::Type::llama3: stretch_as_llama3(rule, result.inverse); break;
    case RopeRule::Type::longrope: {
      const bool beyond = sequence_length > rule.original_context;
      const std::vector<double>& factors = beyond ? rule.long_factor : rule.short_factor;
      if (factors.size() != result.inverse.size())
        throw Error::internal(
            fmt::format("longrope has {} factors for {} pairs", factors.size(), result.inverse.size()));
      for (std::size_t i = 0; i < factors.size(); ++i) result.inverse[i] /= factors[i];
      result.scale = longrope_scale(rule);
      break;
    }
  }
  return result;
}

}  // namespace assay
