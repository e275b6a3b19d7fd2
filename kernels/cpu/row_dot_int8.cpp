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

// Memory ahead of the row: what the processor fetches by itself ends with a page.
constexpr std::size_t kAhead = 1024;
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

// --- super-blocks of 256

// Fifth bits of Q5_K's codes of groups 2·part and 2·part + 1, at bits 2·part and 2·part + 1 of each byte;
// none of Q4_K's.
template <std::size_t Part>
HWY_INLINE void add_fifths(const gguf_blocks::Q4_K&, std::size_t, VBytes&, VBytes&) {}
template <std::size_t Part>
HWY_INLINE void add_fifths(const gguf_blocks::Q5_K& block, std::size_t i, VBytes& first, VBytes& second) {
  const VBytes high = hn::LoadU(Bytes(), block.qh + i);
  const auto only = [&](int bit) HWY_ATTR {
    return hn::And(high, hn::Set(Bytes(), static_cast<std::uint8_t>(1 << bit)));
  };
  if constexpr (Part == 0) first = hn::Or(first, shift_left<4>(only(0)));
  if constexpr (Part == 1) first = hn::Or(first, shift_left<2>(only(2)));
  if constexpr (Part == 2) first = hn::Or(first, only(4));
  if constexpr (Part == 3) first = hn::Or(first, shift_right<2>(high, 16));
  if constexpr (Part == 0) second = hn::Or(second, shift_left<3>(only(1)));
  if constexpr (Part == 1) second = hn::Or(second, shift_left<1>(only(3)));
  if constexpr (Part == 2) second = hn::Or(second, shift_right<1>(high, 16));
  if constexpr (Part == 3) second = hn::Or(second, shift_right<3>(high, 16));
}

// Groups 2·Part and 2·Part + 1 of a super-block, whose nibbles lie in the same 32 bytes.
template <std::size_t Part, class Stored>
HWY_INLINE void add_nibbles(const Stored& block, const Codes32* q, const EightScales& scales, VF& first_total,
                            VF& second_total) {
  V32 first_sum = hn::Zero(D32()), second_sum = hn::Zero(D32());
  const V16 one = hn::Set(D16(), 1);
  for (std::size_t i = 0; i < 32; i += kBytes) {
    const VBytes v = hn::LoadU(Bytes(), block.qs + 32 * Part + i);
    VBytes first = low_nibbles(v), second = shift_right<4>(v, 15);
    add_fifths<Part>(block, i, first, second);
    first_sum = hn::Add(first_sum, weighted(pair_products(first, inputs_at(q[2 * Part], i)), one));
    second_sum = hn::Add(second_sum, weighted(pair_products(second, inputs_at(q[2 * Part + 1], i)), one));
  }
  first_total = hn::MulAdd(hn::ConvertTo(DF(), first_sum), scales.of<2 * Part>(), first_total);
  second_total = hn::MulAdd(hn::ConvertTo(DF(), second_sum), scales.of<2 * Part + 1>(), second_total);
}

// Q4_K and Q5_K: eight groups of 32 codes, each with a scale and a minimum of 6 bits.
template <class Stored>
HWY_INLINE float dot_nibble_blocks(const std::byte* w, const Int8Input& x) {
  const hn::Rebind<std::uint8_t, DF> db;
  const auto* block = reinterpret_cast<const Stored*>(w);
  const std::size_t blocks = x.scales.size() / 8;
  const float *x_scales = x.scales.data(), *x_sums = x.sums_of_32.data();
  const Codes32* q = x.groups.data();
  VF first_total = hn::Zero(DF()), second_total = hn::Zero(DF()), minima = hn::Zero(DF());
  EightScales scales;
  SixBitScales bytes;
  for (std::size_t b = 0; b < blocks; ++b, q += 8) {
    fetch_ahead(block + b, sizeof(Stored));
    unpack_six_bits(block[b].scales, bytes);
    const VF scale = hn::Set(DF(), widen(block[b].d)), minimum = hn::Set(DF(), widen(block[b].dmin));
    for (std::size_t i = 0; i < 8; i += hn::Lanes(DF())) {
      const VF s = hn::ConvertTo(DF(), hn::PromoteTo(D32(), hn::LoadU(db, bytes.each + i)));
      const VF m = hn::ConvertTo(DF(), hn::PromoteTo(D32(), hn::LoadU(db, bytes.each + 8 + i)));
      scales.set(i, hn::Mul(hn::Mul(s, scale), hn::LoadU(DF(), x_scales + 8 * b + i)));
      minima = hn::MulAdd(hn::Mul(m, minimum), hn::LoadU(DF(), x_sums + 8 * b + i), minima);
    }
    add_nibbles<0>(block[b], q, scales, first_total, second_total);
    add_nibbles<1>(block[b], q, scales, first_total, second_total);
    add_nibbles<2>(block[b], q, scales, first_total, second_total);
    add_nibbles<3>(block[b], q, scales, first_total, second_total);
  }
  return hn::GetLane(hn::SumOfLanes(DF(), hn::Sub(hn::Add(first_total, second_total), minima)));
}

// The 16 scales of a super-block of Q6_K, of which codes 16·j … have the j-th. They multiply pairs of
// products: 2 · 63 · 127 · 128 · 2 is far below 2^31.
class SixteenScales {
 public:
#if HWY_TARGET == HWY_SSE4
  HWY_INLINE explicit SixteenScales(const std::int8_t* scales) : each_(scales) {}
  template <std::size_t Group>
  HWY_INLINE V16 of(std::size_t i) const {  // for codes 32·Group + i …
    return hn::Set(D16(), each_[2 * Group + i / 16]);
  }

