#include "kernels/cpu/row_dot_int.h"

#include <algorithm>
#include <cstring>

#include "core/numeric/gguf_blocks.h"
#include "core/numeric/gguf_layout.h"
#include "core/numeric/vnni_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_dot_int.cpp"
#include <hwy/foreach_target.h>
//
#include "core/numeric/vnni_highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/block_codes.h"
#include "kernels/cpu/int_products.h"

using D16 = hn::CappedTag<std::int16_t, 16>;
using U16 = hn::RebindToUnsigned<D16>;
#if HWY_TARGET == HWY_SCALAR
using D32 = hn::Rebind<std::int32_t, D16>;
#else
using D32 = hn::RepartitionToWide<D16>;
#endif
using DF = hn::RebindToFloat<D32>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using VF = hn::Vec<DF>;

// Σ code·q of one group under one scale, lane by lane; with fine inputs of their lower parts too.
template <bool Fine>
struct GroupSum {
  V32 high, low;
  HWY_INLINE GroupSum() : high(hn::Zero(D32())), low(hn::Zero(D32())) {}

  HWY_INLINE void add(V16 codes, const std::int16_t* x_high, const std::int16_t* x_low) {
    const D16 d;
    high = add_word_products(high, codes, hn::LoadU(d, x_high));
    if constexpr (Fine) low = add_word_products(low, codes, hn::LoadU(d, x_low));
  }
  HWY_INLINE VF value() const {
    const VF whole = hn::ConvertTo(DF(), high);
    if constexpr (!Fine) return whole;
    return hn::MulAdd(hn::ConvertTo(DF(), low), hn::Set(DF(), 1.0F / 256), whole);
  }
};

// --- bytes seen as 16-bit lanes

HWY_INLINE hn::Vec<U16> pairs_of_bytes(const std::uint8_t* at) {
#if HWY_TARGET == HWY_SCALAR
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return hn::Set(U16(), value);
#else
  return hn::BitCast(U16(), hn::LoadU(hn::Repartition<std::uint8_t, U16>(), at));
#endif
}
HWY_INLINE hn::Vec<U16> bits(hn::Vec<U16> v, std::uint16_t mask) {
  return hn::And(v, hn::Set(U16(), mask));
}
HWY_INLINE V16 as_codes(hn::Vec<U16> v) {
  return hn::BitCast(D16(), v);
}

// --- types whose blocks have one scale

// Nibbles: the low ones of 16 bytes are codes 0 … 15, the high ones 16 … 31. Centred, so that a minimum does
// not cancel what they sum up to.
template <class Stored, int Centre>
struct NibbleCodes {
  static constexpr int kCentre = Centre;
  static constexpr bool kNibbles = true, kMinimum = requires(Stored block) { block.m; };
  static HWY_INLINE V16 centred(hn::Vec<U16> codes) {
    return hn::Sub(as_codes(codes), hn::Set(D16(), std::int16_t{Centre}));
  }
  // Codes 2i … 2i + 2 · lanes - 1, the even ones in the lower bytes.
  static HWY_INLINE hn::Vec<U16> pairs(const Stored& block, std::size_t i) {
    const U16 d;
    hn::Vec<U16> v = hn::Zero(d);
    if constexpr (hn::MaxLanes(U16()) == 16) {
#if HWY_TARGET != HWY_SCALAR
      const hn::Repartition<std::uint32_t, U16> words;
      alignas(32) static constexpr std::uint32_t kShifts[8] = {0, 0, 0, 0, 4, 4, 4, 4};
      const auto twice = hn::LoadDup128(hn::Repartition<std::uint8_t, U16>(), block.qs);
      v = hn::BitCast(d, hn::Shr(hn::BitCast(words, twice), hn::Load(words, kShifts)));
#endif
    } else {
      v = pairs_of_bytes(block.qs + 2 * (i % 8));
      if (i >= 8) v = hn::ShiftRight<4>(v);
    }
    v = bits(v, 0x0F0F);
    if constexpr (requires { block.qh; }) v = hn::Or(v, fifth_pairs(block.qh.get(), i));
    return v;
  }
  // Code c's fifth bit is bit c of the word.
  static HWY_INLINE hn::Vec<U16> fifth_pairs(std::uint32_t high, std::size_t i) {
    const U16 d;
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(d, static_cast<std::uint16_t>((high >> 2 * i & 1) << 4 | (high >> (2 * i + 1) & 1) << 12));
#else
    const hn::Repartition<std::uint8_t, U16> bytes;
    return hn::BitCast(d,
                       hn::IfThenElseZero(fifth_bits(bytes, high, 2 * i), hn::Set(bytes, std::uint8_t{16})));
#endif
  }
};

