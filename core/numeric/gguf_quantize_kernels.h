// What the quantizers of gguf_quantize_*.cpp share. Private to them: gguf_quantize.h is the interface.
//
// All of them search in vectors whose lanes are groups: of 16 or 32 neighbouring values that share a scale,
// lane k holds group k's. Every sum over a group thus adds its values one after the other, as ggml's loops
// do, and comes to the same bits however wide the vectors are. No multiplication is fused with an addition:
// the build says -ffp-contract=off, and hn::MulAdd is not used.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/numeric/codec.h"
#include "core/numeric/gguf_layout.h"

namespace assay::gguf_blocks {

// ggml's GROUP_MAX_EPS: a group whose greatest magnitude is below counts as zeros.
inline constexpr float kNothing = 1e-15f;
inline constexpr int kSuperBlock = 256;
// What the codes of IQ4_NL and IQ4_XS stand for.
inline constexpr int kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};

// A float32 of this size has a last place of 1: adding it rounds to a whole number, ties to even.
inline constexpr float kRounder = 12582912;  // 1.5 * 2^23
inline constexpr std::int32_t kRounderMask = 0x7FFFFF, kRounderOffset = 0x400000;
inline constexpr float kRounderLimit = 4194303;  // beyond, the bits that nearest_int takes mean nothing

// As ggml's, for any x: where the sum leaves the rounder's binade, what its mantissa happens to be.
inline int nearest_int(float x) {
  return (std::bit_cast<std::int32_t>(x + kRounder) & kRounderMask) - kRounderOffset;
}

// The scale as stored, and what it then decodes to.
inline float store_half(Half& half, float x) {
  const auto code = static_cast<std::uint16_t>(encode(kF16, x, Overflow::special));
  std::memcpy(half.bytes, &code, sizeof code);
  return half.get();
}

// Whole blocks of `type`, which must be among those of the file in question.
void quantize_plain(ElementType type, const float* x, std::size_t blocks, std::byte* out);
void quantize_scale_min(ElementType type, const float* x, std::size_t blocks, std::byte* out);
void quantize_symmetric(ElementType type, const float* x, std::size_t blocks, std::byte* out);
void quantize_codebook(ElementType type, const float* x, std::size_t blocks, std::byte* out);
// A row, whose values matter as `importance` says; `type` is one that searches for scales with weights.
bool can_weigh(ElementType type);
void quantize_weighted(ElementType type, const float* x, const float* importance, std::size_t columns,
                       std::byte* out);
// The first value whose magnitude is not `limit` at most, NaN included; `count` where there is none.
std::size_t first_beyond(const float* x, std::size_t count, float limit);

}  // namespace assay::gguf_blocks
