#include "kernels/cpu/row_dot_int.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

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

// A token's inputs, where they lie.
struct IntInputView {
  HWY_INLINE explicit IntInputView(const IntInput& x)
      : high(x.high.data()),
        low(x.low.data()),
        high_split(x.high_split.data()),
        low_split(x.low_split.data()),
        scales(x.scales.data()),
        scales_of_16(x.scales_of_16.data()),
        sums_of_16(x.sums_of_16.data()),
        sums_of_32(x.sums_of_32.data()) {}
  const Group32 *high, *low, *high_split, *low_split;
  const float *scales, *scales_of_16, *sums_of_16, *sums_of_32;
};
template <std::size_t Tokens>
using Inputs = std::array<IntInputView, Tokens>;

// Σ code·q of one group under one scale, lane by lane; with fine inputs of their lower parts too.
template <bool Fine>
struct GroupSum {
  V32 high, low;
  HWY_INLINE void clear() { high = low = hn::Zero(D32()); }

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

template <class Stored, class Codes, bool Fine, std::size_t Tokens>
HWY_INLINE void add_small_block(const Stored& block, const Inputs<Tokens>& x, std::size_t b,
                                VF (&totals)[Tokens], float (&minima)[Tokens]) {
  constexpr std::size_t kLanes = hn::MaxLanes(D16());
  const float scale = widen(block.d);
  GroupSum<Fine> sums[Tokens];
  for (GroupSum<Fine>& sum : sums) sum.clear();
  const auto add = [&](V16 codes, const Group32* IntInputView::*high, const Group32* IntInputView::*low,
                       std::size_t i) HWY_ATTR {
    for (std::size_t t = 0; t < Tokens; ++t) {
      const std::int16_t* of_high = (x[t].*high)[b].codes + i;
      sums[t].add(codes, of_high, Fine ? (x[t].*low)[b].codes + i : of_high);
    }
  };
  if constexpr (Codes::kNibbles) {
    for (std::size_t i = 0; i < 16; i += kLanes) {
      const hn::Vec<U16> v = Codes::pairs(block, i);
      add(Codes::centred(bits(v, 255)), &IntInputView::high_split, &IntInputView::low_split, i);
      add(Codes::centred(hn::ShiftRight<8>(v)), &IntInputView::high_split, &IntInputView::low_split, 16 + i);
    }
    if constexpr (Codes::kMinimum) {
      const float minimum = widen(block.m) + Codes::kCentre * scale;
      for (std::size_t t = 0; t < Tokens; ++t) minima[t] += minimum * x[t].sums_of_32[b];
    }
  } else {
    const hn::Rebind<std::int8_t, D16> bytes;
    for (std::size_t i = 0; i < 32; i += kLanes)
      add(hn::PromoteTo(D16(), hn::LoadU(bytes, block.qs + i)), &IntInputView::high, &IntInputView::low, i);
  }
  for (std::size_t t = 0; t < Tokens; ++t)
    totals[t] = hn::MulAdd(sums[t].value(), hn::Set(DF(), scale * x[t].scales[b]), totals[t]);
}

template <class Stored, class Codes, bool Fine, std::size_t Tokens>
HWY_INLINE void dot_small_blocks(const std::byte* w, std::size_t groups, const Inputs<Tokens>& x, float* y) {
  const auto* block = reinterpret_cast<const Stored*>(w);
  const std::size_t blocks = groups;
  VF totals[4][Tokens];
  for (auto& of_tokens : totals) {
    for (VF& total : of_tokens) total = hn::Zero(DF());
  }
  float minima[Tokens] = {};
  std::size_t b = 0;
  for (; b + 4 <= blocks; b += 4) {
    for (std::size_t i = 0; i < 4; ++i)
      add_small_block<Stored, Codes, Fine>(block[b + i], x, b + i, totals[i], minima);
  }
  for (; b < blocks; ++b) add_small_block<Stored, Codes, Fine>(block[b], x, b, totals[0], minima);
  for (std::size_t t = 0; t < Tokens; ++t) {
    const VF sum = hn::Add(hn::Add(totals[0][t], totals[1][t]), hn::Add(totals[2][t], totals[3][t]));
    y[t] = hn::GetLane(hn::SumOfLanes(DF(), sum)) + minima[t];
  }
}

// --- super-blocks of 256: each 16-bit lane yields four nibbles, two even codes of two groups and two odd
// ones

// What was stored is loaded again: broadcasting it from memory is free, from a register it is not.
HWY_INLINE void load_from_memory() {
#if defined(__GNUC__)
  asm volatile("" : : : "memory");
#endif
}

// The scales of a super-block's eight groups under those of the inputs, and the minima's part of the sums.
struct GroupScales {
  alignas(32) float of[8];
};
template <class Stored, class V, std::size_t Tokens>
HWY_INLINE void scale_groups(const Stored& block, const Inputs<Tokens>& x, std::size_t first,
                             GroupScales (&scales)[Tokens], V (&minima)[Tokens]) {
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint8_t, decltype(d)> db;
  SixBitScales bytes;
  unpack_six_bits(block.scales, bytes);
  const auto scale = hn::Set(d, widen(block.d)), minimum = hn::Set(d, widen(block.dmin));
  for (std::size_t i = 0; i < 8; i += hn::Lanes(d)) {
    const auto s = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, bytes.each + i)));
    const auto m = hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, bytes.each + 8 + i)));
    for (std::size_t t = 0; t < Tokens; ++t) {
      const float *x_scales = &x[t].scales[first + i], *x_sums = &x[t].sums_of_32[first + i];
      hn::StoreU(hn::Mul(hn::Mul(s, scale), hn::LoadU(d, x_scales)), d, scales[t].of + i);
      minima[t] = hn::MulAdd(hn::Mul(m, minimum), hn::LoadU(d, x_sums), minima[t]);
    }
  }
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

