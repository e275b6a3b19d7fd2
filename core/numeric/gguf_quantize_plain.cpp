// The original types, whose groups of 32 values have a scale of their own, found without a search: Q4_0,
// Q5_0, Q8_0 from the extreme value, Q4_1 and Q5_1 from least and greatest, MXFP4 from the greatest's power
// of two. Vectors go along a group here: no sum depends on the order.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/gguf_quantize_plain.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "core/numeric/codec_simd.h"
#include "core/numeric/gguf_quantize_lanes.h"
#include "core/numeric/gguf_quantize_pack.h"

HWY_BEFORE_NAMESPACE();
namespace assay::gguf_blocks::HWY_NAMESPACE {

constexpr std::size_t kValues = 32;
using Codes = std::uint8_t[kValues];

struct Range {
  float least, most;
};

HWY_INLINE Range range_of(const float* x) {
  V least = hn::LoadU(F(), x), most = least;
  for (std::size_t i = lanes(); i < kValues; i += lanes()) {
    const V xi = hn::LoadU(F(), x + i);
    least = hn::Min(xi, least);
    most = hn::Max(xi, most);
  }
  return {hn::GetLane(hn::MinOfLanes(F(), least)), hn::GetLane(hn::MaxOfLanes(F(), most))};
}

HWY_INLINE float greatest_magnitude(const float* x) {
  V most = hn::Zero(F());
  for (std::size_t i = 0; i < kValues; i += lanes()) {
    most = hn::Max(hn::Abs(hn::LoadU(F(), x + i)), most);
  }
  return hn::GetLane(hn::MaxOfLanes(F(), most));
}

// 1 / scale; 0 for a scale of 0.
HWY_INLINE float inverse_of(float scale) {
  return scale != 0 ? 1 / scale : 0;
}

// codes = min(most, trunc((x - base) * inverse + offset)), none negative. An infinite inverse, of a scale
// below 2^-128, makes every product infinite or NaN; x86 converts those to a number whose low byte is 0.
HWY_INLINE void code_values(const float* x, float base, float inverse, float offset, int most, Codes& codes) {
  if (std::isinf(inverse)) {
    std::memset(codes, 0, sizeof codes);
    return;
  }
  for (std::size_t i = 0; i < kValues; i += lanes()) {
    const V scaled = hn::Mul(hn::Sub(hn::LoadU(F(), x + i), splat(base)), splat(inverse));
    const VI code = hn::ConvertTo(I(), hn::Add(scaled, splat(offset)));
    store_bytes(hn::Min(code, hn::Set(I(), most)), codes + i);
  }
}

// The first value of this magnitude, one of the 32.
HWY_INLINE float first_of_magnitude(const float* x, float magnitude) {
  for (std::size_t i = 0; i < kValues; i += lanes()) {
    const auto found = hn::Eq(hn::Abs(hn::LoadU(F(), x + i)), splat(magnitude));
    if (const std::intptr_t at = hn::FindFirstTrue(F(), found); at >= 0) return x[i + at];
  }
  return magnitude;
}

// The scale such that the extreme value, sign and all, becomes code 0 of 2 * half.
HWY_INLINE float signed_scale(const float* x, int half) {
  const float magnitude = greatest_magnitude(x);
  const float extreme = magnitude > 0 ? first_of_magnitude(x, magnitude) : 0;
  return extreme / static_cast<float>(-half);
}

// Each returns the block's scale and, where it has one, minimum, for the caller to store as halves.
struct Pair {
  float scale, minimum;
};

HWY_INLINE Pair quantize_one(const float* x, Q4_0& block) {
  const float d = signed_scale(x, 8);
  Codes codes;
  code_values(x, 0, inverse_of(d), 8.5f, 15, codes);
  pack_halves(codes, block.qs);
  return {d, 0};
}

HWY_INLINE Pair quantize_one(const float* x, Q5_0& block) {
  const float d = signed_scale(x, 16);
  Codes codes;
  code_values(x, 0, inverse_of(d), 16.5f, 31, codes);
  const std::uint32_t fifth = pack_halves(codes, block.qs);
  std::memcpy(block.qh.bytes, &fifth, sizeof fifth);
  return {d, 0};
}

// Of +0 and -0, which compare equal, the first one counts; vectors may have found either.
HWY_INLINE Pair scale_and_minimum(const float* x, int most) {
  const Range range = range_of(x);
  const float width = range.most > range.least ? range.most - range.least : 0;
  const float least = range.least == 0 ? *std::find(x, x + kValues, 0.0f) : range.least;
  return {width / static_cast<float>(most), least};
}

HWY_INLINE Pair quantize_one(const float* x, Q4_1& block) {
  const Pair pair = scale_and_minimum(x, 15);
  Codes codes;
  code_values(x, pair.minimum, inverse_of(pair.scale), 0.5f, 15, codes);
  pack_halves(codes, block.qs);
  return pair;
}

HWY_INLINE Pair quantize_one(const float* x, Q5_1& block) {
  const Pair pair = scale_and_minimum(x, 31);
  Codes codes;
  code_values(x, pair.minimum, inverse_of(pair.scale), 0.5f, 31, codes);
  const std::uint32_t fifth = pack_halves(codes, block.qs);
  std::memcpy(block.qh.bytes, &fifth, sizeof fifth);
  return pair;
}

// Rounds to nearest, ties away from zero, as C's roundf.
HWY_INLINE Pair quantize_one(const float* x, Q8_0& block) {
  const float d = greatest_magnitude(x) / 127;
  const float inverse = inverse_of(d);
  const hn::Rebind<std::int8_t, I> bytes;
  for (std::size_t i = 0; i < kValues; i += lanes()) {
    const V scaled = hn::Mul(hn::LoadU(F(), x + i), splat(std::isinf(inverse) ? 0 : inverse));
    const VI whole = hn::ConvertTo(I(), scaled);
    const V rest = hn::Sub(scaled, hn::ConvertTo(F(), whole));  // exact
    const auto away = hn::RebindMask(I(), hn::Ge(hn::Abs(rest), splat(0.5f)));
    const VI one = hn::Or(hn::BroadcastSignBit(hn::BitCast(I(), scaled)), hn::Set(I(), 1));  // 1 or -1
    const VI code = hn::Add(whole, hn::IfThenElseZero(away, one));
    hn::StoreU(hn::DemoteTo(bytes, code), bytes, block.qs + i);
  }
  return {d, 0};
}

// Halves are encoded for many blocks together. `offset`: of the half in a block.
template <class Block>
void store_halves(const float* values, std::size_t count, std::size_t offset, std::byte* out) {
  std::array<std::uint16_t, 64> halves;
  simd::encode(ElementType::F16, std::span(values, count), Overflow::special,
               reinterpret_cast<std::byte*>(halves.data()));
  for (std::size_t i = 0; i < count; ++i) std::memcpy(out + i * sizeof(Block) + offset, &halves[i], 2);
}

template <class Block, bool kHasMinimum>
void quantize_blocks(const float* x, std::size_t blocks, std::byte* out) {
  constexpr std::size_t kTogether = 64;
  float scales[kTogether], minima[kTogether];
  for (std::size_t b = 0; b < blocks; b += kTogether) {
    const std::size_t count = std::min(kTogether, blocks - b);
    for (std::size_t i = 0; i < count; ++i, x += kValues) {
      Block block{};
      const Pair pair = quantize_one(x, block);
      scales[i] = pair.scale;
      minima[i] = pair.minimum;
      std::memcpy(out + i * sizeof block, &block, sizeof block);
    }
    store_halves<Block>(scales, count, 0, out);
    if (kHasMinimum) store_halves<Block>(minima, count, 2, out);
    out += count * sizeof(Block);
  }
}

// The exponent such that the greatest magnitude falls into the top binade, 4 to 6, or above. It is taken from
// the float32 logarithm, which rounds up to a whole number just below large powers of two, as ggml does;
// below 2^-125 it wraps around.
std::uint8_t exponent_for(float magnitude) {
  if (magnitude == 0) return 0;
  return static_cast<std::uint8_t>(static_cast<int>(std::floor(std::log2(magnitude)) - 2 + 127));
}

// The nearest of e2m1's values, the lowest code of several; -0 is not among them.
void quantize_mxfp4(const float* x, std::size_t blocks, std::byte* out) {
  constexpr float kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  for (std::size_t b = 0; b < blocks; ++b, x += kValues, out += sizeof(MXFP4)) {
    MXFP4 block;
    block.e = exponent_for(greatest_magnitude(x));
    const float half_scale = static_cast<float>(power_of_two(block.e - 128));
    Codes codes;
    for (std::size_t i = 0; i < kValues; i += lanes()) {
      const V xi = hn::LoadU(F(), x + i);
      VI code = hn::Zero(I());
      V least = hn::Abs(xi);
      for (int c = 1; c < 16; ++c) {
        const V error = hn::Abs(hn::Sub(splat(kDoubled[c] * half_scale), xi));
        const auto nearer = hn::Lt(error, least);
        least = hn::IfThenElse(nearer, error, least);
        code = hn::IfThenElse(hn::RebindMask(I(), nearer), hn::Set(I(), c), code);
      }
      store_bytes(code, codes + i);
    }
    pack_halves(codes, block.qs);
    std::memcpy(out, &block, sizeof block);
  }
}

void plain_blocks(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  switch (type) {
    case ElementType::Q4_0: return quantize_blocks<Q4_0, false>(x, blocks, out);
    case ElementType::Q4_1: return quantize_blocks<Q4_1, true>(x, blocks, out);
    case ElementType::Q5_0: return quantize_blocks<Q5_0, false>(x, blocks, out);
    case ElementType::Q5_1: return quantize_blocks<Q5_1, true>(x, blocks, out);
    case ElementType::Q8_0: return quantize_blocks<Q8_0, false>(x, blocks, out);
    default: return quantize_mxfp4(x, blocks, out);
  }
}

std::size_t find_beyond(const float* x, std::size_t count, float limit) {
  std::size_t i = 0;
  for (; i + lanes() <= count; i += lanes()) {
    if (!hn::AllTrue(F(), hn::Le(hn::Abs(hn::LoadU(F(), x + i)), splat(limit)))) break;
  }
  while (i < count && std::fabs(x[i]) <= limit) ++i;
  return i;
}

}  // namespace assay::gguf_blocks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::gguf_blocks {

HWY_EXPORT(plain_blocks);
HWY_EXPORT(find_beyond);

void quantize_plain(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(plain_blocks)(type, x, blocks, out);
}

std::size_t first_beyond(const float* x, std::size_t count, float limit) {
  return HWY_DYNAMIC_DISPATCH(find_beyond)(x, count, limit);
}

}  // namespace assay::gguf_blocks
#endif
