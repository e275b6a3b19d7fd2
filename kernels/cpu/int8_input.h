// One token's inputs as 8-bit integers (kernels/operands/int8_block.h), for products with the codes of
// GGUF blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace assay::cpu {

struct alignas(32) Codes32 {
  std::int8_t codes[32];
};

// 256 inputs beside a super-block, in the order in which its codes are multiplied: groups g and g + 4 by turns,
//   codes[2·g]      inputs  0 …  7 of g, of g + 4, then 16 … 23 of g, of g + 4
//   codes[2·g + 1]  inputs  8 … 15 of g, of g + 4, then 24 … 31 of g, of g + 4
// and what there is of each group in the order 0 4 1 5 2 6 3 7.
struct alignas(32) Input256 {
  std::int8_t codes[8][32];
  float scales[8], sums_of_32[8];
  std::int16_t sums_of_16[16];
};

struct Int8Input {
  Int8Input() = default;
  explicit Int8Input(std::span<const float> x);  // a multiple of 32

  std::vector<Codes32> groups;
  std::vector<float> scales;             // of 32
  std::vector<float> sums_of_32;         // of the numbers that the integers stand for
  std::vector<std::int16_t> sums_of_16;  // of the integers
  std::vector<Input256> super_blocks;    // the same once more, of a multiple of 256
};

}  // namespace assay::cpu
