#include "kernels/cpu/row_dot_int8.h"

#include <cstring>
#include <type_traits>

#include "core/numeric/gguf_layout.h"
#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_dot_int8.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/block_codes.h"

// Where no instruction multiplies bytes: plain loops over unpacked blocks.
template <class Block>
HWY_INLINE float dot_plain_blocks(const std::byte* w, const Int8Input& x) {
  constexpr std::size_t kGroup = Block::kGroup;
  const auto* block = reinterpret_cast<const typename Block::Stored*>(w);
  const std::size_t groups = x.scales.size() * 32 / kGroup;
  const std::int8_t* codes_x = x.groups[0].codes;
  UnpackedBlock u;
  const std::int8_t* codes = u.codes;
  float total = 0;
  for (std::size_t g = 0; g < groups; ++g, codes += kGroup, codes_x += kGroup) {
    const std::size_t part = g % static_cast<std::size_t>(Block::kGroups);
    if (part == 0) codes = Block::unpack(*block++, u);
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < kGroup; ++i) sum += codes[i] * codes_x[i];
    const std::size_t of_32 = g * kGroup / 32;
    total += u.scales[part] * x.scales[of_32] * static_cast<float>(sum);
    if constexpr (Block::kMinimum) total += u.minima[part] * x.sums_of_32[of_32];
  }
  return total;
}

#undef ASSAY_BYTE_PRODUCTS
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
#define ASSAY_BYTE_PRODUCTS 1
#else
#define ASSAY_BYTE_PRODUCTS 0
#endif

#if ASSAY_BYTE_PRODUCTS
using SByte = SignedBytes;
using VSigned = hn::Vec<SByte>;
using D16 = hn::RepartitionToWide<SByte>;
using D32 = hn::RepartitionToWide<D16>;
using DF = hn::RebindToFloat<D32>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
using VF = hn::Vec<DF>;
constexpr std::size_t kBytes = hn::MaxLanes(Bytes());  // 32, or 16: two vectors a group

// Codes without a sign by codes with one, two neighbours' products added up; what fits 16 bits, above.
HWY_INLINE V16 pair_products(VBytes codes, VSigned x) {
#if HWY_TARGET == HWY_SSE4
  return V16{_mm_maddubs_epi16(codes.raw, x.raw)};
#else
  return V16{_mm256_maddubs_epi16(codes.raw, x.raw)};
#endif
}
// a.even · b.even + a.odd · b.odd
HWY_INLINE V32 weighted(V16 a, V16 b) {
#if HWY_TARGET == HWY_SSE4
  return V32{_mm_madd_epi16(a.raw, b.raw)};
#else
  return V32{_mm256_madd_epi16(a.raw, b.raw)};
#endif
}
HWY_INLINE VSigned with_sign_of(VSigned x, VSigned of) {  // 0 where `of` is
#if HWY_TARGET == HWY_SSE4
  return VSigned{_mm_sign_epi8(x.raw, of.raw)};
#else
  return VSigned{_mm256_sign_epi8(x.raw, of.raw)};
#endif
}
HWY_INLINE VSigned inputs_at(const Codes32& group, std::size_t i) {
  return hn::LoadU(SByte(), group.codes + i);
}

// Memory ahead of the row, as far as it takes while two threads read: what the processor fetches by itself
// ends with a page.
constexpr std::size_t kAhead = 4096;
HWY_INLINE void fetch_ahead(const void* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) hwy::Prefetch(static_cast<const std::byte*>(at) + kAhead + i);
}

// Eight numbers, a group's each, to be spread over a vector out of registers: numbers just stored, loaded one
// by one, would wait until the store is through.
struct EightScales {
#if HWY_TARGET == HWY_SSE4
  VF lower, upper;
  HWY_INLINE void set(std::size_t i, VF v) {
    (i == 0 ? lower : upper) = v;
  }
#else
  VF lower, upper;  // each four twice
  HWY_INLINE void set(std::size_t, VF v) {
    lower = hn::ConcatLowerLower(DF(), v, v);
    upper = hn::ConcatUpperUpper(DF(), v, v);
  }
#endif
  template <std::size_t Group>
  HWY_INLINE VF of() const {
    return hn::Broadcast<Group % 4>(Group < 4 ? lower : upper);
  }
};

