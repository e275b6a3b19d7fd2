#include "core/numeric/tally.h"

#include <algorithm>
#include <cstring>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/tally.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One element at a time: what the vector loops leave over, and their definition.
template <class T>
void float_by_float(const std::byte* elements, std::size_t count, const FloatClasses& classes, Tally& tally) {
  constexpr T kMagnitude = std::numeric_limits<T>::max();
  for (std::size_t i = 0; i < count; ++i) {
    T code;
    std::memcpy(&code, elements + i * sizeof(T), sizeof code);
    const T magnitude = code & kMagnitude;
    const std::int64_t key{code < 0 ? static_cast<T>(code ^ kMagnitude) : code};
    tally.nan += magnitude >= classes.first_nan;
    tally.nonfinite += magnitude >= classes.first_nonfinite;
    tally.zero += magnitude == 0;
    tally.below_normal += magnitude < classes.first_normal;
    tally.negative += code < 0 && magnitude != 0 && magnitude < classes.first_nan;
    if (magnitude < classes.first_nonfinite) {
      tally.min_key = std::min(tally.min_key, key);
      tally.max_key = std::max(tally.max_key, key);
    }
  }
}

template <class T>
void integer_by_integer(const std::byte* elements, std::size_t count, T flip, Tally& tally) {
  for (std::size_t i = 0; i < count; ++i) {
    T code;
    std::memcpy(&code, elements + i * sizeof(T), sizeof code);
    const std::int64_t key{static_cast<T>(code ^ flip)};
    tally.zero += code == 0;
    tally.negative += flip == 0 && code < 0;
    tally.min_key = std::min(tally.min_key, key);
    tally.max_key = std::max(tally.max_key, key);
  }
}

#if HWY_TARGET == HWY_SCALAR

template <class T>
void floats(const std::byte* elements, std::size_t count, const FloatClasses& classes, Tally& tally) {
  float_by_float<T>(elements, count, classes, tally);
}

template <class T>
void integers(const std::byte* elements, std::size_t count, bool is_signed, Tally& tally) {
  integer_by_integer<T>(elements, count, is_signed ? T{0} : std::numeric_limits<T>::min(), tally);
}

#else

// Counters are lanes as narrow as the elements; this many rounds cannot overflow them.
template <class T>
constexpr std::size_t kRounds = sizeof(T) == 1   ? 255
                                : sizeof(T) == 2 ? 65535
                                                 : std::size_t{1} << 30;

// Adds one to the lanes where `mask` holds: true is -1 in a vector.
template <class D, class Mask>
HWY_INLINE void count_in(D d, hn::Vec<D>& counter, Mask mask) {
  counter = hn::Sub(counter, hn::VecFromMask(d, mask));
}

template <class D>
HWY_INLINE std::uint64_t total(D d, hn::Vec<D> counter) {
  using T = hn::TFromD<D>;
  using Unsigned = hwy::MakeUnsigned<T>;
  if constexpr (sizeof(T) == 1) {
    const hn::RepartitionToWide<hn::RepartitionToWide<hn::RepartitionToWide<hn::Repartition<Unsigned, D>>>>
        d64;
    const auto sums = hn::SumsOf8(hn::BitCast(hn::Repartition<Unsigned, D>(), counter));
    return hn::GetLane(hn::SumOfLanes(d64, sums));
  } else {
    HWY_ALIGN T lanes[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(counter, d, lanes);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) sum += static_cast<Unsigned>(lanes[i]);
    return sum;
  }
}

template <class D>
HWY_INLINE void extremes(D d, hn::Vec<D> min_key, hn::Vec<D> max_key, Tally& tally) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T low[HWY_MAX_BYTES / sizeof(T)], high[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(min_key, d, low);
  hn::Store(max_key, d, high);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
    if (low[i] > high[i]) continue;  // this lane has seen no finite value
    tally.min_key = std::min<std::int64_t>(tally.min_key, low[i]);
    tally.max_key = std::max<std::int64_t>(tally.max_key, high[i]);
  }
}

