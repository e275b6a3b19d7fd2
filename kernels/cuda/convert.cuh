// A thread an element: decoded, scaled, rounded once.
#pragma once

#include "kernels/cuda/convert.h"
#include "kernels/cuda/elementwise.cuh"

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
      const std::uint64_t from = a.rows_of != nullptr ? a.rows_of[row] : row;
      value = number_at(a.from, a.from_type, from * a.from_stride + column);
      if (a.scales != nullptr)
        value *= a.scales[(a.first_row + from) / a.block_rows * a.scale_columns + column / a.block_columns];
    }
    const std::uint64_t at = row * a.to_stride + column;
    if (a.to_type == Number::f32)
      static_cast<float*>(a.to)[at] = rounded_if(a.bfloat16, value);
    else if (a.to_type == Number::bf16)
      static_cast<bf16*>(a.to)[at] = from_float<bf16>(value);
    else
      static_cast<std::int8_t*>(a.to)[at] = static_cast<std::int8_t>(value);
  });
}

inline void launch_convert(const LaunchPlan& plan, const ConvertArguments& a, Stream stream) {
  launch(plan, convert_kernel<kElementwiseThreads>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