// --- 32 codes under one scale

// 16 bytes' nibbles as 32 codes, or, where vectors are half as long, those from code i on.
HWY_INLINE VBytes nibbles_at(const std::uint8_t* qs, std::size_t i) {
#if HWY_TARGET == HWY_SSE4
  const VBytes v = hn::LoadU(Bytes(), qs);
  return i == 0 ? low_nibbles(v) : shift_right<4>(v, 15);
#else
  static_cast<void>(i);
  const hn::Half<Bytes> half;
  const hn::RepartitionToWide<decltype(half)> wide;
  const auto v = hn::LoadU(half, qs);
  const auto high = hn::BitCast(half, hn::ShiftRight<4>(hn::BitCast(wide, v)));
  return low_nibbles(hn::Combine(Bytes(), high, v));
#endif
}
// 16 where bit i of the word is set, for codes i …: bit i is in byte i / 8.
HWY_INLINE VBytes fifths_at(std::uint32_t word, std::size_t i) {
  alignas(32) static constexpr std::uint8_t kByte[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                                         2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};
  const Bytes d;
  const auto bits = hn::BitCast(d, hn::Set(hn::Repartition<std::uint64_t, Bytes>(), 0x8040201008040201u));
  const auto words = hn::BitCast(d, hn::Set(hn::Repartition<std::uint32_t, Bytes>(), word));
  const auto set = hn::TestBit(hn::TableLookupBytes(words, hn::Load(d, kByte + i)), bits);
  return hn::IfThenElseZero(set, hn::Set(d, std::uint8_t{16}));
}

// What a type of 32 codes says of a block: its codes without their sign, and value = scale·code + minimum,
// the minimum a number of its own or a multiple of the scale.
template <class Stored>
struct Small;
template <>
struct Small<gguf_blocks::Q4_0> {
  static constexpr float kScales = -8;
  static HWY_INLINE VBytes codes(const gguf_blocks::Q4_0& b, std::size_t i) { return nibbles_at(b.qs, i); }
};
template <>
struct Small<gguf_blocks::Q4_1> {
  static constexpr float kScales = 0;
  static HWY_INLINE VBytes codes(const gguf_blocks::Q4_1& b, std::size_t i) { return nibbles_at(b.qs, i); }
};
template <>
struct Small<gguf_blocks::Q5_0> {
  static constexpr float kScales = -16;
  static HWY_INLINE VBytes codes(const gguf_blocks::Q5_0& b, std::size_t i) {
    return hn::Or(nibbles_at(b.qs, i), fifths_at(b.qh.get(), i));
  }
};
template <>
struct Small<gguf_blocks::Q5_1> {
  static constexpr float kScales = 0;
  static HWY_INLINE VBytes codes(const gguf_blocks::Q5_1& b, std::size_t i) {
    return hn::Or(nibbles_at(b.qs, i), fifths_at(b.qh.get(), i));
  }
};
template <>
struct Small<gguf_blocks::Q8_0> {  // codes have a sign, which goes to the inputs
  static constexpr float kScales = 0;
};
template <class Stored>
constexpr bool kOwnMinimum =
    std::is_same_v<Stored, gguf_blocks::Q4_1> || std::is_same_v<Stored, gguf_blocks::Q5_1>;

template <class Stored>
HWY_INLINE V32 small_block_sum(const Stored& block, const Codes32& group) {
  V32 sum = hn::Zero(D32());
  for (std::size_t i = 0; i < 32; i += kBytes) {
    VSigned q = inputs_at(group, i);
    VBytes codes;
    if constexpr (std::is_same_v<Stored, gguf_blocks::Q8_0>) {
      const VSigned w = hn::LoadU(SByte(), block.qs + i);
      codes = hn::BitCast(Bytes(), hn::Abs(w));  // of -128 the bits of 128
      q = with_sign_of(q, w);
    } else {
      codes = Small<Stored>::codes(block, i);
    }
    sum = hn::Add(sum, weighted(pair_products(codes, q), hn::Set(D16(), 1)));
  }
  return sum;
}

