// The block types that are plain arithmetic: the original ones, K-quants, ternary. Codebook types:
// gguf_codebooks.cpp.
//
// Super-blocks are unpacked into codes of a byte each, by loops over fixed counts that compilers turn into
// vectors; put() makes those into values. Blocks of 32 go without that detour.
#include "core/numeric/gguf_blocks.h"

#include <string>

#include "core/numeric/simd_disabled_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/gguf_blocks.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "core/numeric/gguf_codebooks.h"
#include "core/numeric/gguf_codes_lanes.h"
#include "core/system/error.h"

HWY_BEFORE_NAMESPACE();
namespace assay::gguf_blocks::HWY_NAMESPACE {

// The fifth bit of code j is bit j of qh.
HWY_INLINE hn::Vec<Wide> with_fifth_bit(hn::Vec<Wide> low, U32 qh, std::size_t j) {
  const hn::RebindToUnsigned<Wide> d;
  const auto bits = hn::Shr(hn::Set(d, qh.get()), hn::Iota(d, static_cast<std::uint32_t>(j)));
  return hn::Or(low, hn::BitCast(Wide(), hn::And(hn::ShiftLeft<4>(bits), hn::Set(d, 16))));
}

// Halves of a block: scale * (code - offset) - minimum.
HWY_INLINE void put_nibbles(const std::uint8_t* qs, int offset, float scale, float minimum,
                            float* HWY_RESTRICT y) {
  for_each_nibble(qs, [&](hn::Vec<Wide> code, std::size_t j) HWY_ATTR {
    code = hn::Sub(code, hn::Set(Wide(), offset));
    put_lanes(hn::ConvertTo(Values(), code), scale, minimum, y + j);
  });
}
HWY_INLINE void put_five_bits(const std::uint8_t* qs, U32 qh, int offset, float scale, float minimum,
                              float* HWY_RESTRICT y) {
  for_each_nibble(qs, [&](hn::Vec<Wide> code, std::size_t j) HWY_ATTR {
    code = hn::Sub(with_fifth_bit(code, qh, j), hn::Set(Wide(), offset));
    put_lanes(hn::ConvertTo(Values(), code), scale, minimum, y + j);
  });
}

void one(const Q4_0& b, float* HWY_RESTRICT y) {
  put_nibbles(b.qs, 8, b.d.get(), 0, y);
}
void one(const Q4_1& b, float* HWY_RESTRICT y) {
  put_nibbles(b.qs, 0, b.d.get(), -b.m.get(), y);
}
void one(const Q5_0& b, float* HWY_RESTRICT y) {
  put_five_bits(b.qs, b.qh, 16, b.d.get(), 0, y);
}
void one(const Q5_1& b, float* HWY_RESTRICT y) {
  put_five_bits(b.qs, b.qh, 0, b.d.get(), -b.m.get(), y);
}

void one(const Q8_0& b, float* HWY_RESTRICT y) {
  put<32>(b.qs, b.d.get(), 0, y);
}
void one(const Q8_1& b, float* HWY_RESTRICT y) {
  put<32>(b.qs, b.d.get(), 0, y);
}  // the sum serves dot products only
void one(const Q8_K& b, float* HWY_RESTRICT y) {
  put<256>(b.qs, b.d.get(), 0, y);
}

// One bit a value: +d or -d.
void one(const Q1_0& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  for (int j = 0; j < 128; ++j) y[j] = (b.qs[j / 8] >> (j % 8) & 1) != 0 ? d : -d;
}

// Two bits a value, four neighbours in a byte: -d, 0, d, 2d.
void one(const Q2_0& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  for (int j = 0; j < 64; ++j) y[j] = static_cast<float>((b.qs[j / 4] >> (2 * (j % 4)) & 3) - 1) * d;
}

// K-quants: 256 values in groups of 16 or 32 with a small integer scale (and minimum) each, under one or two
// halves.

// Two bits of code e sit in byte 32 * (e / 128) + e % 32, at position 2 * (e / 32 % 4).
HWY_INLINE void unpack_pairs(const std::uint8_t* qs, Code* codes) {
  for (int part = 0; part < 8; ++part) {
    for (int i = 0; i < 32; ++i) {
      codes[32 * part + i] = static_cast<Code>(qs[32 * (part / 4) + i] >> (2 * (part % 4)) & 3);
    }
  }
}

void one(const Q2_K& b, float* HWY_RESTRICT y) {
  const float d = b.d.get(), dmin = b.dmin.get();
  Code codes[256];
  unpack_pairs(b.qs, codes);
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(nibble(b.scales[g], 0));
    const float minimum = dmin * static_cast<float>(nibble(b.scales[g], 1));
    put<16>(codes + 16 * g, scale, minimum, y + 16 * g);
  }
}

// 6-bit scales: four bits in the nibbles of bytes 0..7, the upper two in bytes 8..11. A clear hmask bit means
// -4.
void one(const Q3_K& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  Code codes[256];
  unpack_pairs(b.qs, codes);
  for (int part = 0; part < 8; ++part) {
    for (int i = 0; i < 32; ++i) {
      const int four = (b.hmask[i] >> part & 1) << 2;
      codes[32 * part + i] = static_cast<Code>(codes[32 * part + i] + four - 4);
    }
  }
  for (int g = 0; g < 16; ++g) {
    const int low = nibble(b.scales[g % 8], g / 8);
    const int high = b.scales[8 + g % 4] >> (2 * (g / 4)) & 3;
    put<16>(codes + 16 * g, d * static_cast<float>((low | high << 4) - 32), 0, y + 16 * g);
  }
}

