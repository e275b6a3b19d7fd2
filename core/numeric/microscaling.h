// Small blocks of a row under one scale: the quantizers of MXFP4, MXFP8, NVFP4 and grouped INT4.
//
// An MX scale is a power of two, 2^(code - 127). How it follows from a block's largest magnitude has four
// names (torchao's; the first is the OCP specification's, section 6.3), where e is 2 for E2M1 and 8 for E4M3
// (the largest power of two the elements hold), m their largest number:
//
//   floor   2^(floor(log2 amax) - e)         the largest values of a block may be clamped
//   ceil    2^(ceil(log2 amax) - e)
//   even    2^(floor(log2 amax') - e)        amax' rounded first: up from 1.75 · 2^k (compressed-tensors)
//   rceil   2^ceil(log2(amax / m))           the smallest that clamps nothing (cuBLAS)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace assay {

enum class MxScaling : std::uint8_t { floor, ceil, even, rceil };

// What becomes of a value halfway between two codes.
enum class Fp4Ties : std::uint8_t { even, down };  // down: towards zero

struct MxElements {
  int largest_power;  // e
  float largest;      // m
};
inline constexpr MxElements kMxE2M1{2, 6.0F}, kMxE4M3{8, 448.0F};

// E8M0; amax is finite. A block of zeros takes 0, the smallest scale.
std::uint8_t mx_scale(float amax, MxScaling scaling, const MxElements& elements);

// E2M1 codes, two a byte, the first in the low nibble; values.size() is even. Beyond 6: 6. A negative value
// that rounds to zero keeps its sign, -0 does not: so do compressed-tensors and ModelOpt.
void encode_fp4(std::span<const float> values, Fp4Ties ties, std::span<std::byte> out);

// values[i] / scales[i / block], into `out`; and how many of them are larger than `limit`.
std::uint64_t divide_blocks(std::span<const float> values, std::uint64_t block, std::span<const float> scales,
                            float limit, std::span<float> out);

// round(values[i] / scales[i / block] + zeros[i / block]) - `low`, clamped to [0, high - low] after rounding
// to even: unsigned codes of signed integers low … high.
void quantize_groups(std::span<const float> values, std::uint64_t block, std::span<const float> scales,
                     std::span<const float> zeros, float low, float high, std::span<std::uint8_t> out);

// The way back: (codes[i] + offsets[i / block]) · scales[i / block].
void dequantize_groups(std::span<const std::uint8_t> codes, std::uint64_t block,
                       std::span<const float> scales, std::span<const float> offsets, std::span<float> out);

// The smallest and largest of each block of a row, 0 among them.
void group_ranges(std::span<const float> values, std::uint64_t block, std::span<float> smallest,
                  std::span<float> largest);

}  // namespace assay