// Numbers in half precision out of as many blocks as a vector has lanes.
template <class Stored>
HWY_INLINE VF halves_of(const Stored* block, gguf_blocks::Half Stored::*which) {
  const hn::Rebind<hwy::float16_t, DF> d;
  const auto bits = [&](int i) HWY_ATTR {
    return static_cast<short>(static_cast<gguf_blocks::U16>(block[i].*which).get());
  };
#if HWY_TARGET == HWY_SSE4
  const __m128i raw = _mm_setr_epi16(bits(0), bits(1), bits(2), bits(3), 0, 0, 0, 0);
#else
  const __m128i raw = _mm_setr_epi16(bits(0), bits(1), bits(2), bits(3), bits(4), bits(5), bits(6), bits(7));
#endif
  return hn::PromoteTo(DF(), hn::Vec<decltype(d)>{raw});
}

// Eight blocks: their scales and minima are worked out together.
template <class Stored>
HWY_INLINE void add_eight_blocks(const Stored* block, const Codes32* q, const float* x_scales,
                                 const float* x_sums, VF (&totals)[2], VF& minima) {
  EightScales scales;
  for (std::size_t i = 0; i < 8; i += hn::Lanes(DF())) {
    const VF scale = halves_of(block + i, &Stored::d), sums = hn::LoadU(DF(), x_sums + i);
    scales.set(i, hn::Mul(scale, hn::LoadU(DF(), x_scales + i)));
    if constexpr (kOwnMinimum<Stored>)
      minima = hn::MulAdd(halves_of(block + i, &Stored::m), sums, minima);
    else if constexpr (Small<Stored>::kScales != 0)
      minima = hn::MulAdd(hn::Mul(scale, hn::Set(DF(), Small<Stored>::kScales)), sums, minima);
  }
  const auto add = [&]<std::size_t I>() HWY_ATTR {
    const VF sum = hn::ConvertTo(DF(), small_block_sum(block[I], q[I]));
    totals[I % 2] = hn::MulAdd(sum, scales.of<I>(), totals[I % 2]);
  };
  add.template operator()<0>();
  add.template operator()<1>();
  add.template operator()<2>();
  add.template operator()<3>();
  add.template operator()<4>();
  add.template operator()<5>();
  add.template operator()<6>();
  add.template operator()<7>();
}

// What does not fill eight.
template <class Stored>
HWY_INLINE VF add_block(const Stored& block, const Codes32& q, float x_scale, float x_sum, VF total,
                        float& minimum) {
  const float scale = widen(block.d);
  if constexpr (kOwnMinimum<Stored>)
    minimum += widen(block.m) * x_sum;
  else
    minimum += Small<Stored>::kScales * scale * x_sum;
  return hn::MulAdd(hn::ConvertTo(DF(), small_block_sum(block, q)), hn::Set(DF(), scale * x_scale), total);
}

template <class Block>
HWY_INLINE float dot_small_blocks(const std::byte* w, const Int8Input& x) {
  const auto* block = reinterpret_cast<const typename Block::Stored*>(w);
  const std::size_t blocks = x.scales.size();
  const float *x_scales = x.scales.data(), *x_sums = x.sums_of_32.data();
  const Codes32* q = x.groups.data();
  VF totals[2] = {hn::Zero(DF()), hn::Zero(DF())}, minima = hn::Zero(DF());
  std::size_t b = 0;
  for (; b + 8 <= blocks; b += 8) {
    fetch_ahead(block + b, 8 * sizeof block[b]);
    add_eight_blocks(block + b, q + b, x_scales + b, x_sums + b, totals, minima);
  }
  float minimum = 0;
  for (; b < blocks; ++b) totals[0] = add_block(block[b], q[b], x_scales[b], x_sums[b], totals[0], minimum);
  return hn::GetLane(hn::SumOfLanes(DF(), hn::Add(hn::Add(totals[0], totals[1]), minima))) + minimum;
}

// --- super-blocks of 256: groups g and g + 4 lie side by side in a vector, eight codes of each by turns, as
// Input256 (int8_input.h) has the inputs. What belongs to one group is so added up before it is scaled, in
// 16 bits while it fits, and all eight groups' sums end in one vector, in the order 0 4 1 5 2 6 3 7.

