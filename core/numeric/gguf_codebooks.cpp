// Block types whose quants index a table: 16 levels (IQ4_*, the FP4 pair) or grids of points (IQ1, IQ2, IQ3).
#include "core/numeric/gguf_codebooks.h"

#include <bit>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/gguf_codebooks.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "core/numeric/gguf_codes_lanes.h"
#include "core/numeric/gguf_grids.h"
#include "core/numeric/gguf_nvfp4.h"

HWY_BEFORE_NAMESPACE();
namespace assay::gguf_blocks::HWY_NAMESPACE {

constexpr float kNonlinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

HWY_INLINE void put_levels(const std::uint8_t* qs, const float* levels, float scale, float* HWY_RESTRICT y) {
  for_each_nibble(qs, [&](hn::Vec<Wide> code, std::size_t j)
                          HWY_ATTR { put_lanes(hn::GatherIndex(Values(), levels, code), scale, 0, y + j); });
}

void one(const IQ4_NL& b, float* HWY_RESTRICT y) {
  put_levels(b.qs, kNonlinear, b.d.get(), y);
}

// 6-bit scales less 32: the low nibbles in scales_low, the upper pairs of bits in scales_high.
void one(const IQ4_XS& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  for (int g = 0; g < 8; ++g) {
    const int scale = nibble(b.scales_low[g / 2], g % 2) | (b.scales_high.get() >> (2 * g) & 3) << 4;
    put_levels(b.qs + 16 * g, kNonlinear, d * static_cast<float>(scale - 32), y + 32 * g);
  }
}

// Half of an E8M0 scale. As in ggml, 255 is an ordinary exponent here, not OCP's NaN.
float half_e8m0(std::uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<std::uint32_t>(e - 1) << 23);
}

void one(const MXFP4& b, float* HWY_RESTRICT y) {
  put_levels(b.qs, kTwiceE2M1, half_e8m0(b.e), y);
}

void one(const NVFP4& b, float* HWY_RESTRICT y) {
  for (int s = 0; s < 4; ++s) {
    const float d = half_ue4m3(b.d[s]);
    const std::uint8_t* qs = b.qs + 8 * s;
    for (int j = 0; j < 8; ++j) *y++ = kTwiceE2M1[nibble(qs[j], 0)] * d;
    for (int j = 0; j < 8; ++j) *y++ = kTwiceE2M1[nibble(qs[j], 1)] * d;
  }
}

// Seven stored signs; the eighth makes the number of minuses even.
unsigned even_signs(unsigned seven) {
  return seven | (std::popcount(seven) & 1u) << 7;
}

// scale times each coordinate, negated where bit j of `signs` is set (in the sign bit: no branch to
// mispredict).
template <class Point>
float* put_point(float* y, float scale, const Point& point, unsigned signs) {
  for (std::size_t j = 0; j < point.size(); ++j) {
    const float magnitude = scale * static_cast<float>(point[j]);
    *y++ = std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) ^ (signs >> j & 1u) << 31);
  }
  return y;
}

// Four 8-bit points, then 4 x 7 signs and a 4-bit scale in one word.
void one(const IQ2_XXS& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  for (const auto& group : b.groups) {
    const std::uint32_t word = group.signs_scale.get();
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int k = 0; k < 4; ++k) {
      y = put_point(y, scale, kIq2XxsGrid[group.points[k]], even_signs(word >> (7 * k) & 127));
    }
  }
}

// Points of 9 bits with 7 signs above them; a 4-bit scale for every two points.
void one(const IQ2_XS& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  for (int k = 0; k < 32; ++k) {
    const float scale = d * (0.5f + static_cast<float>(nibble(b.scales[k / 4], k / 2 % 2))) * 0.25f;
    const unsigned entry = b.points_signs[k].get();
    y = put_point(y, scale, kIq2XsGrid[entry & 511], even_signs(entry >> 9));
  }
}

// Points of 10 bits, the upper two apart in `high`; all eight signs.
void one(const IQ2_S& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  for (int k = 0; k < 32; ++k) {
    const float scale = d * (0.5f + static_cast<float>(nibble(b.scales[k / 4], k / 2 % 2))) * 0.25f;
    const unsigned point = b.points[k] | (b.high[k / 4] >> (2 * (k % 4)) & 3u) << 8;
    y = put_point(y, scale, kIq2SGrid[point], b.signs[k]);
  }
}

