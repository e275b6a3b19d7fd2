// One token's inputs as 8-bit integers (refimpl/ops/int8_block_activations.h), for products with the codes of
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

struct Int8Input {
  explicit Int8Input(std::span<const float> x);  // a multiple of 32

  std::vector<Codes32> groups;
  std::vector<float> scales;             // of 32
  std::vector<float> sums_of_32;         // of the numbers that the integers stand for
  std::vector<std::int16_t> sums_of_16;  // of the integers
};

}  // namespace assay::cpu