HWY_INLINE V16 neighbours_added(V16 a, V16 b) {  // of each 16 bytes of a four sums, then of b's
#if HWY_TARGET == HWY_SSE4
  return V16{_mm_hadd_epi16(a.raw, b.raw)};
#else
  return V16{_mm256_hadd_epi16(a.raw, b.raw)};
#endif
}
HWY_INLINE V32 neighbours_added(V32 a, V32 b) {
#if HWY_TARGET == HWY_SSE4
  return V32{_mm_hadd_epi32(a.raw, b.raw)};
#else
  return V32{_mm256_hadd_epi32(a.raw, b.raw)};
#endif
}

// The first eight of each 16 bytes of two vectors, a's and b's by turns; the last eight.
HWY_INLINE VBytes first_eights(VBytes a, VBytes b) {
  const hn::Repartition<std::uint64_t, Bytes> d;
  return hn::BitCast(Bytes(), hn::InterleaveLower(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}
HWY_INLINE VBytes last_eights(VBytes a, VBytes b) {
  const hn::Repartition<std::uint64_t, Bytes> d;
  return hn::BitCast(Bytes(), hn::InterleaveUpper(d, hn::BitCast(d, a), hn::BitCast(d, b)));
}

// Eight numbers, a group's each, in that order.
constexpr std::size_t kVectorsOfEight = 8 / hn::MaxLanes(DF());
struct OfEight {
  VF each[kVectorsOfEight];
};
struct SumsOfEight {
  V32 each[kVectorsOfEight];
};
// Of sums of groups 0 4 1 5 and of 2 6 3 7; in a long vector its halves hold a part each.
HWY_INLINE SumsOfEight sums_of_eight(V32 first, V32 second) {
#if HWY_TARGET == HWY_SSE4
  return {{first, second}};
#else
  const D32 d;
  return {{hn::Add(hn::ConcatUpperLower(d, second, first), hn::ConcatLowerUpper(d, second, first))}};
#endif
}
HWY_INLINE void add_scaled_sums(const SumsOfEight& sums, const OfEight& scales, VF& total) {
  for (std::size_t i = 0; i < kVectorsOfEight; ++i)
    total = hn::MulAdd(hn::ConvertTo(DF(), sums.each[i]), scales.each[i], total);
}

// Fifth bits of Q5_K's codes of groups Group and Group + 4, at bit Group of each byte; none of Q4_K's.
struct NoFifths {
  HWY_INLINE NoFifths(const gguf_blocks::Q4_K&, std::size_t) {}
  template <std::size_t Group>
  HWY_INLINE VBytes in_first(VBytes codes) const {
    return codes;
  }
  template <std::size_t Group>
  HWY_INLINE VBytes in_last(VBytes codes) const {
    return codes;
  }
};
class Fifths {
 public:
  HWY_INLINE Fifths(const gguf_blocks::Q5_K& block, std::size_t i) {
    const VBytes high = hn::LoadU(Bytes(), block.qh + i), of_last_groups = shift_right<4>(high, 15);
    first_ = first_eights(high, of_last_groups);
    last_ = last_eights(high, of_last_groups);
  }
  template <std::size_t Group>
  HWY_INLINE VBytes in_first(VBytes codes) const {
    return hn::Or(codes, bit<Group>(first_));
  }
  template <std::size_t Group>
  HWY_INLINE VBytes in_last(VBytes codes) const {
    return hn::Or(codes, bit<Group>(last_));
  }

 private:
  template <std::size_t Group>
  static HWY_INLINE VBytes bit(VBytes v) {
    return shift_left<4 - Group>(hn::And(v, hn::Set(Bytes(), std::uint8_t{1 << Group})));
  }
  VBytes first_, last_;
};
template <class Stored>
using FifthsOf = std::conditional_t<std::is_same_v<Stored, gguf_blocks::Q5_K>, Fifths, NoFifths>;

HWY_INLINE VSigned inputs_of(const Input256& x, std::size_t which, std::size_t i) {
  return hn::LoadU(SByte(), x.codes[which] + i);
}

// Groups 2·Part, 2·Part + 1 and those four on. Four products of a pair each are summed in 16 bits:
// 4 · 2 · 31 · 127 < 2^15.
template <std::size_t Part, class Stored>
HWY_INLINE V32 nibble_sums(const Stored& block, const Input256& x) {
  V32 sum = hn::Zero(D32());
  for (std::size_t i = 0; i < 32; i += kBytes) {
    const VBytes v = hn::LoadU(Bytes(), block.qs + 32 * Part + i);
    const VBytes w = hn::LoadU(Bytes(), block.qs + 32 * Part + 64 + i);
    const VBytes first = first_eights(v, w), last = last_eights(v, w);
    const FifthsOf<Stored> fifths(block, i);
    constexpr std::size_t kLow = 2 * Part, kHigh = 2 * Part + 1;
    const V16 low = hn::Add(
        pair_products(fifths.template in_first<kLow>(low_nibbles(first)), inputs_of(x, 2 * kLow, i)),
        pair_products(fifths.template in_last<kLow>(low_nibbles(last)), inputs_of(x, 2 * kLow + 1, i)));
    const V16 high = hn::Add(
        pair_products(fifths.template in_first<kHigh>(shift_right<4>(first, 15)), inputs_of(x, 2 * kHigh, i)),
        pair_products(fifths.template in_last<kHigh>(shift_right<4>(last, 15)),
                      inputs_of(x, 2 * kHigh + 1, i)));
    sum = hn::Add(sum, weighted(neighbours_added(low, high), hn::Set(D16(), 1)));
  }
  return sum;
}

// Q4_K and Q5_K: eight groups of 32 codes, each with a scale and a minimum of 6 bits.
template <class Stored>
HWY_INLINE float dot_nibble_blocks(const std::byte* w, const Int8Input& x) {
  const hn::Rebind<std::uint8_t, DF> db;
  const auto* block = reinterpret_cast<const Stored*>(w);
  VF total = hn::Zero(DF()), minima = hn::Zero(DF());
  for (const Input256& in : x.super_blocks) {
    fetch_ahead(block, sizeof(Stored));
    SixBitScales bytes;
    unpack_six_bits<true>(block->scales, bytes);
    const VF scale = hn::Set(DF(), widen(block->d)), minimum = hn::Set(DF(), widen(block->dmin));
    OfEight scales;
    for (std::size_t i = 0; i < 8; i += hn::Lanes(DF())) {
      const VF s = hn::ConvertTo(DF(), hn::PromoteTo(D32(), hn::LoadU(db, bytes.each + i)));
      const VF m = hn::ConvertTo(DF(), hn::PromoteTo(D32(), hn::LoadU(db, bytes.each + 8 + i)));
      scales.each[i / hn::Lanes(DF())] = hn::Mul(hn::Mul(s, scale), hn::LoadU(DF(), in.scales + i));
      minima = hn::MulAdd(hn::Mul(m, minimum), hn::LoadU(DF(), in.sums_of_32 + i), minima);
    }
    add_scaled_sums(sums_of_eight(nibble_sums<0>(*block, in), nibble_sums<1>(*block, in)), scales, total);
    ++block;
  }
  return hn::GetLane(hn::SumOfLanes(DF(), hn::Sub(total, minima)));
}

// The 16 scales of a super-block of Q6_K, of which codes 16·j … have the j-th: of a group's, those of its
// first 16 codes are the even ones. They multiply sums of two pairs' products, 2 · 2 · 63 · 127 < 2^15, and
// eight of them by 128 add up to far less than 2^31.
class SixteenScales {
 public:
  HWY_INLINE explicit SixteenScales(const std::int8_t* scales) {
    alignas(16) static constexpr std::uint8_t kApart[16] = {0, 2, 4, 6, 8, 10, 12, 14,
                                                            1, 3, 5, 7, 9, 11, 13, 15};
    alignas(16) static constexpr std::uint8_t kInPairs[16] = {0, 1, 8,  9,  2, 3, 10, 11,
                                                              4, 5, 12, 13, 6, 7, 14, 15};
    const hn::FixedTag<std::uint8_t, 16> d;
    const auto bytes = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(scales));
    widened(hn::TableLookupBytes(bytes, hn::Load(d, kApart)), apart_);
    widened(hn::TableLookupBytes(bytes, hn::Load(d, kInPairs)), in_pairs_);
  }
  // For codes i … of groups Group and Group + 4, eight of each by turns.
  template <std::size_t Group>
  HWY_INLINE V16 of(std::size_t i) const {
    constexpr std::uint8_t kA = 2 * Group, kB = 2 * (Group + 4);
    alignas(16) static constexpr std::uint8_t kSpread[16] = {kA, kA + 1, kA, kA + 1, kA, kA + 1, kA, kA + 1,
                                                             kB, kB + 1, kB, kB + 1, kB, kB + 1, kB, kB + 1};
    const auto spread = hn::BitCast(D16(), hn::LoadDup128(hn::Repartition<std::uint8_t, D16>(), kSpread));
    return hn::TableLookupBytes(apart_[i / kBytes], spread);
  }
  // Σ of scale · Σ q over both 16 of a group: what codes that mean 32 less are short of, but for that 32.
  HWY_INLINE SumsOfEight of_sums(const Input256& x) const {
    SumsOfEight sums;
    for (std::size_t i = 0; i < kVectorsOfEight; ++i)
      sums.each[i] = weighted(in_pairs_[i], hn::LoadU(D16(), x.sums_of_16 + i * hn::Lanes(D16())));
    return sums;
  }

 private:
  static constexpr std::size_t kVectors = 16 / hn::MaxLanes(D16());
  static HWY_INLINE void widened(hn::Vec<hn::FixedTag<std::uint8_t, 16>> bytes, V16 (&to)[kVectors]) {
    const hn::FixedTag<std::int8_t, 16> d;
#if HWY_TARGET == HWY_SSE4
    const hn::Half<decltype(d)> half;
    to[0] = hn::PromoteTo(D16(), hn::LowerHalf(half, hn::BitCast(d, bytes)));
    to[1] = hn::PromoteTo(D16(), hn::UpperHalf(half, hn::BitCast(d, bytes)));
#else
    to[0] = hn::PromoteTo(D16(), hn::BitCast(d, bytes));
#endif
  }
  V16 apart_[kVectors], in_pairs_[kVectors];
};

// Codes of 6 bits, 0 … 63: groups 0 … 3 and, a half of the block further, those four on. Group 0's upper
// bits are the lowest ones of qh, group 1's the next ones, ….
HWY_INLINE SumsOfEight six_bit_sums(const gguf_blocks::Q6_K& block, const Input256& x,
                                    const SixteenScales& scales) {
  V32 sums[4] = {hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32())};
  const auto two_bits = [](VBytes v, std::uint8_t mask)
                            HWY_ATTR { return hn::And(v, hn::Set(Bytes(), mask)); };
  for (std::size_t i = 0; i < 32; i += kBytes) {
    const auto at = [&](const std::uint8_t* bytes) HWY_ATTR { return hn::LoadU(Bytes(), bytes + i); };
    const VBytes a0 = at(block.ql), a1 = at(block.ql + 32), ah = at(block.qh);
    const VBytes b0 = at(block.ql + 64), b1 = at(block.ql + 96), bh = at(block.qh + 32);
    V16 products[4] = {hn::Zero(D16()), hn::Zero(D16()), hn::Zero(D16()), hn::Zero(D16())};
    const auto add = [&](std::size_t which, VBytes l0, VBytes l1, VBytes h) HWY_ATTR {
      const auto by = [&](std::size_t group, VBytes codes) HWY_ATTR {
        products[group] = hn::Add(products[group], pair_products(codes, inputs_of(x, 2 * group + which, i)));
      };
      by(0, hn::Or(low_nibbles(l0), shift_left<4>(two_bits(h, 3))));
      by(1, hn::Or(low_nibbles(l1), shift_left<2>(two_bits(h, 12))));
      by(2, hn::Or(shift_right<4>(l0, 15), two_bits(h, 48)));
      by(3, hn::Or(shift_right<4>(l1, 15), shift_right<2>(h, 48)));
    };
    add(0, first_eights(a0, b0), first_eights(a1, b1), first_eights(ah, bh));
    add(1, last_eights(a0, b0), last_eights(a1, b1), last_eights(ah, bh));
    sums[0] = hn::Add(sums[0], weighted(products[0], scales.of<0>(i)));
    sums[1] = hn::Add(sums[1], weighted(products[1], scales.of<1>(i)));
    sums[2] = hn::Add(sums[2], weighted(products[2], scales.of<2>(i)));
    sums[3] = hn::Add(sums[3], weighted(products[3], scales.of<3>(i)));
  }
  return sums_of_eight(neighbours_added(sums[0], sums[1]), neighbours_added(sums[2], sums[3]));
}

