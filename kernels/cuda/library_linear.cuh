// What cuBLAS does not do: converting operands to what it multiplies, and scales, bias and rounding behind
// it.
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/library_linear.h"
#include "kernels/cuda/quantize.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

ASSAY_DEVICE float number_at(const void* data, Number type, std::uint64_t i) {
  switch (type) {
    case Number::f32: return static_cast<const float*>(data)[i];
    case Number::bf16: return to_float(static_cast<const bf16*>(data)[i]);
    case Number::f16: return to_float(static_cast<const f16*>(data)[i]);
    case Number::e4m3: return decoded(static_cast<const std::uint8_t*>(data)[i], Code::e4m3);
    case Number::e5m2: return decoded(static_cast<const std::uint8_t*>(data)[i], Code::e5m2);
    case Number::i8: break;
  }
  return decoded(static_cast<const std::uint8_t*>(data)[i], Code::i8);
}

template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) convert_kernel(const ConvertArguments a) {
  for_each_element(a.padded_rows, a.padded_columns, [&](std::uint64_t row, std::uint32_t column) {
    float value = 0;
    if (row < a.rows && column < a.columns) {
      value = number_at(a.from, a.from_type, row * a.from_stride + column);
      if (a.scales != nullptr)
        value *= a.scales[(a.first_row + row) / a.block_rows * a.scale_columns + column / a.block_columns];
    }
    const std::uint64_t at = row * a.to_stride + column;
    if (a.to_type == Number::f32)
      static_cast<float*>(a.to)[at] = value;
    else if (a.to_type == Number::bf16)
      static_cast<bf16*>(a.to)[at] = from_float<bf16>(value);
    else
      static_cast<std::int8_t*>(a.to)[at] = static_cast<std::int8_t>(value);
  });
}

template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) epilogue_kernel(const EpilogueArguments a) {
  for_each_element(a.rows, a.columns, [&](std::uint64_t row, std::uint32_t column) {
    const std::uint64_t at = row * a.sums_stride + column;
    float y = a.integers != nullptr ? static_cast<float>(a.integers[at]) : a.sums[at];
    if (a.x_scales != nullptr) y *= a.x_scales[row];
    if (a.w_scales != nullptr) y *= a.w_scales[column];
    if (a.bias.data != nullptr) {
      if (a.rounds_before_bias) y = rounded_if(a.bfloat16, y);
      y += rounded_if(a.bfloat16, element(a.bias, column));
    }
    a.y[row * a.y_stride + column] = rounded_if(a.bfloat16, y);
  });
}

inline void launch_convert(const LaunchPlan& plan, const ConvertArguments& a, Stream stream) {
  launch(plan, convert_kernel<kElementwiseThreads>, stream, a);
}
inline void launch_epilogue(const LaunchPlan& plan, const EpilogueArguments& a, Stream stream) {
  launch(plan, epilogue_kernel<kElementwiseThreads>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