// Codes that are bytes with a sign.
struct ByteCodes {
  static constexpr bool kNibbles = false, kMinimum = false;
};

template <class Stored, class Codes, bool Fine>
HWY_INLINE VF add_small_block(const Stored& block, const IntInput& x, std::size_t b, VF total,
                              float& minima) {
  constexpr std::size_t kLanes = hn::MaxLanes(D16());
  const float scale = widen(block.d);
  GroupSum<Fine> sum;
  if constexpr (Codes::kNibbles) {
    const std::int16_t *high = x.high_split[b].codes, *low = Fine ? x.low_split[b].codes : high;
    for (std::size_t i = 0; i < 16; i += kLanes) {
      const hn::Vec<U16> v = Codes::pairs(block, i);
      sum.add(Codes::centred(bits(v, 255)), high + i, low + i);
      sum.add(Codes::centred(hn::ShiftRight<8>(v)), high + 16 + i, low + 16 + i);
    }
    if constexpr (Codes::kMinimum) minima += (widen(block.m) + Codes::kCentre * scale) * x.sums_of_32[b];
  } else {
    const hn::Rebind<std::int8_t, D16> bytes;
    const std::int16_t *high = x.high[b].codes, *low = Fine ? x.low[b].codes : high;
    for (std::size_t i = 0; i < 32; i += kLanes)
      sum.add(hn::PromoteTo(D16(), hn::LoadU(bytes, block.qs + i)), high + i, low + i);
  }
  return hn::MulAdd(sum.value(), hn::Set(DF(), scale * x.scales[b]), total);
}

template <class Stored, class Codes, bool Fine>
HWY_INLINE float dot_small_blocks(const std::byte* w, const IntInput& x) {
  const auto* block = reinterpret_cast<const Stored*>(w);
  const std::size_t blocks = x.scales.size();
  VF t0 = hn::Zero(DF()), t1 = t0, t2 = t0, t3 = t0;
  float minima = 0;
  std::size_t b = 0;
  for (; b + 4 <= blocks; b += 4) {
    t0 = add_small_block<Stored, Codes, Fine>(block[b], x, b, t0, minima);
    t1 = add_small_block<Stored, Codes, Fine>(block[b + 1], x, b + 1, t1, minima);
    t2 = add_small_block<Stored, Codes, Fine>(block[b + 2], x, b + 2, t2, minima);
    t3 = add_small_block<Stored, Codes, Fine>(block[b + 3], x, b + 3, t3, minima);
  }
  for (; b < blocks; ++b) t0 = add_small_block<Stored, Codes, Fine>(block[b], x, b, t0, minima);
  return hn::GetLane(hn::SumOfLanes(DF(), hn::Add(hn::Add(t0, t1), hn::Add(t2, t3)))) + minima;
}

// --- super-blocks of 256: each 16-bit lane yields four nibbles, two even codes of two groups and two odd
// ones

// What was stored is loaded again: broadcasting it from memory is free, from a register it is not.
HWY_INLINE void load_from_memory() {
#if defined(__GNUC__)
  asm volatile("" : : : "memory");
#endif
}

// The scales of a super-block's eight groups under those of the input, and the minima's part of the sum.
struct GroupScales {
  alignas(32) float of[8];
};
template <class Stored, class V>
HWY_INLINE V scale_groups(const Stored& block, const float* x_scales, const float* x_sums,
                          GroupScales& scales, V minima) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint8_t, decltype(d)> db;
  SixBitScales bytes;
  unpack_six_bits(block.scales, bytes);
  const auto scale = hn::Set(d, widen(block.d)), minimum = hn::Set(d, widen(block.dmin));
  for (std::size_t i = 0; i < 8; i += hn::Lanes(d)) {
    const auto s = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, bytes.each + i)));
    const auto m = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, bytes.each + 8 + i)));
    hn::StoreU(hn::Mul(hn::Mul(s, scale), hn::LoadU(d, x_scales + i)), d, scales.of + i);
    minima = hn::MulAdd(hn::Mul(m, minimum), hn::LoadU(d, x_sums + i), minima);
  }
  return minima;
}

