#include "kernels/cpu/row_dot_int8.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/numeric/gguf_layout.h"
#include "core/numeric/vnni_targets.h"
#include "kernels/cpu/fetch_ahead.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/row_dot_int8.cpp"
#include <hwy/foreach_target.h>
//
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

// A token's inputs, where they lie.
struct Int8InputView {
  HWY_INLINE explicit Int8InputView(const Int8Input& x)
      : groups(x.groups.data()),
        scales(x.scales.data()),
        sums_of_32(x.sums_of_32.data()),
        super_blocks(x.super_blocks.data()) {}
  const Codes32* groups;
  const float *scales, *sums_of_32;
  const Input256* super_blocks;
};
template <std::size_t Tokens>
using Inputs = std::array<Int8InputView, Tokens>;

// Of block b.
template <class Stored, std::size_t Tokens>
HWY_INLINE void small_block_sums(const Stored& block, const Inputs<Tokens>& x, std::size_t b,
                                 V32 (&sums)[Tokens]) {
  for (V32& sum : sums) sum = hn::Zero(D32());
  for (std::size_t i = 0; i < 32; i += kBytes) {
    if constexpr (std::is_same_v<Stored, gguf_blocks::Q8_0>) {
      const VSigned w = hn::LoadU(SByte(), block.qs + i);
      const VBytes codes = hn::BitCast(Bytes(), hn::Abs(w));  // of -128 the bits of 128
      for (std::size_t t = 0; t < Tokens; ++t)
        sums[t] = add_byte_products(sums[t], codes, with_sign_of(inputs_at(x[t].groups[b], i), w));
    } else {
      const VBytes codes = Small<Stored>::codes(block, i);
      for (std::size_t t = 0; t < Tokens; ++t)
        sums[t] = add_byte_products(sums[t], codes, inputs_at(x[t].groups[b], i));
    }
  }
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

template <std::size_t Tokens>
struct SmallBlockTotals {
  VF of[2][Tokens], minima[Tokens];
  float minimum[Tokens];  // of what does not fill eight
};

// Blocks b to b + 7, the first of which is at `block`: their scales and minima are worked out together.
template <class Stored, std::size_t Tokens>
HWY_INLINE void add_eight_blocks(const Stored* block, const Inputs<Tokens>& x, std::size_t b,
                                 SmallBlockTotals<Tokens>& totals) {
  EightScales scales[Tokens];
  for (std::size_t i = 0; i < 8; i += hn::Lanes(DF())) {
    const VF scale = halves_of(block + i, &Stored::d);
    VF minimum = scale;
    if constexpr (kOwnMinimum<Stored>)
      minimum = halves_of(block + i, &Stored::m);
    else if constexpr (Small<Stored>::kScales != 0)
      minimum = hn::Mul(scale, hn::Set(DF(), Small<Stored>::kScales));
    for (std::size_t t = 0; t < Tokens; ++t) {
      scales[t].set(i, hn::Mul(scale, hn::LoadU(DF(), x[t].scales + b + i)));
      if constexpr (kOwnMinimum<Stored> || Small<Stored>::kScales != 0)
        totals.minima[t] = hn::MulAdd(minimum, hn::LoadU(DF(), x[t].sums_of_32 + b + i), totals.minima[t]);
    }
  }
  const auto add = [&]<std::size_t I>() HWY_ATTR {
    V32 sums[Tokens];
    small_block_sums(block[I], x, b + I, sums);
    for (std::size_t t = 0; t < Tokens; ++t) {
      VF& total = totals.of[I % 2][t];
      total = hn::MulAdd(hn::ConvertTo(DF(), sums[t]), scales[t].template of<I>(), total);
    }
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
template <class Stored, std::size_t Tokens>
HWY_INLINE void add_block(const Stored& block, const Inputs<Tokens>& x, std::size_t b,
                          SmallBlockTotals<Tokens>& totals) {
  const float scale = widen(block.d);
  float minimum = Small<Stored>::kScales * scale;
  if constexpr (kOwnMinimum<Stored>) minimum = widen(block.m);
  V32 sums[Tokens];
  small_block_sums(block, x, b, sums);
  for (std::size_t t = 0; t < Tokens; ++t) {
    totals.minimum[t] += minimum * x[t].sums_of_32[b];
    totals.of[0][t] =
        hn::MulAdd(hn::ConvertTo(DF(), sums[t]), hn::Set(DF(), scale * x[t].scales[b]), totals.of[0][t]);
  }
}

template <class Block, std::size_t Tokens>
HWY_INLINE void dot_small_blocks(const std::byte* w, std::size_t blocks, const Inputs<Tokens>& x, float* y) {
  const auto* block = reinterpret_cast<const typename Block::Stored*>(w);
  SmallBlockTotals<Tokens> totals;
  for (std::size_t t = 0; t < Tokens; ++t) {
    totals.of[0][t] = totals.of[1][t] = totals.minima[t] = hn::Zero(DF());
    totals.minimum[t] = 0;
  }
  std::size_t b = 0;
  for (; b + 8 <= blocks; b += 8) {
    fetch_ahead(block + b, 8 * sizeof block[b]);
    add_eight_blocks(block + b, x, b, totals);
  }
  for (; b < blocks; ++b) add_block(block[b], x, b, totals);
  for (std::size_t t = 0; t < Tokens; ++t) {
    const VF sum = hn::Add(hn::Add(totals.of[0][t], totals.of[1][t]), totals.minima[t]);
    y[t] = hn::GetLane(hn::SumOfLanes(DF(), sum)) + totals.minimum[t];
  }
}

#include "kernels/cpu/super_block_dot.h"

template <class Block, std::size_t Tokens>
HWY_INLINE void dot_blocks(const std::byte* w, std::size_t groups, const Inputs<Tokens>& x, float* y) {
  using Stored = typename Block::Stored;
  if constexpr (std::is_same_v<Stored, gguf_blocks::Q6_K>)
    dot_q6_k<Tokens>(w, groups / 8, x, y);
  else if constexpr (Block::kCodes == 256)
    dot_nibble_blocks<Stored, Tokens>(w, groups / 8, x, y);
  else
    dot_small_blocks<Block, Tokens>(w, groups, x, y);
}

template <class Block, std::size_t... T>
HWY_NOINLINE void dot_rows_of(const StoredRows& w, const Int8Input* x, float* const* y,
                              std::index_sequence<T...> /*tokens*/) {
  const Inputs<sizeof...(T)> inputs = {Int8InputView(x[T])...};
  const std::size_t groups = x->scales.size();
  float of_tokens[sizeof...(T)];
  for (std::size_t r = 0; r < w.count; ++r) {
    dot_blocks<Block>(w.at + r * w.row_bytes, groups, inputs, of_tokens);
    ((y[T][r] = of_tokens[T]), ...);
  }
}

// As many tokens as sums stay in registers: codes are unpacked once for all of them.
constexpr std::size_t kTokensOfTile = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

template <class Block>
void dot_tokens(const StoredRows& w, std::span<const Int8Input> x, float* const* y) {
  std::size_t t = 0;
  for (; t + kTokensOfTile <= x.size(); t += kTokensOfTile)
    dot_rows_of<Block>(w, &x[t], y + t, std::make_index_sequence<kTokensOfTile>());
  if (kTokensOfTile > 2 && x.size() - t >= 2) {
    dot_rows_of<Block>(w, &x[t], y + t, std::make_index_sequence<2>());
    t += 2;
  }
  if (t < x.size()) dot_rows_of<Block>(w, &x[t], y + t, std::make_index_sequence<1>());
}
#else
template <class Block>
void dot_tokens(const StoredRows& w, std::span<const Int8Input> x, float* const* y) {
  for (std::size_t t = 0; t < x.size(); ++t) {
    for (std::size_t r = 0; r < w.count; ++r) y[t][r] = dot_plain_blocks<Block>(w.at + r * w.row_bytes, x[t]);
  }
}
#endif

void dot_rows_int8(const StoredRows& w, std::span<const Int8Input> x, float* const* y) {
  switch (w.type) {
    case ElementType::Q4_0: return dot_tokens<Q4_0Block>(w, x, y);
    case ElementType::Q4_1: return dot_tokens<Q4_1Block>(w, x, y);
    case ElementType::Q5_0: return dot_tokens<Q5_0Block>(w, x, y);
    case ElementType::Q5_1: return dot_tokens<Q5_1Block>(w, x, y);
    case ElementType::Q8_0: return dot_tokens<Q8_0Block>(w, x, y);
    case ElementType::Q4_K: return dot_tokens<Q4_KBlock>(w, x, y);
    case ElementType::Q5_K: return dot_tokens<Q5_KBlock>(w, x, y);
    default: return dot_tokens<Q6_KBlock>(w, x, y);
  }
}

}  // namespace assay::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::cpu {

HWY_EXPORT(dot_rows_int8);

void int8_row_dots(const WeightView& weight, std::size_t first, std::size_t count,
                   std::span<const Int8Input> x, const Matrix& y) {
  std::vector<float*> outputs;
  for (std::size_t t = 0; t < x.size(); ++t) outputs.push_back(y.row<float>(t) + first);
  const StoredRows rows = {weight.type, weight.codes + first * weight.row_bytes, weight.row_bytes, count};
  HWY_DYNAMIC_DISPATCH(dot_rows_int8)(rows, x, outputs.data());
}

}  // namespace assay::cpu
#endif