template <class T>
void floats(const std::byte* elements, std::size_t count, const FloatClasses& classes, Tally& tally) {
  const hn::ScalableTag<T> d;
  const hn::Repartition<std::uint8_t, decltype(d)> d8;
  using V = hn::Vec<decltype(d)>;
  const std::size_t lanes = hn::Lanes(d);
  const T most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
  const V magnitude_bits = hn::Set(d, most), minus_zero = hn::Set(d, static_cast<T>(-1)),
          none_below = hn::Set(d, least);
  const V normal = hn::Set(d, static_cast<T>(classes.first_normal));
  const V nonfinite = hn::Set(d, static_cast<T>(classes.first_nonfinite));
  const V last_number = hn::Set(d, static_cast<T>(classes.first_nan - 1));
  const V last_minus = hn::Set(d, static_cast<T>(-classes.first_nan));  // the key just above those of -NaN
  V min_key = magnitude_bits, max_key = none_below;
  while (count >= lanes) {
    const std::size_t rounds = std::min(count / lanes, kRounds<T>);
    V nan = hn::Zero(d), finite_seen = nan, zero = nan, below_normal = nan, below_zero = nan, minus_nan = nan;
    for (std::size_t round = 0; round < rounds; ++round, elements += lanes * sizeof(T)) {
      const V code = hn::BitCast(d, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(elements)));
      const V magnitude = hn::And(code, magnitude_bits);
      const V key = hn::Xor(code, hn::And(hn::BroadcastSignBit(code), magnitude_bits));
      const auto finite = hn::Lt(magnitude, nonfinite);
      count_in(d, nan, hn::Gt(magnitude, last_number));
      count_in(d, finite_seen, finite);
      count_in(d, zero, hn::Eq(magnitude, hn::Zero(d)));
      count_in(d, below_normal, hn::Lt(magnitude, normal));
      count_in(d, below_zero, hn::Lt(key, minus_zero));
      count_in(d, minus_nan, hn::Lt(key, last_minus));
      min_key = hn::Min(min_key, hn::IfThenElse(finite, key, magnitude_bits));
      max_key = hn::Max(max_key, hn::IfThenElse(finite, key, none_below));
    }
    count -= rounds * lanes;
    tally.nan += total(d, nan);
    tally.nonfinite += rounds * lanes - total(d, finite_seen);
    tally.zero += total(d, zero);
    tally.below_normal += total(d, below_normal);
    tally.negative += total(d, below_zero) - total(d, minus_nan);
  }
  extremes(d, min_key, max_key, tally);
  float_by_float<T>(elements, count, classes, tally);
}

template <class T>
void integers(const std::byte* elements, std::size_t count, bool is_signed, Tally& tally) {
  const hn::ScalableTag<T> d;
  const hn::Repartition<std::uint8_t, decltype(d)> d8;
  using V = hn::Vec<decltype(d)>;
  const std::size_t lanes = hn::Lanes(d);
  const T flip = is_signed ? T{0} : std::numeric_limits<T>::min();
  const V flips = hn::Set(d, flip), zero_key = flips;
  V min_key = hn::Set(d, std::numeric_limits<T>::max()), max_key = hn::Set(d, std::numeric_limits<T>::min());
  while (count >= lanes) {
    const std::size_t rounds = std::min(count / lanes, kRounds<T>);
    V zero = hn::Zero(d), below_zero = zero;
    for (std::size_t round = 0; round < rounds; ++round, elements += lanes * sizeof(T)) {
      const V code = hn::BitCast(d, hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(elements)));
      const V key = hn::Xor(code, flips);
      count_in(d, zero, hn::Eq(key, zero_key));
      count_in(d, below_zero, hn::Lt(key, zero_key));
      min_key = hn::Min(min_key, key);
      max_key = hn::Max(max_key, key);
    }
    count -= rounds * lanes;
    tally.zero += total(d, zero);
    tally.negative += total(d, below_zero);
  }
  extremes(d, min_key, max_key, tally);
  integer_by_integer<T>(elements, count, flip, tally);
}

#endif  // HWY_SCALAR

void floats_of_any_width(const std::byte* elements, std::size_t count, int bytes_each,
                         const FloatClasses& classes, Tally& tally) {
  switch (bytes_each) {
    case 1: return floats<std::int8_t>(elements, count, classes, tally);
    case 2: return floats<std::int16_t>(elements, count, classes, tally);
    case 4: return floats<std::int32_t>(elements, count, classes, tally);
    default: return floats<std::int64_t>(elements, count, classes, tally);
  }
}

void integers_of_any_width(const std::byte* elements, std::size_t count, int bytes_each, bool is_signed,
                           Tally& tally) {
  switch (bytes_each) {
    case 1: return integers<std::int8_t>(elements, count, is_signed, tally);
    case 2: return integers<std::int16_t>(elements, count, is_signed, tally);
    case 4: return integers<std::int32_t>(elements, count, is_signed, tally);
    default: return integers<std::int64_t>(elements, count, is_signed, tally);
  }
}

}  // namespace assay::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay {

HWY_EXPORT(floats_of_any_width);
HWY_EXPORT(integers_of_any_width);

void tally_floats(const std::byte* elements, std::size_t count, int bytes_each, const FloatClasses& classes,
                  Tally& tally) {
  tally.count += count;
  HWY_DYNAMIC_DISPATCH(floats_of_any_width)(elements, count, bytes_each, classes, tally);
}

void tally_integers(const std::byte* elements, std::size_t count, int bytes_each, bool is_signed,
                    Tally& tally) {
  tally.count += count;
  HWY_DYNAMIC_DISPATCH(integers_of_any_width)(elements, count, bytes_each, is_signed, tally);
}

}  // namespace assay
#endif