// The fifth bits of Q5_K's codes, for groups 2·part and 2·part + 1; none of Q4_K's.
struct NoFifth {
  HWY_INLINE void read(const std::uint8_t*, std::size_t) {}
  HWY_INLINE hn::Vec<U16> even_first(hn::Vec<U16> v) const { return v; }
  HWY_INLINE hn::Vec<U16> even_second(hn::Vec<U16> v) const { return v; }
  HWY_INLINE hn::Vec<U16> odd_first(hn::Vec<U16> v) const { return v; }
  HWY_INLINE hn::Vec<U16> odd_second(hn::Vec<U16> v) const { return v; }
};
struct Fifth {
  hn::Vec<U16> high;
  HWY_INLINE void read(const std::uint8_t* at, std::size_t part) {
    high = pairs_of_bytes(at);
    if (part == 1) high = hn::ShiftRight<2>(high);
    if (part == 2) high = hn::ShiftRight<4>(high);
    if (part == 3) high = hn::ShiftRight<6>(high);
  }
  HWY_INLINE hn::Vec<U16> even_first(hn::Vec<U16> v) const {
    return hn::Or(v, bits(hn::ShiftLeft<4>(high), 16));
  }
  HWY_INLINE hn::Vec<U16> even_second(hn::Vec<U16> v) const {
    return hn::Or(v, bits(hn::ShiftLeft<3>(high), 16));
  }
  HWY_INLINE hn::Vec<U16> odd_first(hn::Vec<U16> v) const {
    return hn::Or(v, bits(hn::ShiftRight<4>(high), 16));
  }
  HWY_INLINE hn::Vec<U16> odd_second(hn::Vec<U16> v) const {
    return hn::Or(v, bits(hn::ShiftRight<5>(high), 16));
  }
};
template <class Stored>
struct FifthOf {
  using Bits = NoFifth;
  static const std::uint8_t* at(const Stored&, std::size_t) { return nullptr; }
};
template <>
struct FifthOf<gguf_blocks::Q5_K> {
  using Bits = Fifth;
  static const std::uint8_t* at(const gguf_blocks::Q5_K& b, std::size_t offset) { return b.qh + offset; }
};

// Scales take long to come by, a few steps that wait for one another: those of several blocks are made before
// the first is used.
constexpr std::size_t kBlocksAhead = 8;

template <class Stored, bool Fine>
HWY_INLINE float dot_nibble_blocks(const std::byte* w, const IntInput& x) {
  constexpr std::size_t kLanes = hn::MaxLanes(D16());
  const auto* block = reinterpret_cast<const Stored*>(w);
  const std::size_t blocks = x.scales.size() / 8;
  VF first_total = hn::Zero(DF()), second_total = hn::Zero(DF());
  const float *x_scales = x.scales.data(), *x_sums = x.sums_of_32.data();
  const Group32 *x_high = x.high_split.data(), *x_low = x.low_split.data();
  const hn::CappedTag<float, 8> d_groups;
  auto minima = hn::Zero(d_groups);
  GroupScales scales[kBlocksAhead];
  for (std::size_t b = 0; b < blocks; ++b) {
    if (b % kBlocksAhead == 0) {
      for (std::size_t i = b; i < std::min(blocks, b + kBlocksAhead); ++i)
        minima = scale_groups(block[i], x_scales + 8 * i, x_sums + 8 * i, scales[i - b], minima);
      load_from_memory();
    }
    const float* scale = scales[b % kBlocksAhead].of;
    for (std::size_t part = 0; part < 4; ++part) {
      const std::size_t g = 8 * b + 2 * part;
      const std::int16_t *first = x_high[g].codes, *second = x_high[g + 1].codes;
      const std::int16_t* first_low = Fine ? x_low[g].codes : first;
      const std::int16_t* second_low = Fine ? x_low[g + 1].codes : second;
      GroupSum<Fine> first_sum, second_sum;
      for (std::size_t i = 0; i < 16; i += kLanes) {
        const hn::Vec<U16> v = pairs_of_bytes(block[b].qs + 32 * part + 2 * i);
        typename FifthOf<Stored>::Bits fifth;
        fifth.read(FifthOf<Stored>::at(block[b], 2 * i), part);
        first_sum.add(as_codes(fifth.even_first(bits(v, 15))), first + i, first_low + i);
        first_sum.add(as_codes(fifth.odd_first(bits(hn::ShiftRight<8>(v), 15))), first + 16 + i,
                      first_low + 16 + i);
        second_sum.add(as_codes(fifth.even_second(bits(hn::ShiftRight<4>(v), 15))), second + i,
                       second_low + i);
        second_sum.add(as_codes(fifth.odd_second(hn::ShiftRight<12>(v))), second + 16 + i,
                       second_low + 16 + i);
      }
      first_total = hn::MulAdd(first_sum.value(), hn::Set(DF(), scale[2 * part]), first_total);
      second_total = hn::MulAdd(second_sum.value(), hn::Set(DF(), scale[2 * part + 1]), second_total);
    }
  }
  return hn::GetLane(hn::SumOfLanes(DF(), hn::Add(first_total, second_total))) -
         hn::GetLane(hn::SumOfLanes(d_groups, minima));
}

