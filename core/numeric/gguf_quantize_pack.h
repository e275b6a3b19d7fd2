// How codes, one to a byte, lie in GGUF's blocks: the last step of every quantizer. Private to
// gguf_quantize_*.cpp, where these become part of what is compiled once for each of Highway's targets.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/numeric/gguf_layout.h"

namespace assay::gguf_blocks {

// Byte j holds the low four bits of codes j and j + 16 of 32; the fifth bit of code j is bit j of what is
// returned.
inline std::uint32_t pack_halves(const std::uint8_t* codes, std::uint8_t* qs) {
  std::uint32_t fifth = 0;
  for (int j = 0; j < 16; ++j) {
    qs[j] = static_cast<std::uint8_t>((codes[j] & 15) | (codes[j + 16] & 15) << 4);
  }
  for (int j = 0; j < 32; ++j) fifth |= static_cast<std::uint32_t>(codes[j] >> 4 & 1) << j;
  return fifth;
}

// Four codes of 2 bits to a byte: of values l, l + 32, l + 64, l + 96 of each half.
inline void pack_pairs_of_bits(const std::uint8_t* codes, std::uint8_t* qs) {
  for (int half = 0; half < 2; ++half, codes += 128, qs += 32) {
    for (int l = 0; l < 32; ++l) {
      qs[l] =
          static_cast<std::uint8_t>(codes[l] | codes[l + 32] << 2 | codes[l + 64] << 4 | codes[l + 96] << 6);
    }
  }
}

// Low halves of groups 2g and 2g + 1, of 32 values each, in the nibbles of 32 bytes.
inline void pack_nibbles(const std::uint8_t* codes, std::uint8_t* qs) {
  for (int pair = 0; pair < 4; ++pair, codes += 64, qs += 32) {
    for (int l = 0; l < 32; ++l) {
      qs[l] = static_cast<std::uint8_t>((codes[l] & 15) | (codes[l + 32] & 15) << 4);
    }
  }
}

inline void pack_codes(const std::uint8_t* codes, Q2_K& block) {
  pack_pairs_of_bits(codes, block.qs);
}

// The third bit of value i is bit i / 32 of byte i % 32.
inline void pack_codes(const std::uint8_t* codes, Q3_K& block) {
  std::memset(block.hmask, 0, sizeof block.hmask);
  std::memset(block.qs, 0, sizeof block.qs);
  for (int i = 0; i < 256; ++i) {
    block.hmask[i % 32] |= static_cast<std::uint8_t>((codes[i] >> 2) << (i / 32));
    block.qs[32 * (i / 128) + i % 32] |= static_cast<std::uint8_t>((codes[i] & 3) << (2 * (i / 32 % 4)));
  }
}

inline void pack_codes(const std::uint8_t* codes, Q4_K& block) {
  pack_nibbles(codes, block.qs);
}

// The fifth bit of group g's value l is bit g of byte l.
inline void pack_codes(const std::uint8_t* codes, Q5_K& block) {
  pack_nibbles(codes, block.qs);
  std::memset(block.qh, 0, sizeof block.qh);
  for (int g = 0; g < 8; ++g) {
    for (int l = 0; l < 32; ++l) {
      block.qh[l] |= static_cast<std::uint8_t>((codes[32 * g + l] >> 4) << g);
    }
  }
}

// Four bits of a code in ql, the upper two in qh.
inline void pack_codes(const std::uint8_t* codes, Q6_K& block) {
  for (int half = 0; half < 2; ++half) {
    const std::uint8_t* const c = codes + 128 * half;
    for (int l = 0; l < 32; ++l) {
      block.ql[64 * half + l] = static_cast<std::uint8_t>((c[l] & 15) | (c[l + 64] & 15) << 4);
      block.ql[64 * half + l + 32] = static_cast<std::uint8_t>((c[l + 32] & 15) | (c[l + 96] & 15) << 4);
      block.qh[32 * half + l] = static_cast<std::uint8_t>(c[l] >> 4 | c[l + 32] >> 4 << 2 |
                                                          c[l + 64] >> 4 << 4 | c[l + 96] >> 4 << 6);
    }
  }
}

// Q3_K's level of group g, of six bits, into bytes that were zeros.
inline void put_level(Q3_K& block, int g, int level) {
  block.scales[g % 8] |= static_cast<std::uint8_t>((level & 15) << (4 * (g / 8)));
  block.scales[8 + g % 4] |= static_cast<std::uint8_t>((level >> 4) << (2 * (g / 4)));
}

// Q4_K's and Q5_K's: eight scales of 6 bits and as many minima in 12 bytes, laid out as gguf_blocks.cpp reads
// them; in the order of g.
template <class Block>
void put_scale_and_minimum(Block& block, int g, int scale, int minimum) {
  if (g < 4) {
    block.scales[g] = static_cast<std::uint8_t>(scale);
    block.scales[g + 4] = static_cast<std::uint8_t>(minimum);
  } else {
    block.scales[g + 4] = static_cast<std::uint8_t>((scale & 15) | (minimum & 15) << 4);
    block.scales[g - 4] |= static_cast<std::uint8_t>(scale >> 4 << 6);
    block.scales[g] |= static_cast<std::uint8_t>(minimum >> 4 << 6);
  }
}

// IQ4_XS's level of group g, of six bits: four in scales_low, into bytes that were zeros, and two that are
// returned, in their place of scales_high.
inline std::uint16_t put_level(IQ4_XS& block, int g, int level) {
  block.scales_low[g / 2] |= static_cast<std::uint8_t>((level & 15) << (4 * (g % 2)));
  return static_cast<std::uint16_t>((level >> 4) << (2 * g));
}

}  // namespace assay::gguf_blocks
