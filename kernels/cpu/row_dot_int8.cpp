#include "kernels/cpu/row_dot_int8.h"

#include <cstring>
#include <type_traits>

#include "core/numeric/gguf_layout.h"
#include "core/numeric/vnni_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_dot_int8.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include "core/numeric/vnni_highway.h"

HWY_BEFORE_NAMESPACE();
namespace assay::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "kernels/cpu/block_codes.h"
#include "kernels/cpu/int_products.h"

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
    sum = add_byte_products(sum, codes, q);
  }
  return sum;
}

// Numbers in half precision out of as many blocks as a vector has lanes.
template <class Stored>
HWY_INLINE VF halves_of(const Stored* block, gguf_blocks::Half Stored::*which) {
  const hn::Rebind<std::uint16_t, DF> d;
  const auto bits = [&](int i) HWY_ATTR {
    return static_cast<short>(static_cast<gguf_blocks::U16>(block[i].*which).get());
  };
#if HWY_TARGET == HWY_SSE4
  const __m128i raw = _mm_setr_epi16(bits(0), bits(1), bits(2), bits(3), 0, 0, 0, 0);
#else
  const __m128i raw = _mm_setr_epi16(bits(0), bits(1), bits(2), bits(3), bits(4), bits(5), bits(6), bits(7));
#endif
  return from_half(DF(), hn::Vec<decltype(d)>{raw});
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

#include "kernels/cpu/super_block_dot.h"

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
