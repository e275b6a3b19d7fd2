// Between kernels: each element once, as those of elementwise.cuh.
#pragma once

#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/glue.h"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) add_kernel(const PairArguments a) {
  for_each_element(a.rows, a.columns, [&](std::uint64_t row, std::uint32_t column) {
    const float sum = a.a[row * a.a_stride + column] + a.b[row * a.b_stride + column];
    a.y[row * a.y_stride + column] = rounded_if(a.bfloat16, sum);
  });
}

template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) scale_kernel(const PairArguments a) {
  for_each_element(a.rows, a.columns, [&](std::uint64_t row, std::uint32_t column) {
    const float product = a.a[row * a.a_stride + column] * a.b[row * a.b_stride + column / a.width];
    a.y[row * a.y_stride + column] = rounded_if(a.bfloat16, product);
  });
}

template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) copy_kernel(const CopyArguments a) {
  for_each_element(a.rows, a.columns, [&](std::uint64_t row, std::uint32_t column) {
    const std::uint64_t from = a.from_rows == nullptr ? row : static_cast<std::uint64_t>(a.from_rows[row]);
    const std::uint64_t to = a.to_rows == nullptr ? row : static_cast<std::uint64_t>(a.to_rows[row]);
    const std::uint64_t source = static_cast<std::uint64_t>(column / a.count) * a.width + column % a.count;
    a.to[to * a.to_stride + column] = a.from[from * a.from_stride + source];
  });
}

inline void launch_add(const LaunchPlan& plan, const PairArguments& a, Stream stream) {
  launch(plan, add_kernel<kElementwiseThreads>, stream, a);
}
inline void launch_scale(const LaunchPlan& plan, const PairArguments& a, Stream stream) {
  launch(plan, scale_kernel<kElementwiseThreads>, stream, a);
}
inline void launch_copy(const LaunchPlan& plan, const CopyArguments& a, Stream stream) {
  launch(plan, copy_kernel<kElementwiseThreads>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
