// IQ4_NL, IQ4_XS: codes index a table of sixteen levels, unevenly spaced.
//
// For each of 16 candidate scales (the one that maps the extreme value to the first level, and fifteen around
// it) every value goes to the nearest level q; the best scale for those is sum(w x q) / sum(w q q), w = x *
// x, and the error falls by sum(w x q)^2 / sum(w q q). ggml: quantize_row_iq4_nl_impl.
#include <algorithm>
#include <cmath>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/gguf_quantize_codebook.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "core/numeric/gguf_quantize_lanes.h"
#include "core/numeric/gguf_quantize_pack.h"

HWY_BEFORE_NAMESPACE();
namespace assay::gguf_blocks::HWY_NAMESPACE {

constexpr int kGroup = 32;
// Halfway between two levels; a value there goes to the upper one.
HWY_INLINE V threshold(int upper) {
  return splat(0.5f * static_cast<float>(kIq4Levels[upper - 1] + kIq4Levels[upper]));
}

HWY_INLINE V nearest_level(V x) {
  V level = splat(static_cast<float>(kIq4Levels[0]));
  for (int c = 1; c < 16; ++c) {
    const V gap = splat(static_cast<float>(kIq4Levels[c] - kIq4Levels[c - 1]));
    level = hn::Add(level, hn::IfThenElseZero(hn::Ge(x, threshold(c)), gap));
  }
  return level;
}

struct CodebookSums {
  V xq, qq;
};

HWY_INLINE CodebookSums sums_for(const float* HWY_RESTRICT x, V inverse) {
  CodebookSums sums{hn::Zero(F()), hn::Zero(F())};
  for (std::size_t i = 0; i < kGroup; ++i) {
    const V xi = hn::Load(F(), x + i * lanes());
    const V level = nearest_level(hn::Mul(inverse, xi));
    const V wq = hn::Mul(hn::Mul(xi, xi), level);
    sums.xq = hn::Add(sums.xq, hn::Mul(wq, xi));
    sums.qq = hn::Add(sums.qq, hn::Mul(wq, level));
  }
  return sums;
}

// One scale per lane; 0 for groups of nothing.
HWY_INLINE V search(const float* HWY_RESTRICT x) {
  constexpr int kTries = 7;
  const V zero = hn::Zero(F());
  V magnitude;
  const V end = extreme<kGroup>(x, magnitude);
  CodebookSums sums =
      sums_for(x, hn::Div(splat(1), hn::Div(hn::Neg(end), splat(static_cast<float>(kIq4Levels[0])))));
  V scale = hn::IfThenElseZero(hn::Gt(sums.qq, zero), hn::Div(sums.xq, sums.qq));
  V best = hn::Mul(scale, sums.xq);
  for (int attempt = -kTries; attempt <= kTries; ++attempt) {
    sums = sums_for(x, hn::Div(splat(static_cast<float>(attempt + kIq4Levels[0])), end));
    const auto better =
        hn::And(hn::Gt(sums.qq, zero), hn::Gt(hn::Mul(sums.xq, sums.xq), hn::Mul(best, sums.qq)));
    scale = hn::IfThenElse(better, hn::Div(sums.xq, sums.qq), scale);
    best = hn::IfThenElse(better, hn::Mul(scale, sums.xq), best);
  }
  return hn::IfThenZeroElse(hn::Lt(magnitude, splat(kNothing)), scale);
}

// Codes of one group, two to a byte, under 1 / scale.
HWY_INLINE void code_group(const float* x, float inverse, std::uint8_t* qs) {
  std::uint8_t codes[kGroup];
  for (std::size_t i = 0; i < kGroup; i += lanes()) {
    const V scaled = hn::Mul(splat(inverse), hn::LoadU(F(), x + i));
    VI code = hn::Zero(I());
    for (int c = 1; c < 16; ++c) {
      const auto reached = hn::RebindMask(I(), hn::Ge(scaled, threshold(c)));
      code = hn::Sub(code, hn::VecFromMask(I(), reached));
    }
    store_bytes(code, codes + i);
  }
  pack_halves(codes, qs);
}

HWY_INLINE float inverse_of(float scale) {
  return scale != 0 ? 1 / scale : 0;
}

// scales: of `groups` groups, at most kMostLanes.
void fit_groups(const float* x, std::size_t groups, float* scales) {
  HWY_ALIGN float values[kGroup * kMostLanes];
  for (std::size_t at = 0; at < groups; at += lanes()) {
    transpose<kGroup>(x + at * kGroup, groups - at, values);
    hn::StoreU(search(values), F(), scales + at);
  }
}

void quantize_iq4_nl(const float* x, std::size_t blocks, std::byte* out) {
  float scales[kMostLanes];
  for (std::size_t b = 0; b < blocks; b += kMostLanes) {
    const std::size_t count = std::min(kMostLanes, blocks - b);
    fit_groups(x, count, scales);
    for (std::size_t i = 0; i < count; ++i, x += kGroup, out += sizeof(IQ4_NL)) {
      IQ4_NL block;
      store_half(block.d, scales[i]);
      code_group(x, inverse_of(scales[i]), block.qs);
      std::memcpy(out, &block, sizeof block);
    }
  }
}

// Eight groups whose scales are whole numbers, -32..31, of a common step; codes are for those, yet for the
// step as computed, not as the half that is stored.
void quantize_iq4_xs(const float* x, std::size_t blocks, std::byte* out) {
  constexpr std::size_t kGroups = kSuperBlock / kGroup, kTogether = kMostLanes / kGroups;
  float all_scales[kMostLanes];
  for (std::size_t b = 0; b < blocks; ++b, out += sizeof(IQ4_XS)) {
    const float* const scales = all_scales + b % kTogether * kGroups;
    if (b % kTogether == 0) fit_groups(x, std::min(kTogether, blocks - b) * kGroups, all_scales);
    const float* const greatest = std::max_element(
        scales, scales + kGroups, [](float a, float c) { return std::fabs(a) < std::fabs(c); });
    const float step = -*greatest / 32, inverse = inverse_of(step);
    IQ4_XS block{};
    store_half(block.d, step);
    std::uint16_t scales_high = 0;
    for (std::size_t g = 0; g < kGroups; ++g, x += kGroup) {
      const int level = std::clamp(nearest_int(inverse * scales[g]), -32, 31);
      code_group(x, inverse_of(step * static_cast<float>(level)), block.qs + 16 * g);
      scales_high |= put_level(block, static_cast<int>(g), level + 32);
    }
    std::memcpy(block.scales_high.bytes, &scales_high, sizeof scales_high);
    std::memcpy(out, &block, sizeof block);
  }
}

void codebook_blocks(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  if (type == ElementType::IQ4_XS) return quantize_iq4_xs(x, blocks, out);
  quantize_iq4_nl(x, blocks, out);
}

}  // namespace assay::gguf_blocks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::gguf_blocks {

HWY_EXPORT(codebook_blocks);

void quantize_codebook(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(codebook_blocks)(type, x, blocks, out);
}

}  // namespace assay::gguf_blocks
#endif
