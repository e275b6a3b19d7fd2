// The types of few levels a value, without any search for a scale: NVFP4 under E4M3 scales, ternary TQ1_0 and
// TQ2_0, Q1_0 of signs, Q2_0. ggml: quantize_row_nvfp4_ref and the like.
#include "core/numeric/gguf_quantize_few.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/numeric/gguf_nvfp4.h"
#include "core/numeric/gguf_quantize_kernels.h"

namespace assay::gguf_blocks {
namespace {

template <std::size_t kCount>
float greatest_magnitude(const float* x) {
  float greatest = 0;
  for (std::size_t i = 0; i < kCount; ++i) greatest = std::max(greatest, std::fabs(x[i]));
  return greatest;
}

// 1 / d, and 0 where that is no number: of zeros, and of what no half can scale.
float inverse(float d) {
  const float inverse = d > 0 ? 1.0F / d : 0.0F;
  return std::isfinite(inverse) ? inverse : 0.0F;
}

// Half away from zero, as lroundf and roundf do it.
int nearest(float x) {
  return static_cast<int>(std::round(x));
}

// To E4M3 without a sign: half up in the fourth bit of the mantissa alone, from subnormals on to 448.
std::uint8_t ue4m3_of(float x) {
  constexpr int kBias = 7, kTop = 15;
  constexpr std::uint8_t kLargest = 0x7E;
  if (!(x > 0)) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(std::min(x, 448.0F));
  const int exponent = static_cast<int>(bits >> 23) - 127 + kBias;
  if (exponent <= 0) return static_cast<std::uint8_t>(std::min(7, static_cast<int>(x * 512.0F + 0.5F)));
  if (exponent >= kTop) return kLargest;
  const std::uint32_t rounded =
      (static_cast<std::uint32_t>(exponent) << 3 | (bits >> 20 & 7)) + (bits >> 19 & 1);
  return rounded >> 3 >= kTop ? kLargest : static_cast<std::uint8_t>(rounded);
}

// The first of the sixteen codes that are nearest to x; `half` is half of the scale.
std::uint8_t nearest_e2m1(float x, float half) {
  std::uint8_t best = 0;
  float least = std::fabs(x);
  for (std::uint8_t code = 1; code < 16; ++code) {
    const float error = std::fabs(kTwiceE2M1[code] * half - x);
    if (error < least) least = error, best = code;
  }
  return best;
}

void quantize(const float* x, NVFP4& block) {
  constexpr int kGroup = 16;
  for (int s = 0; s < 4; ++s, x += kGroup) {
    block.d[s] = ue4m3_of(greatest_magnitude<kGroup>(x) / 6.0F);
    const float half = half_ue4m3(block.d[s]);
    for (int j = 0; j < 8; ++j) {
      block.qs[8 * s + j] =
          static_cast<std::uint8_t>(nearest_e2m1(x[j], half) | nearest_e2m1(x[8 + j], half) << 4);
    }
  }
}

// `count` ternary digits, `step` apart, as the fraction of 256 that gguf_blocks.cpp takes them from; missing
// ones of five are zeros.
std::uint8_t ternary(const float* x, int count, int step, float inverse_d) {
  unsigned value = 0;
  for (int n = 0; n < 5; ++n)
    value = value * 3 + (n < count ? static_cast<unsigned>(nearest(x[n * step] * inverse_d) + 1) : 0);
  constexpr unsigned kAll = 243;
  return static_cast<std::uint8_t>((value * 256 + kAll - 1) / kAll);
}

void quantize(const float* x, TQ1_0& block) {
  const float d = greatest_magnitude<kSuperBlock>(x), inverse_d = inverse(d);
  store_half(block.d, d);
  for (int m = 0; m < 32; ++m) block.qs[m] = ternary(x + m, 5, 32, inverse_d);
  for (int m = 0; m < 16; ++m) block.qs[32 + m] = ternary(x + 160 + m, 5, 16, inverse_d);
  for (int m = 0; m < 4; ++m) block.qh[m] = ternary(x + 240 + m, 4, 4, inverse_d);
}

void quantize(const float* x, TQ2_0& block) {
  const float d = greatest_magnitude<kSuperBlock>(x), inverse_d = inverse(d);
  store_half(block.d, d);
  for (int j = 0; j < 64; ++j) {
    const float* first = x + j / 32 * 128 + j % 32;
    unsigned byte = 0;
    for (int n = 0; n < 4; ++n)
      byte |= static_cast<unsigned>(nearest(first[32 * n] * inverse_d) + 1) << (2 * n);
    block.qs[j] = static_cast<std::uint8_t>(byte);
  }
}

void quantize(const float* x, Q1_0& block) {
  constexpr int kCount = 128;
  float sum = 0;
  for (int j = 0; j < kCount; ++j) sum += std::fabs(x[j]);
  store_half(block.d, sum / kCount);
  for (int byte = 0; byte < kCount / 8; ++byte) {
    unsigned signs = 0;
    for (int bit = 0; bit < 8; ++bit) signs |= (x[8 * byte + bit] >= 0 ? 1u : 0u) << bit;
    block.qs[byte] = static_cast<std::uint8_t>(signs);
  }
}

void quantize(const float* x, Q2_0& block) {
  const float d = greatest_magnitude<64>(x), inverse_d = inverse(d);
  store_half(block.d, d);
  for (int byte = 0; byte < 16; ++byte) {
    unsigned codes = 0;
    for (int i = 0; i < 4; ++i)
      codes |= static_cast<unsigned>(std::clamp(nearest(x[4 * byte + i] * inverse_d) + 1, 0, 3)) << (2 * i);
    block.qs[byte] = static_cast<std::uint8_t>(codes);
  }
}

template <class Block>
void quantize_blocks(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  for (std::size_t b = 0; b < blocks; ++b, x += info(type).block_elements, out += sizeof(Block)) {
    Block block;
    quantize(x, block);
    std::memcpy(out, &block, sizeof block);
  }
}

}  // namespace

void quantize_few(ElementType type, const float* x, std::size_t blocks, std::byte* out) {
  switch (type) {
    case ElementType::NVFP4: return quantize_blocks<NVFP4>(type, x, blocks, out);
    case ElementType::TQ1_0: return quantize_blocks<TQ1_0>(type, x, blocks, out);
    case ElementType::TQ2_0: return quantize_blocks<TQ2_0>(type, x, blocks, out);
    case ElementType::Q1_0: return quantize_blocks<Q1_0>(type, x, blocks, out);
    default: return quantize_blocks<Q2_0>(type, x, blocks, out);
  }
}

}  // namespace assay::gguf_blocks
