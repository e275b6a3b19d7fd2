// y = x · Wᵀ where both are bfloat16 numbers (Arithmetic::bfloat16()), pairs of neighbouring terms in 32
// bits:
//
//   x [tokens, K] as [K / 2][R] pairs a tile of R tokens     W [outputs, K] as [K / 2][width] pairs a panel
//   y[t, o] = Σ_k (x[2k + 1] · W[2k + 1], then x[2k] · W[2k])   products exact, each sum rounded to float32
//
// One instruction of AVX512_BF16 multiplies a pair and adds both products, in that order; elsewhere two fused
// ones do, on half the bytes that a panel of float32 has. Its flushing of subnormal numbers to zero is kept
// out: where a number is so small that a product could be one, the two instructions are used as well. So both
// give the same bits, if the processor adds as its manual says (Intel's, VDPBF16PS).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "refimpl/ops/arithmetic.h"
#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

// The numbers themselves, as they are in the file.
bool is_stored_bf16(const WeightView& weight);
// Multiplied in bfloat16, and by what is here: not W8A8, not stored [inputs, outputs].
bool takes_bf16(const WeightView& weight, const Arithmetic& arithmetic);

// All tokens' inputs, tile by tile: what belongs to the tile that begins with token t and has R rows begins
// at t · pairs (values: twice that).
struct Bf16Tiles {
  Bf16Tiles(const Matrix& x, int jobs);  // x: bfloat16 numbers, in float32
  std::size_t tokens, terms, pairs;      // ⌈K / 2⌉, the last one with a zero
  // One of the two: codes where VDPBF16PS is there and no number is too small for it.
  std::vector<float> values;        // [pairs][2][R], a pair's second number first
  std::vector<std::int32_t> codes;  // [pairs][R]
};

// The instruction is there, and no narrower vectors were asked for.
bool multiplies_pairs();

// Inputs of a few tokens for bf16_rows(), zeros behind a token's terms up to a whole vector.
struct Bf16Tokens {
  explicit Bf16Tokens(const Matrix& x);  // x: bfloat16 numbers, in float32
  std::size_t tokens, terms, stride;     // stride: in pairs
  std::vector<std::int32_t> pairs;       // [tokens][stride]
  std::vector<unsigned char> tiny;       // of each token: a number too small
};
// Rows [first, first + count) of a weight that is_stored_bf16(), straight from its bytes, where multiplies_pairs(). Of
// a token's sum the order is always the same (bf16_rows_avx512.h).
void bf16_rows(const Bf16Tokens& x, const WeightView& weight, std::size_t first, std::size_t count,
               const Matrix& y);

// Outputs [first, first + count) of `weight`, rounded to bfloat16 where it is not stored so, for all tokens;
// y is the whole result, in float32. count ≤ kPanelsAPiece · panel_width().
void bf16_panel(const Bf16Tiles& x, const WeightView& weight, std::size_t first, std::size_t count,
                const Matrix& y);

// y += bias, each rounded to bfloat16; the bias may be none. `keep`: the sum stays float32.
void finish_bf16(const WeightView& bias, bool keep, const Matrix& y, int jobs);

}  // namespace assay::cpu
