#include "kernels/cpu/int_input.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int_input.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/int_rounding.h"

// x · 2^8 / scale as integers of 24 bits, in two parts of 16 bits: low within ±128.
void fine_codes(const float* x, float scale, std::int16_t* high, std::int16_t* low) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::int16_t, decltype(d)> dh;
  const auto inverse = hn::Set(d, scale > 0 ? 1 / scale : 0.0F), more = hn::Set(d, 256.0F);
  const auto most = hn::Set(d, 32767.0F * 256);
  for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
    const auto scaled = hn::Mul(hn::Mul(hn::LoadU(d, x + i), inverse), more);
    const auto q = hn::NearestInt(hn::Max(hn::Min(scaled, most), hn::Neg(most)));
    const auto h = hn::ShiftRight<8>(hn::Add(q, hn::Set(di, 128)));
    hn::StoreU(hn::DemoteTo(dh, h), dh, high + i);
    hn::StoreU(hn::DemoteTo(dh, hn::Sub(q, hn::ShiftLeft<8>(h))), dh, low + i);
  }
}

using D16 = hn::CappedTag<std::int16_t, 16>;
#if HWY_TARGET == HWY_SCALAR
using D32 = hn::Rebind<std::int32_t, D16>;
#else
using D32 = hn::RepartitionToWide<D16>;
#endif

void split(const Group32& from, Group32& to) {
  const D16 d;
  for (std::size_t i = 0; i < 16; i += hn::Lanes(d)) {
    auto even = hn::Zero(d), odd = even;
    hn::LoadInterleaved2(d, from.codes + 2 * i, even, odd);
    hn::Store(even, d, to.codes + i);
    hn::Store(odd, d, to.codes + 16 + i);
  }
}

HWY_INLINE std::int32_t sum_of_16(const std::int16_t* codes) {
  const D16 d;
  auto sum = hn::Zero(D32()), rest = sum;
  for (std::size_t i = 0; i < 16; i += hn::Lanes(d))
    sum =
        hn::ReorderWidenMulAccumulate(D32(), hn::LoadU(d, codes + i), hn::Set(d, std::int16_t{1}), sum, rest);
  return hn::GetLane(hn::SumOfLanes(D32(), hn::Add(sum, rest)));
}

void make_input(const float* x, IntInput& in) {
  for (std::size_t g = 0; g < in.scales.size(); ++g, x += 32) {
    const float scale = group_scale(x, 15);
    in.scales[g] = in.scales_of_16[2 * g] = in.scales_of_16[2 * g + 1] = scale;
    std::int16_t* high = in.high[g].codes;
    std::int32_t sums[2] = {}, fine_sums[2] = {};
    if (in.fine)
      fine_codes(x, scale, high, in.low[g].codes);
    else
      coarse_codes(x, scale, 15, high, sums);
    for (std::size_t half = 0; in.fine && half < 2; ++half) {
      sums[half] = sum_of_16(high + 16 * half);
      fine_sums[half] = sum_of_16(in.low[g].codes + 16 * half);
    }
    for (std::size_t half = 0; half < 2; ++half)
      in.sums_of_16[2 * g + half] =
          (static_cast<float>(sums[half]) + static_cast<float>(fine_sums[half]) / 256) * scale;
    in.sums_of_32[g] =
        (static_cast<float>(sums[0] + sums[1]) + static_cast<float>(fine_sums[0] + fine_sums[1]) / 256) *
        scale;
    split(in.high[g], in.high_split[g]);
    if (in.fine) split(in.low[g], in.low_split[g]);
  }
}

void round_floats(const float* x, std::size_t count, unsigned bits, float* out) {
  std::int16_t codes[32];
  std::int32_t sums[2];
  for (std::size_t k = 0; k < count; k += 32) {
    const float scale = group_scale(x + k, static_cast<int>(bits));
    coarse_codes(x + k, scale, static_cast<int>(bits), codes, sums);
    for (std::size_t i = 0; i < 32; ++i) out[k + i] = static_cast<float>(codes[i]) * scale;
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(make_input);
HWY_EXPORT(round_floats);

std::vector<float> rounded_input(std::span<const float> x, int bits) {
  std::vector<float> rounded(x.size());
  HWY_DYNAMIC_DISPATCH(round_floats)(x.data(), x.size(), static_cast<unsigned>(bits), rounded.data());
  return rounded;
}

namespace {

bool is_uneven(std::span<const float> group) {
  float largest = 0, roots = 0;
  for (const float x : group) {
    largest = std::max(largest, std::abs(x));
    roots += std::sqrt(std::abs(x));
  }
  const float usual = roots / static_cast<float>(group.size());
  return largest > 64 * usual * usual;  // never of what is not finite
}

// Takes the uneven groups out of x.
std::vector<IntInput::Uneven> take_uneven(std::span<float> x) {
  std::vector<IntInput::Uneven> uneven;
  for (std::size_t group = 0; group < x.size() / 32; ++group) {
    const auto values = x.subspan(32 * group, 32);
    if (!is_uneven(values)) continue;
    std::ranges::copy(values, uneven.emplace_back(IntInput::Uneven{group, {}}).x);
    std::ranges::fill(values, 0.0F);
  }
  return uneven;
}

}  // namespace

IntInput::IntInput(std::span<const float> x, bool fine_)
    : fine(fine_),
      high(x.size() / 32),
      low(fine_ ? x.size() / 32 : 0),
      high_split(x.size() / 32),
      low_split(low.size()),
      scales(x.size() / 32),
      scales_of_16(x.size() / 16),
      sums_of_16(x.size() / 16),
      sums_of_32(x.size() / 32) {
  std::vector<float> even;
  if (fine) {
    even.assign(x.begin(), x.end());
    uneven = take_uneven(even);
    x = even;
  }
  HWY_DYNAMIC_DISPATCH(make_input)(x.data(), *this);
}

}  // namespace assay::cpu
#endif