// Q4_K and Q5_K pack eight 6-bit scales and eight 6-bit minima into 12 bytes: the first four of each in the
// low six bits of bytes 0..3 and 4..7, whose upper two bits complete the nibbles in bytes 8..11 to the last
// four.
struct ScaleMin {
  float scale, minimum;
  HWY_INLINE ScaleMin(const std::uint8_t* packed, int g) {
    if (g < 4) {
      scale = static_cast<float>(packed[g] & 63);
      minimum = static_cast<float>(packed[g + 4] & 63);
    } else {
      scale = static_cast<float>(nibble(packed[g + 4], 0) | packed[g - 4] >> 6 << 4);
      minimum = static_cast<float>(nibble(packed[g + 4], 1) | packed[g] >> 6 << 4);
    }
  }
};

// The low four bits of groups 2k and 2k + 1 are the nibbles of 32 bytes.
HWY_INLINE void unpack_groups(const std::uint8_t* qs, Code* codes) {
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 32; ++i) codes[64 * k + i] = static_cast<Code>(qs[32 * k + i] & 15);
    for (int i = 0; i < 32; ++i) codes[64 * k + 32 + i] = static_cast<Code>(qs[32 * k + i] >> 4);
  }
}

template <class Block>
HWY_INLINE void put_groups(const Block& b, const Code* codes, float* HWY_RESTRICT y) {
  const float d = b.d.get(), dmin = b.dmin.get();
  for (int g = 0; g < 8; ++g) {
    const ScaleMin s(b.scales, g);
    put<32>(codes + 32 * g, d * s.scale, dmin * s.minimum, y + 32 * g);
  }
}

void one(const Q4_K& b, float* HWY_RESTRICT y) {
  Code codes[256];
  unpack_groups(b.qs, codes);
  put_groups(b, codes, y);
}

void one(const Q5_K& b, float* HWY_RESTRICT y) {
  Code codes[256];
  unpack_groups(b.qs, codes);
  for (int g = 0; g < 8; ++g) {
    for (int i = 0; i < 32; ++i) codes[32 * g + i] |= static_cast<Code>((b.qh[i] >> g & 1) << 4);
  }
  put_groups(b, codes, y);
}

void one(const Q6_K& b, float* HWY_RESTRICT y) {
  const float d = b.d.get();
  Code codes[256];
  unpack_pairs(b.qh, codes);
  for (int part = 0; part < 8; ++part) {
    const std::uint8_t* const low = b.ql + 64 * (part / 4) + 32 * (part % 2);
    const int shift = 4 * (part / 2 % 2);
    for (int i = 0; i < 32; ++i) {
      Code& code = codes[32 * part + i];
      code = static_cast<Code>(((low[i] >> shift & 15) | code << 4) - 32);
    }
  }
  for (int g = 0; g < 16; ++g) {
    put<16>(codes + 16 * g, d * static_cast<float>(b.scales[g]), 0, y + 16 * g);
  }
}

// Five ternary digits in a byte, as the fraction byte / 256 in base three: multiplying by 3^n modulo 256
// drops the first n digits, and the next one is then floor(3 * rest / 256).
void one(const TQ1_0& b, float* HWY_RESTRICT y) {
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

void one(const TQ2_0& b, float* HWY_RESTRICT y) {
  Code codes[256];
  unpack_pairs(b.qs, codes);
  for (Code& code : codes) code = static_cast<Code>(code - 1);
  put<256>(codes, b.d.get(), 0, y);
}

// False, and nothing done, for a type that is none of these.
bool dequantize_arithmetic(ElementType type, std::span<const std::byte> blocks, float* out) {
  const std::size_t elements = info(type).block_elements;
  switch (type) {
    case ElementType::Q1_0: return for_each_block<Q1_0, one>(blocks, elements, out);
    case ElementType::Q2_0: return for_each_block<Q2_0, one>(blocks, elements, out);
    case ElementType::Q4_0: return for_each_block<Q4_0, one>(blocks, elements, out);
    case ElementType::Q4_1: return for_each_block<Q4_1, one>(blocks, elements, out);
    case ElementType::Q5_0: return for_each_block<Q5_0, one>(blocks, elements, out);
    case ElementType::Q5_1: return for_each_block<Q5_1, one>(blocks, elements, out);
    case ElementType::Q8_0: return for_each_block<Q8_0, one>(blocks, elements, out);
    case ElementType::Q8_1: return for_each_block<Q8_1, one>(blocks, elements, out);
    case ElementType::Q2_K: return for_each_block<Q2_K, one>(blocks, elements, out);
    case ElementType::Q3_K: return for_each_block<Q3_K, one>(blocks, elements, out);
    case ElementType::Q4_K: return for_each_block<Q4_K, one>(blocks, elements, out);
    case ElementType::Q5_K: return for_each_block<Q5_K, one>(blocks, elements, out);
    case ElementType::Q6_K: return for_each_block<Q6_K, one>(blocks, elements, out);
    case ElementType::Q8_K: return for_each_block<Q8_K, one>(blocks, elements, out);
    case ElementType::TQ1_0: return for_each_block<TQ1_0, one>(blocks, elements, out);
    case ElementType::TQ2_0: return for_each_block<TQ2_0, one>(blocks, elements, out);
    default: return false;
  }
}

}  // namespace assay::gguf_blocks::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace assay {
namespace gguf_blocks {
HWY_EXPORT(dequantize_arithmetic);
}

void dequantize(ElementType type, std::span<const std::byte> blocks, float* out) {
  using namespace gguf_blocks;
  if (HWY_DYNAMIC_DISPATCH(dequantize_arithmetic)(type, blocks, out)) return;
  if (!dequantize_codebook(type, blocks, out)) {
    throw Error::internal(std::string(name(type)) + " is not a GGUF block type");
  }
}

}  // namespace assay
#endif
