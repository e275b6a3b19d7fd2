// One token's inputs as integers, for products with the integer codes of GGUF blocks.
//
//   coarse  16 bits, as kernels/operands/int16.h says
//   fine    24 bits under the same scale, as 256·high + low: x ≈ (high + low / 256) · scale, off by at most
//           2^-23 of the largest of its 32, the unit roundoff of float32. Where one channel towers over the
//           others that is much to them, and so is rounding its code's and its minimum's products where
//           these cancel. A group whose largest lies beyond 64 times what is usual in it (the square of the
//           mean root, which a few outliers hardly move) is left out, as zeros, and kept in `uneven`, to be
//           multiplied in float32. Elsewhere a term is off by some 2^-16 of a usual one at most; a float32
//           sum's budget for a group alone, 4·√32·2^-24 of 32 usual terms, is 2^-14.5.
//
// Both also in the order in which 16-bit lanes of a block's bytes yield their nibbles: of each 32 inputs the
// even ones first, then the odd ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::cpu {

struct alignas(64) Group32 {
  std::int16_t codes[32];
};

struct IntInput {
  IntInput() = default;
  IntInput(std::span<const float> x, bool fine);  // a multiple of 32

  bool fine = false;
  std::vector<Group32> high, low;              // in their own order; low: fine alone
  std::vector<Group32> high_split, low_split;  // even ones first
  std::vector<float> scales, scales_of_16;     // of 32; and each twice, for weights with a scale for 16
  std::vector<float> sums_of_16, sums_of_32;   // of the numbers that the integers stand for

  struct Uneven {
    std::size_t group;
    float x[32];
  };
  std::vector<Uneven> uneven;  // fine alone
};

// The numbers that integers of `bits` bits stand for, where what they are multiplied by stays floating-point.
std::vector<float> rounded_input(std::span<const float> x, int bits);

}  // namespace assay::cpu
