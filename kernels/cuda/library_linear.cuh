// What cuBLAS does not do: converting operands to what it multiplies, and scales, bias and rounding behind
// it.
#pragma once

#include "kernels/cuda/convert.cuh"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/library_linear.h"
#include "kernels/cuda/quantize.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

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

inline void launch_epilogue(const LaunchPlan& plan, const EpilogueArguments& a, Stream stream) {
  launch(plan, epilogue_kernel<kElementwiseThreads>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
