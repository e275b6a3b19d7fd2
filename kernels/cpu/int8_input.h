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

// The same in vectors of 64 bytes: inputs 4·j … of a group's first sixteenth in lane s of vector j, those of its last one in
// lane s + 8. Codes may be 128 larger, and without a sign.
struct alignas(64) Input256Wide {
  std::int8_t codes[4][64];
  std::int32_t sums_of_16[16];
  float scales[8], sums_of_32[8];
};

struct Int8Input {
  Int8Input() = default;
  explicit Int8Input(std::span<const float> x);  // a multiple of 32

  // The whole 256s of them in the order of a product.
  void arrange_super_blocks();
  enum class Groups : std::uint8_t { in_order, by_turns };  // 0 1 2 …, or 0 4 1 5 2 6 3 7
  void arrange_wide(Groups order, bool from_zero);

  std::vector<Codes32> groups;
  std::vector<float> scales;             // of 32
  std::vector<float> sums_of_32;         // of the numbers that the integers stand for
  std::vector<std::int16_t> sums_of_16;  // of the integers
  std::vector<Input256> super_blocks;
  std::vector<Input256Wide> wide;
};

}  // namespace assay::cpu