// Groups g and g + 1, whose codes lie in the same bytes, by one token.
template <bool Fine>
struct PairOfGroups {
  GroupSum<Fine> first, second;
  HWY_INLINE void clear() { first.clear(), second.clear(); }
  HWY_INLINE void add(V16 codes, GroupSum<Fine>& sum, const IntInputView& x, std::size_t group,
                      std::size_t i) {
    const std::int16_t* high = x.high_split[group].codes + i;
    sum.add(codes, high, Fine ? x.low_split[group].codes + i : high);
  }
};

template <class Stored, bool Fine, std::size_t Tokens>
HWY_INLINE void add_nibbles(const Stored& block, std::size_t part, const Inputs<Tokens>& x, std::size_t group,
                            PairOfGroups<Fine> (&sums)[Tokens]) {
  for (PairOfGroups<Fine>& sum : sums) sum.clear();
  for (std::size_t i = 0; i < 16; i += hn::MaxLanes(D16())) {
    const hn::Vec<U16> v = pairs_of_bytes(block.qs + 32 * part + 2 * i);
    typename FifthOf<Stored>::Bits fifth;
    fifth.read(FifthOf<Stored>::at(block, 2 * i), part);
    const V16 even_first = as_codes(fifth.even_first(bits(v, 15)));
    const V16 odd_first = as_codes(fifth.odd_first(bits(hn::ShiftRight<8>(v), 15)));
    const V16 even_second = as_codes(fifth.even_second(bits(hn::ShiftRight<4>(v), 15)));
    const V16 odd_second = as_codes(fifth.odd_second(hn::ShiftRight<12>(v)));
    for (std::size_t t = 0; t < Tokens; ++t) {
      sums[t].add(even_first, sums[t].first, x[t], group, i);
      sums[t].add(odd_first, sums[t].first, x[t], group, 16 + i);
      sums[t].add(even_second, sums[t].second, x[t], group + 1, i);
      sums[t].add(odd_second, sums[t].second, x[t], group + 1, 16 + i);
    }
  }
}

