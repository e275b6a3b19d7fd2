// y = x · Wᵀ + b on the CPU, from weights in any stored form; float32, bfloat16 where the arithmetic has it,
// and integers where these are as exact or it asks for them.
//
//   few tokens    row_dots, integer_row_dots, int8_row_dots, bf16_rows: each row of W is read once, from its bytes
//   many tokens   each thread unpacks 2 vectors' worth of rows into a panel and multiplies all tokens with it
//                 (gemm_f32.h, gemm_bf16.h, gemm_i16.h): that is paid once for hundreds of multiplications
//
// Threads take different outputs, so that results do not depend on how many there are.
#pragma once

#include <span>

#include "kernels/cpu/linear_work.h"
#include "refimpl/ops/interface.h"
#include "refimpl/ops/matrix.h"
#include "refimpl/ops/weight_view.h"

namespace assay::cpu {

inline constexpr std::size_t kDecodedAtOnce = 1 << 20;  // elements of an input_major matrix

// x [tokens, inputs], y [tokens, outputs]; `bias` may be none. arithmetic: float32, one whose activations
// become integers where the weight is for them, or one that takes_bf16(), whose results are rounded unless
// `rounding` keeps them.
void linear(const Matrix& x, const WeightView& weight, const WeightView& bias, const Arithmetic& arithmetic,
            const Matrix& y, int jobs, ResultRounding rounding = ResultRounding::as_arithmetic,
            SumOrder order = SumOrder::fastest);
// The same for several weights in one loop over threads, each with the bits that it has by itself; x is read, packed or
// rounded, once. None input_major.
struct LinearProduct {
  WeightView weight, bias;
  Matrix y;
  ResultRounding rounding = ResultRounding::as_arithmetic;
};
void linear_together(const Matrix& x, std::span<const LinearProduct> products, const Arithmetic& arithmetic,
                     int jobs, SumOrder order = SumOrder::fastest);
// One way, whatever the number of tokens.
void linear_by(LinearWay way, const Matrix& x, const WeightView& weight, const Matrix& y, int jobs);
// W stored [inputs, outputs]: its rows are what a panel wants as they stand.
void linear_input_major(const Matrix& x, const WeightView& weight, const Matrix& y, int jobs);

}  // namespace assay::cpu
