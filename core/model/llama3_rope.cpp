#include "core/model/llama3_rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace assay {
namespace {

constexpr auto kTurn = static_cast<float>(2 * std::numbers::pi);
constexpr float kClose = 1e-4F;  // factors that other software computed in another order, or in float64

float wavelength(float base, std::uint64_t index, std::uint64_t head_dim) {
  const float exponent = static_cast<float>(index) / static_cast<float>(head_dim);
  return 1.0F / (1.0F / std::pow(base, exponent)) * kTurn;
}

bool gives(const Llama3Rope& rope, std::span<const float> factors, float base) {
  const std::vector<float> made = llama3_factors(rope, base, 2 * factors.size());
  return std::equal(made.begin(), made.end(), factors.begin(), factors.end(),
                    [](float a, float b) { return std::abs(a - b) <= kClose * std::abs(b); });
}

float rounded(float value) {
  const float whole = std::round(value);
  return std::abs(whole - value) <= 1e-2F * std::abs(value) ? whole : value;
}

// Between the two wavelengths the share kept is a line in the frequency: (context/λ - low)/(high - low). Two
// points of it give its slope and its height, and with low = 1 the rest.
std::optional<Llama3Rope> from_slope(std::span<const float> factors, float base, float factor) {
  std::vector<std::pair<double, double>> points;  // 1/λ, the share of the old frequency
  for (std::uint64_t i = 0; i < factors.size(); ++i) {
    const double share = (1.0 / double{factors[i]} - 1.0 / double{factor}) / (1.0 - 1.0 / double{factor});
    if (share > 1e-3 && share < 1 - 1e-3)
      points.emplace_back(1.0 / double{wavelength(base, 2 * i, 2 * factors.size())}, share);
  }
  if (points.size() < 2) return std::nullopt;
  const auto [x0, y0] = points.front();
  const auto [x1, y1] = points.back();
  const double slope = (y1 - y0) / (x1 - x0), height = slope * x0 - y0;
  if (!(slope > 0) || !(height > 0)) return std::nullopt;
  return Llama3Rope{factor, 1, rounded(static_cast<float>(1 + 1 / height)),
                    rounded(static_cast<float>(slope / height))};
}

}  // namespace

std::vector<float> llama3_factors(const Llama3Rope& rope, float base, std::uint64_t head_dim) {
  const float low = rope.low_freq_factor, high = rope.high_freq_factor, context = rope.original_context;
  std::vector<float> factors;
  for (std::uint64_t i = 0; i < head_dim; i += 2) {
    const float length = wavelength(base, i, head_dim);
    if (length < context / high) {
      factors.push_back(1.0F);
    } else if (length > context / low) {
      factors.push_back(rope.factor);
    } else {
      const float smooth = (1.0F / length * context - low) / (high - low);
      factors.push_back(1.0F / ((1.0F - smooth) / rope.factor + smooth));
    }
  }
  return factors;
}

std::optional<Llama3Rope> llama3_rope_of(std::span<const float> factors, float base) {
  const bool usable = !factors.empty() && std::all_of(factors.begin(), factors.end(),
                                                      [](float f) { return std::isfinite(f) && f > 0; });
  if (!usable) return std::nullopt;
  // Llama 3.1's, 3.2's and Llama 4's, before those that give the same factors here.
  for (const Llama3Rope& published : {Llama3Rope{8, 1, 4}, {32, 1, 4}, {16, 1, 1}})
    if (gives(published, factors, base)) return published;
  // The longest wavelength is divided by the factor itself, unless even it is short enough to interpolate.
  for (const float factor :
       {rounded(factors.back()), factors.back(), 8.0F, 32.0F, 2.0F, 4.0F, 16.0F, 64.0F}) {
    if (factor <= 1) continue;
    for (const float high :
         {4.0F, 1.0F, 32.0F}) {  // 1: Llama 4's, between which and low nothing is; 32: Step 3.7's
      for (int doubling = 0; doubling < 20; ++doubling) {
        const float context = doubling == 0 ? 8192.0F : static_cast<float>(1 << doubling);
        if (const Llama3Rope rope{factor, 1, high, context}; gives(rope, factors, base)) return rope;
      }
    }
    const auto fitted = from_slope(factors, base, factor);
    if (fitted && gives(*fitted, factors, base)) return fitted;
  }
  return std::nullopt;
}

}  // namespace assay
