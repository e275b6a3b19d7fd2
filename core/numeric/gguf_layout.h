// The block layouts of ggml-common.h, byte for byte (no padding: every member has alignment one), and the
// arithmetic they share: for the codecs, and for kernels that multiply blocks as they are.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/numeric/codec.h"

namespace assay::gguf_blocks {

template <class Value>
struct Packed {  // a little-endian number at any address
  std::uint8_t bytes[sizeof(Value)];
  Value get() const {
    Value value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
};
struct Half : Packed<std::uint16_t> {
  // The exponent, moved to float32's place, is 112 too small; a multiplication mends that, of subnormals too.
  float get() const {
    const std::uint32_t code = Packed::get(), magnitude = code & 0x7FFF;
    if (magnitude >= kF16.inf_code()) return decode(kF16, code);
    const auto bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
    return std::bit_cast<float>(bits | (code & 0x8000) << 16);
  }
};
using U16 = Packed<std::uint16_t>;
using U32 = Packed<std::uint32_t>;

// clang-format off
struct Q1_0    { Half d; std::uint8_t qs[16]; };
struct Q2_0    { Half d; std::uint8_t qs[16]; };
struct Q4_0    { Half d; std::uint8_t qs[16]; };
struct Q4_1    { Half d, m; std::uint8_t qs[16]; };
struct Q5_0    { Half d; U32 qh; std::uint8_t qs[16]; };
struct Q5_1    { Half d, m; U32 qh; std::uint8_t qs[16]; };
struct Q8_0    { Half d; std::int8_t qs[32]; };
struct Q8_1    { Half d, sum; std::int8_t qs[32]; };
struct Q2_K    { std::uint8_t scales[16], qs[64]; Half d, dmin; };
struct Q3_K    { std::uint8_t hmask[32], qs[64], scales[12]; Half d; };
struct Q4_K    { Half d, dmin; std::uint8_t scales[12], qs[128]; };
struct Q5_K    { Half d, dmin; std::uint8_t scales[12], qh[32], qs[128]; };
struct Q6_K    { std::uint8_t ql[128], qh[64]; std::int8_t scales[16]; Half d; };
struct Q8_K    { Packed<float> d; std::int8_t qs[256]; Packed<std::int16_t> sums[16]; };
struct IQ2_XXS { Half d; struct { std::uint8_t points[4]; U32 signs_scale; } groups[8]; };
struct IQ2_XS  { Half d; U16 points_signs[32]; std::uint8_t scales[8]; };
struct IQ2_S   { Half d; std::uint8_t points[32], signs[32], high[8], scales[8]; };
struct IQ3_XXS { Half d; std::uint8_t points[64]; U32 signs_scale[8]; };
struct IQ3_S   { Half d; std::uint8_t points[64], high[8], signs[32], scales[4]; };
struct IQ1_S   { Half d; std::uint8_t points[32]; U16 high_scale[8]; };
struct IQ1_M   { std::uint8_t points[32], high[16]; U16 scales[4]; };
struct IQ4_NL  { Half d; std::uint8_t qs[16]; };
struct IQ4_XS  { Half d; U16 scales_high; std::uint8_t scales_low[4], qs[128]; };
struct TQ1_0   { std::uint8_t qs[48], qh[4]; Half d; };
struct TQ2_0   { std::uint8_t qs[64]; Half d; };
struct MXFP4   { std::uint8_t e, qs[16]; };
struct NVFP4   { std::uint8_t d[4], qs[32]; };
// clang-format on

// The `which`-th nibble (0: low) of a byte.
inline int nibble(std::uint8_t byte, unsigned which) {
  return byte >> (4 * which) & 0xF;
}

}  // namespace assay::gguf_blocks