void one(const IQ3_XXS& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  for (int g = 0; g < 8; ++g) {
    const std::uint32_t word = b.signs_scale[g].get();
    const float scale = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    for (int k = 0; k < 8; ++k) {
      const unsigned signs = even_signs(word >> (7 * (k / 2)) & 127);
      y = put_point(y, scale, kIq3XxsGrid[b.points[8 * g + k]], signs >> (4 * (k % 2)));
    }
  }
}

void one(const IQ3_S& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  for (int k = 0; k < 64; ++k) {
    const float scale = d * static_cast<float>(1 + 2 * nibble(b.scales[k / 16], k / 8 % 2));
    const unsigned point = b.points[k] | (b.high[k / 8] >> (k % 8) & 1u) << 8;
    y = put_point(y, scale, kIq3SGrid[point], static_cast<unsigned>(b.signs[k / 2] >> (4 * (k % 2))));
  }
}

// IQ1: points of -1, 0, 1, all shifted by an eighth up or down; 11-bit indices; odd scales 1..15.
constexpr float kDelta = 0.125f;

template <class Point>
float* put_shifted(float* y, float scale, const Point& point, bool down) {
  for (const std::int8_t coordinate : point)
    *y++ = scale * (static_cast<float>(coordinate) + (down ? -kDelta : kDelta));
  return y;
}

void one(const IQ1_S& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  for (int k = 0; k < 32; ++k) {
    const unsigned word = b.high_scale[k / 4].get();
    const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
    const unsigned point = b.points[k] | (word >> (3 * (k % 4)) & 7) << 8;
    y = put_shifted(y, scale, kIq1Grid[point], (word & 0x8000) != 0);
  }
}

// The half that scales the block is spread over the top nibbles of the four words of 3-bit scales.
void one(const IQ1_M& b, float* HWY_RESTRICT y) {
  unsigned half = 0;
  for (int w = 0; w < 4; ++w) half |= static_cast<unsigned>(b.scales[w].get() >> 12) << (4 * w);
  const float d = decode(kF16, half);
  for (int k = 0; k < 32; ++k) {
    const int group = k / 2;
    const int scale = 2 * (b.scales[group / 4].get() >> (3 * (group % 4)) & 7) + 1;
    const int high = nibble(b.high[k / 2], k % 2);
    const unsigned point = b.points[k] | (high & 7u) << 8;
    y = put_shifted(y, d * static_cast<float>(scale), kIq1Grid[point], (high & 8) != 0);
  }
}

bool dequantize_levels(ElementType type, std::span<const std::byte> blocks, float* out) {
  const std::size_t elements = info(type).block_elements;
  switch (type) {
    case ElementType::IQ4_NL: return for_each_block<IQ4_NL, one>(blocks, elements, out);
    case ElementType::IQ4_XS: return for_each_block<IQ4_XS, one>(blocks, elements, out);
    case ElementType::MXFP4: return for_each_block<MXFP4, one>(blocks, elements, out);
    case ElementType::NVFP4: return for_each_block<NVFP4, one>(blocks, elements, out);
    case ElementType::IQ2_XXS: return for_each_block<IQ2_XXS, one>(blocks, elements, out);
    case ElementType::IQ2_XS: return for_each_block<IQ2_XS, one>(blocks, elements, out);
    case ElementType::IQ2_S: return for_each_block<IQ2_S, one>(blocks, elements, out);
    case ElementType::IQ3_XXS: return for_each_block<IQ3_XXS, one>(blocks, elements, out);
    case ElementType::IQ3_S: return for_each_block<IQ3_S, one>(blocks, elements, out);
    case ElementType::IQ1_S: return for_each_block<IQ1_S, one>(blocks, elements, out);
    case ElementType::IQ1_M: return for_each_block<IQ1_M, one>(blocks, elements, out);
    default: return false;
  }
}

}  // namespace assay::gguf_blocks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay::gguf_blocks {

HWY_EXPORT(dequantize_levels);

bool dequantize_codebook(ElementType type, std::span<const std::byte> blocks, float* out) {
  return HWY_DYNAMIC_DISPATCH(dequantize_levels)(type, blocks, out);
}

}  // namespace assay::gguf_blocks
#endif
