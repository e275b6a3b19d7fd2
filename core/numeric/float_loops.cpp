#include "core/numeric/float_loops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/numeric/codec.h"
#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/float_loops.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#ifndef ASSAY_CORE_NUMERIC_FLOAT_LOOPS_SUM_LANES
#define ASSAY_CORE_NUMERIC_FLOAT_LOOPS_SUM_LANES
namespace assay {

constexpr std::size_t kSumLanes = 8, kSumRun = 128;

struct SumLanes {
  double before[kSumLanes] = {}, error[kSumLanes] = {}, product[kSumLanes] = {}, largest[kSumLanes] = {};

  void take(std::size_t lane, double x, double e) {
    before[lane] += x * x;
    error[lane] += e * e;
    product[lane] += x * e;
    largest[lane] = std::max(largest[lane], std::abs(e));
  }
  DifferenceSums total() const {
    DifferenceSums total;
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
      total.before_squares += before[lane];
      total.error_squares += error[lane];
      total.products += product[lane];
      total.largest = std::max(total.largest, largest[lane]);
    }
    return total;
  }
};

}  // namespace assay
#endif

HWY_BEFORE_NAMESPACE();
namespace assay::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;

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

void multiply_all(float* values, std::size_t count, std::size_t block, const float* factors) {
  const F32 d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t begin = 0; begin < count; begin += block, ++factors) {
    const std::size_t end = std::min(count, begin + block);
    const auto factor = hn::Set(d, *factors);
    std::size_t i = begin;
    for (; i + lanes <= end; i += lanes) hn::StoreU(hn::Mul(hn::LoadU(d, values + i), factor), d, values + i);
    for (; i < end; ++i) values[i] *= *factors;
  }
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

// Whole runs of `before` and what after(d, i, x) makes of the vector at i; returns how many elements they
// are.
template <class After>
HWY_INLINE std::size_t sum_runs_of(const float* before, std::size_t count, SumLanes& sums,
                                   const After& after) {
  const hn::CappedTag<float, kSumLanes> d;
  const std::size_t lanes = hn::Lanes(d), whole = count / kSumRun * kSumRun;
  for (std::size_t run = 0; run < whole; run += kSumRun) {
    float of_run[4][kSumLanes];
    for (std::size_t part = 0; part < kSumLanes; part += lanes) {
      auto squares = hn::Zero(d), errors = hn::Zero(d), products = hn::Zero(d), largest = hn::Zero(d);
      for (std::size_t i = run + part; i < run + kSumRun; i += kSumLanes) {
        const auto x = hn::LoadU(d, before + i);
        const auto e = hn::Sub(after(d, i, x), x);
        squares = hn::Add(squares, hn::Mul(x, x));
        errors = hn::Add(errors, hn::Mul(e, e));
        products = hn::Add(products, hn::Mul(x, e));
        largest = hn::Max(largest, hn::Abs(e));
      }
      hn::StoreU(squares, d, of_run[0] + part);
      hn::StoreU(errors, d, of_run[1] + part);
      hn::StoreU(products, d, of_run[2] + part);
      hn::StoreU(largest, d, of_run[3] + part);
    }
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) sums.before[lane] += of_run[0][lane];
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) sums.error[lane] += of_run[1][lane];
    for (std::size_t lane = 0; lane < kSumLanes; ++lane) sums.product[lane] += of_run[2][lane];
    for (std::size_t lane = 0; lane < kSumLanes; ++lane)
      sums.largest[lane] = std::max(sums.largest[lane], double{of_run[3][lane]});
  }
  return whole;
}

std::size_t sum_runs(const float* before, const float* after, std::size_t count, SumLanes& sums) {
  return sum_runs_of(before, count, sums,
                     [after](auto d, std::size_t i, auto) { return hn::LoadU(d, after + i); });
}

// Finite values to the upper half of float32, rounded up by a carry, in which one too large becomes infinite.
std::size_t bf16_runs(const float* before, std::size_t count, std::uint16_t* codes, SumLanes& sums) {
  return sum_runs_of(before, count, sums, [codes](auto d, std::size_t i, auto x) {
    const hn::RebindToUnsigned<decltype(d)> bits_d;
    const hn::Rebind<std::uint16_t, decltype(d)> code_d;
    const auto bits = hn::BitCast(bits_d, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(bits_d, 1u));
    const auto upper = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(bits_d, 0x7FFFu))));
    hn::StoreU(hn::TruncateTo(code_d, upper), code_d, codes + i);
    return hn::BitCast(d, hn::ShiftLeft<16>(upper));
  });
}

}  // namespace assay::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay {

HWY_EXPORT(largest_bits);
HWY_EXPORT(multiply_all);
HWY_EXPORT(divide_all);
HWY_EXPORT(sum_runs);
HWY_EXPORT(bf16_runs);

std::uint32_t largest_magnitude_bits(const float* values, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(largest_bits)(values, count);
}
void multiply_blocks(float* values, std::size_t count, std::size_t block, const float* factors) {
  HWY_DYNAMIC_DISPATCH(multiply_all)(values, count, block, factors);
}
std::size_t divide_by(const float* values, std::size_t count, float divisor, float limit, float* out) {
  return HWY_DYNAMIC_DISPATCH(divide_all)(values, count, divisor, limit, out);
}
namespace {

// Whether float held the squares of a run: none overflowed, and what underflowed is nothing beside the rest.
// A NaN is the caller's business.
bool in_range(const DifferenceSums& sums) {
  constexpr double kLeast = 1e-12, kMost = std::numeric_limits<float>::max();
  return !(sums.before_squares < kLeast || sums.before_squares > kMost || sums.error_squares > kMost);
}

void add_rest(const float* before, const float* after, std::size_t first, std::size_t count, SumLanes& sums) {
  for (std::size_t i = first; i < count; ++i) {
    const double x = before[i];
    sums.take(i % kSumLanes, x, after[i] - x);
  }
}

DifferenceSums all_in_double(const float* before, const float* after, std::size_t count) {
  SumLanes sums;
  add_rest(before, after, 0, count, sums);
  return sums.total();
}

}  // namespace

DifferenceSums difference_sums(const float* before, const float* after, std::size_t count) {
  SumLanes sums;
  add_rest(before, after, HWY_DYNAMIC_DISPATCH(sum_runs)(before, after, count, sums), count, sums);
  const DifferenceSums total = sums.total();
  return in_range(total) ? total : all_in_double(before, after, count);
}

DifferenceSums bf16_with_errors(const float* values, std::size_t count, std::uint16_t* codes) {
  SumLanes sums;
  const std::size_t whole = HWY_DYNAMIC_DISPATCH(bf16_runs)(values, count, codes, sums);
  std::vector<float> rest(count - whole);
  const std::span stored(codes, count);
  encode(ElementType::BF16, std::span(values, count).subspan(whole), Overflow::special,
         std::as_writable_bytes(stored.subspan(whole)).data());
  decode(ElementType::BF16, std::as_bytes(stored.subspan(whole)), rest.data());
  add_rest(values + whole, rest.data(), 0, rest.size(), sums);  // whole is a multiple of the lanes
  const DifferenceSums total = sums.total();
  if (in_range(total)) return total;
  std::vector<float> after(count);
  decode(ElementType::BF16, std::as_bytes(stored), after.data());
  return all_in_double(values, after.data(), count);
}

}  // namespace assay
#endif
