#include "kernels/dumps/limits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/numeric/codec.h"

namespace assay::dumps {
namespace {

constexpr Growth kSingle = {8, 1}, kHalf = {24, 2.4};  // float32 and finer; 16 bits and coarser
constexpr double kRoundingsPerBlock = 10;
constexpr double kFloat32 = 0x1p-24;
constexpr std::size_t kEnoughToTell = 64;

double root_mean_square(const double* row, std::size_t width) {
  double sum = 0;
  for (std::size_t j = 0; j < width; ++j) sum += std::isfinite(row[j]) ? row[j] * row[j] : 0;
  return width == 0 ? 0 : std::sqrt(sum / static_cast<double>(width));
}

// Of each token, and no less than the median token's.
std::vector<double> scales_of(const Activations& of) {
  std::vector<double> scales(of.rows), sorted;
  for (std::size_t i = 0; i < of.rows; ++i) scales[i] = root_mean_square(of.row(i), of.width);
  sorted = scales;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  if (!sorted.empty()) std::nth_element(sorted.begin(), middle, sorted.end());
  for (double& scale : scales) scale = std::max(scale, *middle);
  return scales;
}

bool is_held(double value, ElementType type) {
  if (type == ElementType::F32) return static_cast<double>(static_cast<float>(value)) == value;
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return false;
  const FloatFormat& format = *float_format(type);
  return decode(format, encode(format, narrow, Overflow::special)) == narrow;
}

}  // namespace

Growth measured_growth(ElementType precision) {
  return unit_roundoff(precision) > kFloat32 ? kHalf : kSingle;
}

Limit derived_limit(ElementType precision, std::uint64_t layer, std::uint64_t width) {
  const double u = unit_roundoff(precision);
  // Doubles are summed in doubles.
  const double u_sum = precision == ElementType::F64 ? u : kFloat32;
  const double unit = (u + u_sum * std::sqrt(static_cast<double>(width))) *
                      std::sqrt(kRoundingsPerBlock * static_cast<double>(layer + 1));
  const Growth growth = measured_growth(precision);
  return {growth.element * unit, growth.norm * unit};
}

Limit given_limit(double rtol) {
  return {rtol, rtol};
}

ElementType held_precision(const Activations& of) {
  if (of.type != ElementType::F64 && of.type != ElementType::F32) return of.type;
  std::vector<ElementType> candidates = {ElementType::BF16, ElementType::F16};
  if (of.type == ElementType::F64) candidates.push_back(ElementType::F32);
  std::size_t told = 0;
  for (const double value : of.values) {
    if (!std::isfinite(value) || value == std::trunc(value)) continue;
    ++told;
    std::erase_if(candidates, [&](ElementType type) { return !is_held(value, type); });
    if (candidates.empty()) return of.type;
  }
  return told < kEnoughToTell ? of.type : candidates.front();
}

ElementType coarser(ElementType a, ElementType b) {
  const auto known = [](ElementType t) {
    return t == ElementType::F64 || t == ElementType::F32 || float_format(t) != nullptr;
  };
  if (!known(a)) return b;
  if (!known(b)) return a;
  return unit_roundoff(a) >= unit_roundoff(b) ? a : b;
}

TapError tap_error(const Activations& ref, const Activations& test, const Limit& limit) {
  TapError result;
  std::vector<double> budget(ref.values.size());
  result.row_ratio.resize(ref.rows);
  const std::vector<double> scales = scales_of(ref);
  for (std::size_t i = 0; i < ref.rows; ++i) {
    double worst = 0;
    for (std::size_t j = 0; j < ref.width; ++j) {
      const std::size_t at = i * ref.width + j;
      const double r = ref.values[at], t = test.values[at];
      budget[at] = limit.element * std::max(std::isfinite(r) ? std::fabs(r) : 0.0, scales[i]);
      if (r == t || (std::isnan(r) && std::isnan(t))) continue;
      const double ratio = std::isfinite(r) && std::isfinite(t) && budget[at] > 0
                               ? std::fabs(t - r) / budget[at]
                               : std::numeric_limits<double>::infinity();
      worst = std::max(worst, ratio);
    }
    result.row_ratio[i] = static_cast<float>(worst);
    if (worst > 1 && result.rows_over++ == 0) result.first_row = i;
  }
  const ElementType type =
      float_format(test.type) != nullptr || test.type == ElementType::F64 ? test.type : ElementType::F32;
  result.measure = measure(test.values, ref.values, budget, type);
  result.frobenius = std::sqrt(result.measure.nmse);
  const double whole = result.frobenius == 0 ? 0 : result.frobenius / limit.frobenius;
  result.ratio = std::max(result.measure.ratio, whole);
  if (result.measure.pattern_faults > 0) result.ratio = std::numeric_limits<double>::infinity();
  return result;
}

Limit yardstick_limit(const Activations& ref, const Activations& plain) {
  const double floor = unit_roundoff(coarser(held_precision(ref), held_precision(plain)));
  const TapError error = tap_error(ref, plain, {1, 1});
  return {2 * std::max(error.measure.ratio, floor), 2 * std::max(error.frobenius, floor)};
}

}  // namespace assay::dumps