HWY_INLINE float dot_q6_k(const std::byte* w, const Int8Input& x) {
  const auto* block = reinterpret_cast<const gguf_blocks::Q6_K*>(w);
  VF total = hn::Zero(DF());
  for (const Input256& in : x.super_blocks) {
    fetch_ahead(block, sizeof *block);
    const SixteenScales of_16(block->scales);
    SumsOfEight sums = six_bit_sums(*block, in, of_16);
    const SumsOfEight short_of = of_16.of_sums(in);
    const VF whole = hn::Set(DF(), widen(block->d));
    OfEight scales;
    for (std::size_t i = 0; i < kVectorsOfEight; ++i) {
      sums.each[i] = hn::Sub(sums.each[i], hn::ShiftLeft<5>(short_of.each[i]));
      scales.each[i] = hn::Mul(whole, hn::LoadU(DF(), in.scales + i * hn::Lanes(DF())));
    }
    add_scaled_sums(sums, scales, total);
    ++block;
  }
  return hn::GetLane(hn::SumOfLanes(DF(), total));
}

template <class Block>
HWY_INLINE float dot_blocks(const std::byte* w, const Int8Input& x) {
  using Stored = typename Block::Stored;
  if constexpr (std::is_same_v<Stored, gguf_blocks::Q6_K>)
    return dot_q6_k(w, x);
  else if constexpr (Block::kCodes == 256)
    return dot_nibble_blocks<Stored>(w, x);
  else
    return dot_small_blocks<Block>(w, x);
}
#else
template <class Block>
HWY_INLINE float dot_blocks(const std::byte* w, const Int8Input& x) {
  return dot_plain_blocks<Block>(w, x);
}
#endif

