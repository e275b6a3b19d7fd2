// Rows of W by a few tokens, both bfloat16, straight from their bytes by AVX512_BF16; in a file of its own for its
// compiler flags.
//
// Sixteen sums, of which the i-th takes the pairs i, i + 16, … of neighbouring terms, a pair's second product first;
// then their sum, always in one order. So a token's bits do not depend on how many come with it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::cpu {

inline constexpr std::size_t kBf16Vector = 32;  // numbers

struct Bf16Rows {
  const std::byte* w;  // `count` rows of `terms` numbers
  std::size_t row_bytes, terms, count;
  const std::int32_t* x;  // pairs, [tokens][x_stride], zeros behind a token's terms up to a whole vector
  std::size_t x_stride, tokens;
  // Of each token: a number is so small that a product could be subnormal, which the instruction takes for zero. Such
  // tokens and rows are multiplied by two fused instructions in its place, in the same order.
  const unsigned char* tiny;
  float* y;  // of the first token and row; a token's next row lies beside it
  std::size_t y_stride;
};

// Where has_bf16_products().
void bf16_rows_avx512(const Bf16Rows& rows);

}  // namespace assay::cpu
