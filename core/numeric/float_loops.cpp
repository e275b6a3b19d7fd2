#include "core/numeric/float_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/float_loops.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
constexpr std::size_t kSumLanes = 8;

std::uint32_t largest_bits(const float* values, std::size_t count) {
  const F32 d;
  const hn::RebindToSigned<F32> bits;  // without their signs, integers of either kind are ordered alike
  const std::size_t lanes = hn::Lanes(d);
  auto most = hn::Zero(bits);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    most = hn::Max(most, hn::BitCast(bits, hn::Abs(hn::LoadU(d, values + i))));
  auto largest = static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(bits, most)));
  for (; i < count; ++i) largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFFu);
  return largest;
}

void multiply_all(float* values, std::size_t count, float factor) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, factor)), d, values + i);
  for (; i < count; ++i) values[i] *= factor;
}

std::size_t divide_all(const float* values, std::size_t count, float divisor, float limit, float* out) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0, beyond = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto quotient = hn::Div(hn::LoadU(d, values + i), hn::Set(d, divisor));
    beyond += hn::CountTrue(d, hn::Gt(hn::Abs(quotient), hn::Set(d, limit)));
    hn::StoreU(quotient, d, out + i);
  }
  for (; i < count; ++i) {
    out[i] = values[i] / divisor;
    beyond += std::abs(out[i]) > limit ? 1 : 0;
  }
  return beyond;
}

struct SumLanes {
  double before[kSumLanes] = {}, error[kSumLanes] = {}, product[kSumLanes] = {}, largest[kSumLanes] = {};
  void take(std::size_t lane, double x, double e) {
    before[lane] += x * x;
    error[lane] += e * e;
    product[lane] += x * e;
    largest[lane] = std::max(largest[lane], std::abs(e));
  }
};

// Whole runs of eight; what is left is the caller's.
std::size_t sum_runs(const float* before, const float* after, std::size_t count, SumLanes& sums) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_HAVE_FLOAT64
  const hn::CappedTag<double, kSumLanes> d;
  const hn::Rebind<float, decltype(d)> df;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t part = 0; part < kSumLanes; part += lanes) {
    auto squares = hn::Zero(d), errors = hn::Zero(d), products = hn::Zero(d), largest = hn::Zero(d);
    for (i = 0; i + kSumLanes <= count; i += kSumLanes) {
      const auto x = hn::PromoteTo(d, hn::LoadU(df, before + i + part));
      const auto e = hn::Sub(hn::PromoteTo(d, hn::LoadU(df, after + i + part)), x);
      squares = hn::Add(squares, hn::Mul(x, x));
      errors = hn::Add(errors, hn::Mul(e, e));
      products = hn::Add(products, hn::Mul(x, e));
      largest = hn::Max(largest, hn::Abs(e));
    }
    hn::StoreU(squares, d, sums.before + part);
    hn::StoreU(errors, d, sums.error + part);
    hn::StoreU(products, d, sums.product + part);
    hn::StoreU(largest, d, sums.largest + part);
  }
#else
  for (; i + kSumLanes <= count; i += kSumLanes) {
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
      const double x = before[i + lane];
      sums.take(lane, x, after[i + lane] - x);
    }
  }
#endif
  return i;
}

DifferenceSums sum_differences(const float* before, const float* after, std::size_t count) {
  SumLanes sums;
  const std::size_t whole = sum_runs(before, after, count, sums);
  for (std::size_t i = whole; i < count; ++i) {
    const double x = before[i];
    sums.take(i - whole, x, after[i] - x);
  }
  DifferenceSums total;
  for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
    total.before_squares += sums.before[lane];
    total.error_squares += sums.error[lane];
    total.products += sums.product[lane];
    total.largest = std::max(total.largest, sums.largest[lane]);
  }
  return total;
}

}  // namespace assay::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay {

HWY_EXPORT(largest_bits);
HWY_EXPORT(multiply_all);
HWY_EXPORT(divide_all);
HWY_EXPORT(sum_differences);

std::uint32_t largest_magnitude_bits(const float* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(largest_bits)(values, count);
}
void multiply_by(float* values, std::size_t count, float factor) {
  HWY_DYNAMIC_DISPATCH(multiply_all)(values, count, factor);
}
std::size_t divide_by(const float* values, std::size_t count, float divisor, float limit, float* out) {
  return HWY_DYNAMIC_DISPATCH(divide_all)(values, count, divisor, limit, out);
}
DifferenceSums difference_sums(const float* before, const float* after, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(sum_differences)(before, after, count);
}

}  // namespace assay
#endif