template <class Stored, bool Fine, std::size_t Tokens>
HWY_INLINE void dot_nibble_blocks(const std::byte* w, std::size_t groups, const Inputs<Tokens>& x, float* y) {
  const auto* block = reinterpret_cast<const Stored*>(w);
  const std::size_t blocks = groups / 8;
  const hn::CappedTag<float, 8> d_groups;
  VF first_totals[Tokens], second_totals[Tokens];
  hn::Vec<decltype(d_groups)> minima[Tokens];
  for (std::size_t t = 0; t < Tokens; ++t) {
    first_totals[t] = second_totals[t] = hn::Zero(DF());
    minima[t] = hn::Zero(d_groups);
  }
  GroupScales scales[kBlocksAhead][Tokens];
  for (std::size_t b = 0; b < blocks; ++b) {
    if (b % kBlocksAhead == 0) {
      for (std::size_t i = b; i < std::min(blocks, b + kBlocksAhead); ++i)
        scale_groups(block[i], x, 8 * i, scales[i - b], minima);
      load_from_memory();
    }
    for (std::size_t part = 0; part < 4; ++part) {
      PairOfGroups<Fine> sums[Tokens];
      add_nibbles(block[b], part, x, 8 * b + 2 * part, sums);
      for (std::size_t t = 0; t < Tokens; ++t) {
        const float* scale = scales[b % kBlocksAhead][t].of + 2 * part;
        first_totals[t] = hn::MulAdd(sums[t].first.value(), hn::Set(DF(), scale[0]), first_totals[t]);
        second_totals[t] = hn::MulAdd(sums[t].second.value(), hn::Set(DF(), scale[1]), second_totals[t]);
      }
    }
  }
  for (std::size_t t = 0; t < Tokens; ++t)
    y[t] = hn::GetLane(hn::SumOfLanes(DF(), hn::Add(first_totals[t], second_totals[t]))) -
           hn::GetLane(hn::SumOfLanes(d_groups, minima[t]));
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

// The 16 scales of a block under those of the inputs, and what the codes' centre, times 32, takes away.
template <class V, std::size_t Tokens>
HWY_INLINE void scale_sixteen(const gguf_blocks::Q6_K& block, const Inputs<Tokens>& x, std::size_t b,
                              float (*scales)[16], V (&minima)[Tokens]) {
  const hn::CappedTag<float, 8> d;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const hn::Rebind<std::int8_t, decltype(d)> db;
  const auto whole = hn::Set(d, widen(block.d));
  for (std::size_t i = 0; i < 16; i += hn::Lanes(d)) {
    const auto s = hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, block.scales + i))), whole);
    for (std::size_t t = 0; t < Tokens; ++t) {
      minima[t] = hn::MulAdd(s, hn::LoadU(d, &x[t].sums_of_16[16 * b + i]), minima[t]);
      hn::StoreU(hn::Mul(s, hn::LoadU(d, &x[t].scales_of_16[16 * b + i])), d, scales[t] + i);
    }
  }
}

// Codes are taken as 0 … 63; that they mean -32 … 31 goes into a minimum.
template <bool Fine, std::size_t Tokens>
HWY_INLINE void dot_q6_k(const std::byte* w, std::size_t groups, const Inputs<Tokens>& x, float* y) {
  const auto* block = reinterpret_cast<const gguf_blocks::Q6_K*>(w);
  const std::size_t blocks = groups / 8;
  const hn::CappedTag<float, 8> d;
  VF totals[2][Tokens];
  hn::Vec<decltype(d)> minima[Tokens];
  for (std::size_t t = 0; t < Tokens; ++t) {
    totals[0][t] = totals[1][t] = hn::Zero(DF());
    minima[t] = hn::Zero(d);
  }
  alignas(64) float all_scales[kBlocksAhead][Tokens][16];
  for (std::size_t b = 0; b < blocks; ++b) {
    for (std::size_t a = b; b % kBlocksAhead == 0 && a < std::min(blocks, b + kBlocksAhead); ++a)
      scale_sixteen(block[a], x, a, all_scales[a - b], minima);
    load_from_memory();
    const auto& scales = all_scales[b % kBlocksAhead];
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t i = 0; i < 16; i += hn::MaxLanes(D16())) {
        const hn::Vec<U16> l0 = pairs_of_bytes(block[b].ql + 64 * half + 2 * i);
        const hn::Vec<U16> l1 = pairs_of_bytes(block[b].ql + 64 * half + 32 + 2 * i);
        const hn::Vec<U16> h = pairs_of_bytes(block[b].qh + 32 * half + 2 * i);
        // Bytes of codes: those of even lanes, and of odd ones.
        const auto group = [&](std::size_t part, hn::Vec<U16> codes) HWY_ATTR {
          const std::size_t g = 8 * b + 4 * half + part;
          const V16 even = as_codes(bits(codes, 255)), odd = as_codes(hn::ShiftRight<8>(codes));
          for (std::size_t t = 0; t < Tokens; ++t) {
            GroupSum<Fine> sum;
            sum.clear();
            const std::int16_t* high = x[t].high_split[g].codes;
            const std::int16_t* low = Fine ? x[t].low_split[g].codes : high;
            sum.add(even, high + i, low + i);
            sum.add(odd, high + 16 + i, low + 16 + i);
            VF& total = totals[part % 2][t];
            total = hn::MulAdd(sum.value(), scales_at(scales[t], 4 * half + part, i), total);
          }
        };
        constexpr std::uint16_t kNibbles = 0x0F0F, kHigh = 0x3030;
        group(0, hn::Or(bits(l0, kNibbles), bits(hn::ShiftLeft<4>(h), kHigh)));
        group(1, hn::Or(bits(l1, kNibbles), bits(hn::ShiftLeft<2>(h), kHigh)));
        group(2, hn::Or(bits(hn::ShiftRight<4>(l0), kNibbles), bits(h, kHigh)));
        group(3, hn::Or(bits(hn::ShiftRight<4>(l1), kNibbles), bits(hn::ShiftRight<2>(h), kHigh)));
      }
    }
  }
  for (std::size_t t = 0; t < Tokens; ++t) {
    const float sum = hn::GetLane(hn::SumOfLanes(DF(), hn::Add(totals[0][t], totals[1][t])));
    y[t] = sum - 32 * hn::GetLane(hn::SumOfLanes(d, minima[t]));
  }
}

