// The block types that are plain arithmetic: the original ones, K-quants, ternary. Codebook types:
// gguf_codebooks.cpp.
#include "core/numeric/gguf_blocks.h"

#include <string>

#include "core/numeric/gguf_codebooks.h"
#include "core/numeric/gguf_layout.h"
#include "core/system/error.h"

namespace assay {
namespace gguf_blocks {
namespace {

void one(const Q4_0& b, float* __restrict y) {
  const float d = b.d.get();
  unpack_halves(b.qs, y, [&](int q, int) { return static_cast<float>(q - 8) * d; });
}

void one(const Q4_1& b, float* __restrict y) {
  const float d = b.d.get(), m = b.m.get();
  unpack_halves(b.qs, y, [&](int q, int) { return static_cast<float>(q) * d + m; });
}

// The fifth bit of value j is bit j of qh.
int fifth_bit(int q, std::uint32_t qh, int j) {
  return q | static_cast<int>(qh >> j & 1) << 4;
}

void one(const Q5_0& b, float* __restrict y) {
  const float d = b.d.get();
  const std::uint32_t qh = b.qh.get();
  unpack_halves(b.qs, y, [&](int q, int j) { return static_cast<float>(fifth_bit(q, qh, j) - 16) * d; });
}

void one(const Q5_1& b, float* __restrict y) {
  const float d = b.d.get(), m = b.m.get();
  const std::uint32_t qh = b.qh.get();
  unpack_halves(b.qs, y, [&](int q, int j) { return static_cast<float>(fifth_bit(q, qh, j)) * d + m; });
}

template <class Block>
void scaled_bytes(const Block& b, float* __restrict y) {
  const float d = b.d.get();
  for (const std::int8_t q : b.qs) *y++ = static_cast<float>(q) * d;
}
void one(const Q8_0& b, float* __restrict y) {
  scaled_bytes(b, y);
}
void one(const Q8_1& b, float* __restrict y) {
  scaled_bytes(b, y);
}  // the sum serves dot products only
void one(const Q8_K& b, float* __restrict y) {
  scaled_bytes(b, y);
}

// One bit a value: +d or -d.
void one(const Q1_0& b, float* __restrict y) {
  const float d = b.d.get();
  for (int j = 0; j < 128; ++j) y[j] = (b.qs[j / 8] >> (j % 8) & 1) != 0 ? d : -d;
}

// Two bits a value, four neighbours in a byte: -d, 0, d, 2d.
void one(const Q2_0& b, float* __restrict y) {
  const float d = b.d.get();
  for (int j = 0; j < 64; ++j) y[j] = static_cast<float>((b.qs[j / 4] >> (2 * (j % 4)) & 3) - 1) * d;
}

// K-quants: 256 values in groups of 16 or 32 with a small integer scale (and minimum) each, under one or two
// halves.

// Two bits of value e sit in byte 32 * (e / 128) + e % 32, at position 2 * (e / 32 % 4). The 16 values of
// group g:
struct PairsOfBits {
  const std::uint8_t* bytes;
  int shift;
  PairsOfBits(const std::uint8_t* qs, int g)
      : bytes(qs + 32 * (g / 8) + 16 * (g % 2)), shift(2 * (g / 2 % 4)) {}
  int operator[](int i) const { return bytes[i] >> shift & 3; }
};

void one(const Q2_K& b, float* __restrict y) {
  const float d = b.d.get(), dmin = b.dmin.get();
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(nibble(b.scales[g], 0));
    const float minimum = dmin * static_cast<float>(nibble(b.scales[g], 1));
    const PairsOfBits q(b.qs, g);
    for (int i = 0; i < 16; ++i) *y++ = scale * static_cast<float>(q[i]) - minimum;
  }
}

// 6-bit scales: four bits in the nibbles of bytes 0..7, the upper two in bytes 8..11. A clear hmask bit means
// -4.
void one(const Q3_K& b, float* __restrict y) {
  const float d = b.d.get();
  for (int g = 0; g < 16; ++g) {
    const int low = nibble(b.scales[g % 8], g / 8);
    const int high = b.scales[8 + g % 4] >> (2 * (g / 4)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const PairsOfBits q(b.qs, g);
    const std::uint8_t* hmask = b.hmask + 16 * (g % 2);
    const int bit = g / 2;
    for (int i = 0; i < 16; ++i)
      *y++ = scale * static_cast<float>(q[i] - ((hmask[i] >> bit & 1) != 0 ? 0 : 4));
  }
}

// Q4_K and Q5_K pack eight 6-bit scales and eight 6-bit minima into 12 bytes: the first four of each in the
// low six bits of bytes 0..3 and 4..7, whose upper two bits complete the nibbles in bytes 8..11 to the last
// four.
struct ScaleMin {
  float scale, minimum;
  ScaleMin(const std::uint8_t* packed, int g) {
    if (g < 4) {
      scale = static_cast<float>(packed[g] & 63);
      minimum = static_cast<float>(packed[g + 4] & 63);
    } else {
      scale = static_cast<float>(nibble(packed[g + 4], 0) | packed[g - 4] >> 6 << 4);
      minimum = static_cast<float>(nibble(packed[g + 4], 1) | packed[g] >> 6 << 4);
    }
  }
};

void one(const Q4_K& b, float* __restrict y) {
  const float d = b.d.get(), dmin = b.dmin.get();
  for (int g = 0; g < 8; ++g) {
    const ScaleMin s(b.scales, g);
    const float scale = d * s.scale, minimum = dmin * s.minimum;
    const std::uint8_t* qs = b.qs + 32 * (g / 2);
    for (int i = 0; i < 32; ++i) *y++ = scale * static_cast<float>(nibble(qs[i], g % 2)) - minimum;
  }
}

void one(const Q5_K& b, float* __restrict y) {
  const float d = b.d.get(), dmin = b.dmin.get();
  for (int g = 0; g < 8; ++g) {
    const ScaleMin s(b.scales, g);
    const float scale = d * s.scale, minimum = dmin * s.minimum;
    const std::uint8_t* qs = b.qs + 32 * (g / 2);
    for (int i = 0; i < 32; ++i) {
      const int q = nibble(qs[i], g % 2) | (b.qh[i] >> g & 1) << 4;
      *y++ = scale * static_cast<float>(q) - minimum;
    }
  }
}

void one(const Q6_K& b, float* __restrict y) {
  const float d = b.d.get();
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(b.scales[g]);
    const PairsOfBits high(b.qh, g);
    const std::uint8_t* low = b.ql + 64 * (g / 8) + 16 * (g % 4);
    for (int i = 0; i < 16; ++i) {
      const int q = nibble(low[i], g / 4 % 2) | high[i] << 4;
      *y++ = scale * static_cast<float>(q - 32);
    }
  }
}

// Five ternary digits in a byte, as the fraction byte / 256 in base three: multiplying by 3^n modulo 256
// drops the first n digits, and the next one is then floor(3 * rest / 256).
void one(const TQ1_0& b, float* __restrict y) {
  const float d = b.d.get();
  constexpr std::uint8_t kPowers[] = {1, 3, 9, 27, 81};
  const auto digits = [&](const std::uint8_t* bytes, int count, int digits_each) {
    for (int n = 0; n < digits_each; ++n) {
      for (int i = 0; i < count; ++i) {
        const auto rest = static_cast<std::uint8_t>(bytes[i] * kPowers[n]);
        *y++ = static_cast<float>((rest * 3 >> 8) - 1) * d;
      }
    }
  };
  digits(b.qs, 32, 5);
  digits(b.qs + 32, 16, 5);
  digits(b.qh, 4, 4);
}

void one(const TQ2_0& b, float* __restrict y) {
  const float d = b.d.get();
  for (int g = 0; g < 16; ++g) {
    const PairsOfBits q(b.qs, g);
    for (int i = 0; i < 16; ++i) *y++ = static_cast<float>(q[i] - 1) * d;
  }
}

}  // namespace
}  // namespace gguf_blocks