// Q6_K has a scale for 16 codes. Of 32 codes split into even and odd ones, the first half of a vector of 16
// belongs to the first scale: where a vector holds them all, its sums are scaled by a vector of both.
HWY_INLINE VF scales_at(const float* scales, std::size_t group, std::size_t i) {
  const DF d;
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(d, scales[2 * group + i / 8]);
#else
  if constexpr (hn::MaxLanes(DF()) == 8) {
    const hn::Half<DF> half;
    return hn::Combine(d, hn::Set(half, scales[2 * group + 1]), hn::Set(half, scales[2 * group]));
  } else {
    return hn::Set(d, scales[2 * group + i / 8]);
  }
#endif
}

// Codes are taken as 0 … 63; that they mean -32 … 31 goes into a minimum.
template <bool Fine>
HWY_INLINE float dot_q6_k(const std::byte* w, const IntInput& x) {
  constexpr std::size_t kLanes = hn::MaxLanes(D16());
  const auto* block = reinterpret_cast<const gguf_blocks::Q6_K*>(w);
  const std::size_t blocks = x.scales.size() / 8;
  VF totals[2] = {hn::Zero(DF()), hn::Zero(DF())};
  const float *x_scales = x.scales_of_16.data(), *x_sums = x.sums_of_16.data();
  const Group32 *x_high = x.high_split.data(), *x_low = x.low_split.data();
  const hn::CappedTag<float, 8> d;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const hn::Rebind<std::int8_t, decltype(d)> db;
  auto minima = hn::Zero(d);
  alignas(64) float all_scales[kBlocksAhead][16];
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t a = b; b % kBlocksAhead == 0 && a < std::min(blocks, b + kBlocksAhead); ++a) {
      const auto whole = hn::Set(d, widen(block[a].d));
      for (std::size_t i = 0; i < 16; i += hn::Lanes(d)) {
        const auto s =
            hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, block[a].scales + i))), whole);
        minima = hn::MulAdd(s, hn::LoadU(d, x_sums + 16 * a + i), minima);
        hn::StoreU(hn::Mul(s, hn::LoadU(d, x_scales + 16 * a + i)), d, all_scales[a - b] + i);
      }
    }
    load_from_memory();
    const float* scales = all_scales[b % kBlocksAhead];
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t i = 0; i < 16; i += kLanes) {
        const hn::Vec<U16> l0 = pairs_of_bytes(block[b].ql + 64 * half + 2 * i);
        const hn::Vec<U16> l1 = pairs_of_bytes(block[b].ql + 64 * half + 32 + 2 * i);
        const hn::Vec<U16> h = pairs_of_bytes(block[b].qh + 32 * half + 2 * i);
        // Bytes of codes: those of even lanes, and of odd ones.
        const auto group = [&](std::size_t part, hn::Vec<U16> codes) HWY_ATTR {
          const std::size_t g = 8 * b + 4 * half + part;
          GroupSum<Fine> sum;
          const std::int16_t *high = x_high[g].codes, *low = Fine ? x_low[g].codes : high;
          sum.add(as_codes(bits(codes, 255)), high + i, low + i);
          sum.add(as_codes(hn::ShiftRight<8>(codes)), high + 16 + i, low + 16 + i);
          totals[part % 2] = hn::MulAdd(sum.value(), scales_at(scales, 4 * half + part, i), totals[part % 2]);
        };
        constexpr std::uint16_t kNibbles = 0x0F0F, kHigh = 0x3030;
        group(0, hn::Or(bits(l0, kNibbles), bits(hn::ShiftLeft<4>(h), kHigh)));
        group(1, hn::Or(bits(l1, kNibbles), bits(hn::ShiftLeft<2>(h), kHigh)));
        group(2, hn::Or(bits(hn::ShiftRight<4>(l0), kNibbles), bits(h, kHigh)));
        group(3, hn::Or(bits(hn::ShiftRight<4>(l1), kNibbles), bits(hn::ShiftRight<2>(h), kHigh)));
      }
    }
  }
  const float sum = hn::GetLane(hn::SumOfLanes(DF(), hn::Add(totals[0], totals[1])));
  return sum - 32 * hn::GetLane(hn::SumOfLanes(d, minima));
}