// One row by `Tokens` tokens: where the type decides.
template <bool Fine, std::size_t Tokens>
HWY_INLINE void dot_row(ElementType type, const std::byte* w, std::size_t groups, const Inputs<Tokens>& x,
                        float* y) {
  using namespace gguf_blocks;
  switch (type) {
    case ElementType::Q4_0:
      return dot_small_blocks<Q4_0, NibbleCodes<Q4_0, 8>, Fine, Tokens>(w, groups, x, y);
    case ElementType::Q4_1:
      return dot_small_blocks<Q4_1, NibbleCodes<Q4_1, 8>, Fine, Tokens>(w, groups, x, y);
    case ElementType::Q5_0:
      return dot_small_blocks<Q5_0, NibbleCodes<Q5_0, 16>, Fine, Tokens>(w, groups, x, y);
    case ElementType::Q5_1:
      return dot_small_blocks<Q5_1, NibbleCodes<Q5_1, 16>, Fine, Tokens>(w, groups, x, y);
    case ElementType::Q8_0: return dot_small_blocks<Q8_0, ByteCodes, Fine, Tokens>(w, groups, x, y);
    case ElementType::Q4_K: return dot_nibble_blocks<Q4_K, Fine, Tokens>(w, groups, x, y);
    case ElementType::Q5_K: return dot_nibble_blocks<Q5_K, Fine, Tokens>(w, groups, x, y);
    default: return dot_q6_k<Fine, Tokens>(w, groups, x, y);
  }
}

template <bool Fine, std::size_t... T>
HWY_NOINLINE void dot_rows_of(const StoredRows& w, const IntInput* const* x, float* const* y,
                              std::index_sequence<T...> /*tokens*/) {
  const Inputs<sizeof...(T)> inputs = {IntInputView(*x[T])...};
  const std::size_t groups = x[0]->scales.size();
  float of_tokens[sizeof...(T)];
  for (std::size_t r = 0; r < w.count; ++r) {
    dot_row<Fine, sizeof...(T)>(w.type, w.at + r * w.row_bytes, groups, inputs, of_tokens);
    ((y[T][r] = of_tokens[T]), ...);
  }
}

// As many tokens as sums stay in registers: codes are unpacked once for all of them.
constexpr std::size_t kTokensOfTile = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

template <bool Fine>
void dot_tokens(const StoredRows& w, const IntInput* const* x, std::size_t tokens, float* const* y) {
  std::size_t t = 0;
  for (; t + kTokensOfTile <= tokens; t += kTokensOfTile)
    dot_rows_of<Fine>(w, x + t, y + t, std::make_index_sequence<kTokensOfTile>());
  if (kTokensOfTile > 2 && tokens - t >= 2) {
    dot_rows_of<Fine>(w, x + t, y + t, std::make_index_sequence<2>());
    t += 2;
  }
  if (t < tokens) dot_rows_of<Fine>(w, x + t, y + t, std::make_index_sequence<1>());
}

void dot_rows(const StoredRows& w, const IntInput* const* x, std::size_t tokens, float* const* y) {
  x[0]->fine ? dot_tokens<true>(w, x, tokens, y) : dot_tokens<false>(w, x, tokens, y);
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

void integer_row_dots(const WeightView& weight, std::size_t first, std::size_t count,
                      std::span<const IntInput> x, const Matrix& y) {
  std::vector<const IntInput*> inputs;
  std::vector<float*> outputs;
  for (std::size_t t = 0; t < x.size(); ++t) {
    inputs.push_back(&x[t]);
    outputs.push_back(y.row<float>(t) + first);
  }
  const StoredRows rows = {weight.type, weight.codes + first * weight.row_bytes, weight.row_bytes, count};
  HWY_DYNAMIC_DISPATCH(dot_rows)(rows, inputs.data(), x.size(), outputs.data());
  for (std::size_t t = 0; t < x.size(); ++t) {
    for (std::size_t r = 0; !x[t].uneven.empty() && r < count; ++r)
      outputs[t][r] += uneven_dot(weight.type, rows.at + r * weight.row_bytes, x[t]);
  }
}

}  // namespace assay::cpu
#endif