void dequantize(ElementType type, std::span<const std::byte> blocks, float* out) {
  using namespace gguf_blocks;
  const std::size_t elements = info(type).block_elements;
  switch (type) {
    case ElementType::Q1_0: return for_each_block<Q1_0>(blocks, elements, out, one);
    case ElementType::Q2_0: return for_each_block<Q2_0>(blocks, elements, out, one);
    case ElementType::Q4_0: return for_each_block<Q4_0>(blocks, elements, out, one);
    case ElementType::Q4_1: return for_each_block<Q4_1>(blocks, elements, out, one);
    case ElementType::Q5_0: return for_each_block<Q5_0>(blocks, elements, out, one);
    case ElementType::Q5_1: return for_each_block<Q5_1>(blocks, elements, out, one);
    case ElementType::Q8_0: return for_each_block<Q8_0>(blocks, elements, out, one);
    case ElementType::Q8_1: return for_each_block<Q8_1>(blocks, elements, out, one);
    case ElementType::Q2_K: return for_each_block<Q2_K>(blocks, elements, out, one);
    case ElementType::Q3_K: return for_each_block<Q3_K>(blocks, elements, out, one);
    case ElementType::Q4_K: return for_each_block<Q4_K>(blocks, elements, out, one);
    case ElementType::Q5_K: return for_each_block<Q5_K>(blocks, elements, out, one);
    case ElementType::Q6_K: return for_each_block<Q6_K>(blocks, elements, out, one);
    case ElementType::Q8_K: return for_each_block<Q8_K>(blocks, elements, out, one);
    case ElementType::TQ1_0: return for_each_block<TQ1_0>(blocks, elements, out, one);
    case ElementType::TQ2_0: return for_each_block<TQ2_0>(blocks, elements, out, one);
    default: break;
  }
  if (!dequantize_codebook(type, blocks, out)) {
    throw Error::internal(std::string(name(type)) + " is not a GGUF block type");
  }
}

}  // namespace assay