template <float (*Dot)(const std::byte*, const IntInput&)>
void dot_each(const std::byte* w, std::size_t row_bytes, std::size_t count, const IntInput& x, float* y) {
  for (std::size_t r = 0; r < count; ++r, w += row_bytes) y[r] = Dot(w, x);
}

template <bool Fine>
void dot_rows_of(ElementType type, const std::byte* w, std::size_t row_bytes, std::size_t count,
                 const IntInput& x, float* y) {
  using namespace gguf_blocks;
  switch (type) {
    case ElementType::Q4_0:
      return dot_each<dot_small_blocks<Q4_0, NibbleCodes<Q4_0, 8>, Fine>>(w, row_bytes, count, x, y);
    case ElementType::Q4_1:
      return dot_each<dot_small_blocks<Q4_1, NibbleCodes<Q4_1, 8>, Fine>>(w, row_bytes, count, x, y);
    case ElementType::Q5_0:
      return dot_each<dot_small_blocks<Q5_0, NibbleCodes<Q5_0, 16>, Fine>>(w, row_bytes, count, x, y);
    case ElementType::Q5_1:
      return dot_each<dot_small_blocks<Q5_1, NibbleCodes<Q5_1, 16>, Fine>>(w, row_bytes, count, x, y);
    case ElementType::Q8_0:
      return dot_each<dot_small_blocks<Q8_0, ByteCodes, Fine>>(w, row_bytes, count, x, y);
    case ElementType::Q4_K: return dot_each<dot_nibble_blocks<Q4_K, Fine>>(w, row_bytes, count, x, y);
    case ElementType::Q5_K: return dot_each<dot_nibble_blocks<Q5_K, Fine>>(w, row_bytes, count, x, y);
    default: return dot_each<dot_q6_k<Fine>>(w, row_bytes, count, x, y);
  }
}

void dot_rows(ElementType type, const std::byte* w, std::size_t row_bytes, std::size_t count,
              const IntInput& x, float* y) {
  x.fine ? dot_rows_of<true>(type, w, row_bytes, count, x, y)
         : dot_rows_of<false>(type, w, row_bytes, count, x, y);
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(dot_rows);

namespace {

// What the uneven groups of an input add to one row's sum.
float uneven_dot(ElementType type, const std::byte* row, const IntInput& x) {
  const ElementInfo& element = info(type);
  float values[256], sum = 0;
  for (const IntInput::Uneven& group : x.uneven) {
    const std::size_t block = 32 * group.group / element.block_elements;
    dequantize(type, std::span(row + block * element.block_bytes, element.block_bytes), values);
    const float* w = values + 32 * group.group % element.block_elements;
    for (std::size_t i = 0; i < 32; ++i) sum += w[i] * group.x[i];
  }
  return sum;
}

}  // namespace

void integer_row_dots(const WeightView& weight, std::size_t first, std::size_t count, const IntInput& x,
                      float* y) {
  HWY_DYNAMIC_DISPATCH(dot_rows)
  (weight.type, weight.codes + first * weight.row_bytes, weight.row_bytes, count, x, y);
  for (std::size_t r = 0; !x.uneven.empty() && r < count; ++r)
    y[r] += uneven_dot(weight.type, weight.codes + (first + r) * weight.row_bytes, x);
}

}  // namespace assay::cpu
#endif