template <class Block>
void dot_rows_of(const std::byte* w, std::size_t row_bytes, std::size_t count, const Int8Input& x, float* y) {
  for (std::size_t r = 0; r < count; ++r, w += row_bytes) y[r] = dot_blocks<Block>(w, x);
}

void dot_rows_int8(ElementType type, const std::byte* w, std::size_t row_bytes, std::size_t count,
                   const Int8Input& x, float* y) {
  switch (type) {
    case ElementType::Q4_0: return dot_rows_of<Q4_0Block>(w, row_bytes, count, x, y);
    case ElementType::Q4_1: return dot_rows_of<Q4_1Block>(w, row_bytes, count, x, y);
    case ElementType::Q5_0: return dot_rows_of<Q5_0Block>(w, row_bytes, count, x, y);
    case ElementType::Q5_1: return dot_rows_of<Q5_1Block>(w, row_bytes, count, x, y);
    case ElementType::Q8_0: return dot_rows_of<Q8_0Block>(w, row_bytes, count, x, y);
    case ElementType::Q4_K: return dot_rows_of<Q4_KBlock>(w, row_bytes, count, x, y);
    case ElementType::Q5_K: return dot_rows_of<Q5_KBlock>(w, row_bytes, count, x, y);
    default: return dot_rows_of<Q6_KBlock>(w, row_bytes, count, x, y);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(dot_rows_int8);

void int8_row_dots(const WeightView& weight, std::size_t first, std::size_t count, const Int8Input& x,
                   float* y) {
  HWY_DYNAMIC_DISPATCH(dot_rows_int8)
  (weight.type, weight.codes + first * weight.row_bytes, weight.row_bytes, count, x, y);
}

}  // namespace assay::cpu
#endif
