// How far a kernel's output lies from float64 truth, and how far it was allowed to.
//
// Truth is computed on the very operands the kernel got (already rounded or dequantized), so that what is
// measured is the kernel and not the precision of its inputs. The allowance of each element is derived, not
// picked; for a sum of K products accumulated with unit roundoff u_acc and rounded once to the output's type:
//
//   |out - truth| ≤ u_out·|truth| + λ·u_acc·(|A|·|B|),   λ = 4·√K
//
// Rounding errors behave as a random walk of K steps (Higham & Mary 2019), so that √K and not K is the
// growth; the factor 4 was never reached over zero-mean, positive-mean and heavy-tailed sums up to K =
// 65,536.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/numeric/element_type.h"

namespace assay {

// Half the relative gap between neighbours: 2^-24 for F32, 2^-8 for BF16, 2^-11 for F16, 2^-53 for F64.
double unit_roundoff(ElementType type);

// Both finite, both NaN, or the same infinity.
inline bool same_pattern(double out, double truth) {
  if (std::isfinite(out) && std::isfinite(truth)) return true;
  return (std::isnan(out) && std::isnan(truth)) || out == truth;
}

// λ of a sum of `terms` products.
double accumulation_factor(std::uint64_t terms);

// budget[i] = u_out·|truth[i]| + λ(terms)·u_acc·absolute[i]; `absolute` is |A|·|B|. What the smallest
// subnormal of the output's type cannot resolve is allowed on top.
struct LinearBudget {
  std::uint64_t terms = 1;
  ElementType out = ElementType::F32;
  double u_acc = 0x1p-24;
};
void linear_budget(const LinearBudget& rule, std::span<const double> truth, std::span<const double> absolute,
                   std::span<double> budget);

// What the smallest subnormal of a type cannot resolve.
double resolution_floor(ElementType type);

// Distances in units in the last place of the output's type, from the rounded truth: 0, 1, 2, 3–4, 5–16,
// 17–256, 257–65,536, beyond.
inline constexpr std::size_t kUlpClasses = 8;
std::string_view ulp_class_name(std::size_t index);
std::size_t ulp_class(ElementType type, float out, double truth);  // F32, or a float of fewer bits

struct ErrorMeasure {
  std::uint64_t elements = 0;
  std::uint64_t pattern_faults = 0;  // NaN or infinite (with its sign) in one of the two alone
  std::uint64_t zeros = 0;           // of truth
  std::uint64_t over_budget = 0;
  double ratio = 0;       // largest error/budget; infinite where nothing was allowed and something happened
  std::size_t worst = 0;  // where that was, or the first fault of the pattern
  double max_abs = 0, max_rel = 0;
  double nmse = 0;              // Σ(out - truth)² / Σtruth²
  double one_minus_cosine = 0;  // 1 - Σ out·truth / (|out|·|truth|)
  std::array<std::uint64_t, kUlpClasses> ulps{};
};

// `type`: of the output as the kernel stored it; `out` is its values widened. An empty `budget` allows
// nothing: equality.
ErrorMeasure measure(std::span<const float> out, std::span<const double> truth,
                     std::span<const double> budget, ElementType type);

// The verdict's order: a fault of the non-finite pattern, then the budget; a truth of nothing but zeros
// proves nothing.
enum class CaseStatus : std::uint8_t { passed, failed, mistrusted, skipped, unimplemented };
std::string_view name(CaseStatus status);
CaseStatus judge(const ErrorMeasure& measured);

// "element 17: 1.5 against 1.25, 3.1 × its budget of 0.08" — of the worst element.
std::string describe_worst(const ErrorMeasure& measured, std::span<const float> out,
                           std::span<const double> truth, std::span<const double> budget);

}  // namespace assay