 private:
  const std::int8_t* each_;
#else
  // Even ones in the lower half, odd ones in the upper: a shuffle within halves then spreads a pair.
  HWY_INLINE explicit SixteenScales(const std::int8_t* scales) {
    alignas(16) static constexpr std::uint8_t kApart[16] = {0, 2, 4, 6, 8, 10, 12, 14,
                                                            1, 3, 5, 7, 9, 11, 13, 15};
    const hn::FixedTag<std::uint8_t, 16> d;
    const hn::FixedTag<std::int8_t, 16> ds;
    const auto bytes = hn::BitCast(d, hn::LoadU(ds, scales));
    apart_ = hn::PromoteTo(D16(), hn::BitCast(ds, hn::TableLookupBytes(bytes, hn::Load(d, kApart))));
  }
  template <std::size_t Group>
  HWY_INLINE V16 of(std::size_t) const {
    constexpr auto kTwoBytes = static_cast<std::int16_t>(2 * Group | (2 * Group + 1) << 8);
    return hn::TableLookupBytes(apart_, hn::Set(D16(), kTwoBytes));
  }

 private:
  V16 apart_;
#endif
};

// Σ of scale · Σ q over both 16 of a group, a lane a group: what codes that mean 32 less are short of.
HWY_INLINE VF weighted_sums(const std::int8_t* scales, const std::int16_t* sums) {
  const hn::Rebind<std::int8_t, D16> bytes;
  return hn::ConvertTo(DF(),
                       weighted(hn::PromoteTo(D16(), hn::LoadU(bytes, scales)), hn::LoadU(D16(), sums)));
}

// Half of a super-block: 128 codes, 0 … 63, four groups whose bits share 32 bytes of qh.
template <std::size_t Half>
HWY_INLINE void add_six_bits(const gguf_blocks::Q6_K& block, const Codes32* q, const SixteenScales& of_16,
                             const EightScales& scales, VF (&totals)[2]) {
  V32 sums[4] = {hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32())};
  const auto bits = [](VBytes v, std::uint8_t mask) HWY_ATTR { return hn::And(v, hn::Set(Bytes(), mask)); };
  for (std::size_t i = 0; i < 32; i += kBytes) {
    const VBytes l0 = hn::LoadU(Bytes(), block.ql + 64 * Half + i);
    const VBytes l1 = hn::LoadU(Bytes(), block.ql + 64 * Half + 32 + i);
    const VBytes h = hn::LoadU(Bytes(), block.qh + 32 * Half + i);
    const auto add = [&](std::size_t part, VBytes codes, V16 scale) HWY_ATTR {
      sums[part] = hn::Add(sums[part], weighted(pair_products(codes, inputs_at(q[part], i)), scale));
    };
    add(0, hn::Or(low_nibbles(l0), shift_left<4>(bits(h, 3))), of_16.of<4 * Half>(i));
    add(1, hn::Or(low_nibbles(l1), shift_left<2>(bits(h, 12))), of_16.of<4 * Half + 1>(i));
    add(2, hn::Or(shift_right<4>(l0, 15), bits(h, 48)), of_16.of<4 * Half + 2>(i));
    add(3, hn::Or(shift_right<4>(l1, 15), shift_right<2>(h, 48)), of_16.of<4 * Half + 3>(i));
  }
  totals[0] = hn::MulAdd(hn::ConvertTo(DF(), sums[0]), scales.of<4 * Half>(), totals[0]);
  totals[1] = hn::MulAdd(hn::ConvertTo(DF(), sums[1]), scales.of<4 * Half + 1>(), totals[1]);
  totals[0] = hn::MulAdd(hn::ConvertTo(DF(), sums[2]), scales.of<4 * Half + 2>(), totals[0]);
  totals[1] = hn::MulAdd(hn::ConvertTo(DF(), sums[3]), scales.of<4 * Half + 3>(), totals[1]);
}

HWY_INLINE float dot_q6_k(const std::byte* w, const Int8Input& x) {
  const auto* block = reinterpret_cast<const gguf_blocks::Q6_K*>(w);
  const std::size_t blocks = x.scales.size() / 8;
  const float* x_scales = x.scales.data();
  const std::int16_t* x_sums = x.sums_of_16.data();
  const Codes32* q = x.groups.data();
  VF totals[2] = {hn::Zero(DF()), hn::Zero(DF())}, minima = hn::Zero(DF());
  EightScales scales;
  for (std::size_t b = 0; b < blocks; ++b, q += 8) {
    fetch_ahead(block + b, sizeof block[b]);
    const SixteenScales of_16(block[b].scales);
    const VF whole = hn::Set(DF(), widen(block[b].d));
    for (std::size_t g = 0; g < 8; g += hn::Lanes(DF())) {
      const VF s = hn::Mul(whole, hn::LoadU(DF(), x_scales + 8 * b + g));
      minima = hn::MulAdd(s, weighted_sums(block[b].scales + 2 * g, x_sums + 2 * (8 * b + g)), minima);
      scales.set(g, s);
    }
    add_six_bits<0>(block[b], q, of_16, scales, totals);
    add_six_bits<1>(block[b], q + 4, of_16, scales, totals);
  }
  const VF total = hn::Add(totals[0], totals[1]);
  return hn::GetLane(hn::SumOfLanes(DF(), hn::NegMulAdd(hn::Set(DF(), 32.0F), minima, total)));
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
