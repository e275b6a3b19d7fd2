#include "kernels/harness/measure_wide.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/numeric/codec.h"
#include "core/system/error.h"

namespace assay {
namespace {

constexpr std::array<std::uint64_t, kUlpClasses - 1> kUlpBounds = {0, 1, 2, 4, 16, 256, 65536};

// Codes as integers that are ordered as the numbers are, so that neighbours differ by one.
std::int64_t ordered_code(ElementType type, float value) {
  std::int64_t magnitude = 0;
  const float positive = std::fabs(value);
  if (const FloatFormat* format = float_format(type); format != nullptr)
    magnitude = encode(*format, positive, Overflow::special);
  else
    magnitude = std::bit_cast<std::uint32_t>(positive);
  return std::signbit(value) ? -magnitude : magnitude;
}

struct MeasureSums {
  double error = 0, truth = 0, out = 0, product = 0;
};

std::size_t class_of_distance(std::int64_t a, std::int64_t b) {
  const auto distance = static_cast<std::uint64_t>(a > b ? a - b : b - a);
  return static_cast<std::size_t>(std::lower_bound(kUlpBounds.begin(), kUlpBounds.end(), distance) -
                                  kUlpBounds.begin());
}

// Doubles count in codes of doubles where the type is F64, else as ulp_class() does.
std::size_t ulp_class_of(ElementType type, float out, double truth) {
  return ulp_class(type, out, truth);
}
std::size_t ulp_class_of(ElementType type, double out, double truth) {
  if (type != ElementType::F64) return ulp_class(type, static_cast<float>(out), truth);
  const auto ordered = [](double x) {
    const auto magnitude = std::bit_cast<std::int64_t>(std::fabs(x));
    return std::signbit(x) ? -magnitude : magnitude;
  };
  return class_of_distance(ordered(out), ordered(truth));
}

template <class Out>
ErrorMeasure measure_all(std::span<const Out> out, std::span<const double> truth,
                         std::span<const double> budget, ElementType type) {
  if (out.size() != truth.size() || (!budget.empty() && budget.size() != truth.size()))
    throw Error::internal(fmt::format("an output of {} values, a truth of {}, a budget of {}", out.size(),
                                      truth.size(), budget.size()));
  ErrorMeasure m;
  m.elements = truth.size();
  MeasureSums sums;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    m.zeros += truth[i] == 0 ? 1 : 0;
    if (!same_pattern(out[i], truth[i])) {
      if (m.pattern_faults++ == 0) m.worst = i;
      continue;
    }
    if (!std::isfinite(truth[i])) continue;
    const double error = std::fabs(static_cast<double>(out[i]) - truth[i]);
    const double allowed = budget.empty() ? 0.0 : budget[i];
    const double ratio = error == 0    ? 0
                         : allowed > 0 ? error / allowed
                                       : std::numeric_limits<double>::infinity();
    m.over_budget += !(ratio <= 1) ? 1 : 0;
    if (!(ratio <= m.ratio)) {
      m.ratio = ratio;
      if (m.pattern_faults == 0) m.worst = i;
    }
    m.max_abs = std::max(m.max_abs, error);
    if (truth[i] != 0) m.max_rel = std::max(m.max_rel, error / std::fabs(truth[i]));
    ++m.ulps[ulp_class_of(type, out[i], truth[i])];
    sums.error += error * error;
    sums.truth += truth[i] * truth[i];
    sums.out += static_cast<double>(out[i]) * out[i];
    sums.product += static_cast<double>(out[i]) * truth[i];
  }
  m.nmse = sums.error == 0 ? 0 : sums.error / sums.truth;
  if (sums.truth > 0 && sums.out > 0) {
    const double cosine = sums.product / std::sqrt(sums.truth * sums.out);
    m.one_minus_cosine = std::max(0.0, 1.0 - cosine);
  } else {
    m.one_minus_cosine = sums.truth == sums.out ? 0.0 : 1.0;
  }
  return m;
}

}  // namespace

double unit_roundoff(ElementType type) {
  if (type == ElementType::F64) return 0x1p-53;
  if (type == ElementType::F32) return 0x1p-24;
  const FloatFormat* format = float_format(type);
  if (format == nullptr) throw Error::internal("no rounding is known for this element type");
  return power_of_two(-1 - format->mantissa_bits);
}

double resolution_floor(ElementType type) {
  if (type == ElementType::F32) return 0x1p-149;
  const FloatFormat* format = float_format(type);
  return format != nullptr ? power_of_two(1 - format->bias - format->mantissa_bits) : 0.0;
}

double accumulation_factor(std::uint64_t terms) {
  return 4.0 * std::sqrt(static_cast<double>(std::max<std::uint64_t>(1, terms)));
}

void linear_budget(const LinearBudget& rule, std::span<const double> truth, std::span<const double> absolute,
                   std::span<double> budget) {
  const double u_out = unit_roundoff(rule.out);
  const double accumulated = accumulation_factor(rule.terms) * rule.u_acc;
  const double floor = resolution_floor(rule.out);
  for (std::size_t i = 0; i < budget.size(); ++i)
    budget[i] = u_out * std::fabs(truth[i]) + accumulated * absolute[i] + floor;
}

std::string_view ulp_class_name(std::size_t index) {
  static constexpr std::array<std::string_view, kUlpClasses> kNames = {
      "0", "1", "2", "3-4", "5-16", "17-256", "257-65536", ">65536"};
  return kNames.at(index);
}

std::size_t ulp_class(ElementType type, float out, double truth) {
  return class_of_distance(ordered_code(type, out), ordered_code(type, static_cast<float>(truth)));
}

ErrorMeasure measure(std::span<const float> out, std::span<const double> truth,
                     std::span<const double> budget, ElementType type) {
  return measure_all(out, truth, budget, type);
}
ErrorMeasure measure(std::span<const double> out, std::span<const double> truth,
                     std::span<const double> budget, ElementType type) {
  return measure_all(out, truth, budget, type);
}

std::string_view name(CaseStatus status) {
  switch (status) {
    case CaseStatus::passed: return "PASSED";
    case CaseStatus::failed: return "FAILED";
    case CaseStatus::mistrusted: return "MISTRUSTED";
    case CaseStatus::skipped: return "SKIPPED";
    case CaseStatus::unimplemented: return "UNIMPLEMENTED";
  }
  return "";
}

CaseStatus judge(const ErrorMeasure& m) {
  if (m.pattern_faults > 0 || !(m.ratio <= 1)) return CaseStatus::failed;
  if (m.elements > 0 && m.zeros == m.elements) return CaseStatus::mistrusted;
  return CaseStatus::passed;
}

std::string describe_worst(const ErrorMeasure& m, std::span<const float> out, std::span<const double> truth,
                           std::span<const double> budget) {
  if (m.elements == 0) return "nothing to compare";
  const std::size_t i = m.worst;
  if (m.pattern_faults > 0) {
    return fmt::format("element {}: {} against {}; {} elements are finite in one alone", i, out[i], truth[i],
                       m.pattern_faults);
  }
  const double allowed = budget.empty() ? 0.0 : budget[i];
  return fmt::format("element {}: {} against {}, {:.3g} × its budget of {:.3g}", i, out[i], truth[i], m.ratio,
                     allowed);
}

}  // namespace assay
