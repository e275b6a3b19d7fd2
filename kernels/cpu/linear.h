// y = x · Wᵀ + b on the CPU, from weights in any stored form; float32 throughout.
//
//   few tokens    row_dots: each row of W is read once, straight from its bytes, for all of them
//   many tokens   each thread decodes 2 vectors' worth of rows, packs them and multiplies all tokens with
//                 them (gemm_f32.h): decoding and packing are paid once for hundreds of multiplications
//
// Threads take different outputs, so that results do not depend on how many there are.
#pragma once

#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

// From how many tokens on packing pays.
inline constexpr std::size_t kPackFrom = 6;

// x [tokens, inputs], y [tokens, outputs]; `bias` may be none.
void linear(const Matrix& x, const WeightView& weight, const WeightView& bias, const Matrix& y, int jobs);
// The two ways, each for itself, whatever the number of tokens.
void linear_by_rows(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs);
void linear_by_panels(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs);
// W stored [inputs, outputs]: its rows are what a panel wants as they stand.
void linear_input_major(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs);

}  // namespace assay::cpu
