// The weighted sum that ends a mixture of experts.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/moe_args.h"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// A column of blocks takes kThreads columns.
template <int kThreads>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads, 1) combine_rows(CombineArgs args) {
  const auto column = static_cast<std::int32_t>(block_index().y * kThreads + thread_id());
  if (column >= args.columns) return;
  for (std::int64_t token = block_index().x; token < args.tokens; token += grid_size().x) {
    float sum = 0;
    for (std::int64_t j = token * args.visits; j < (token + 1) * args.visits; ++j) {
      const float x = args.x[args.rows_of[j] * args.x_pitch + column];
      if (args.bfloat16)
        sum = round_to_bf16(sum + round_to_bf16(x * args.weights[j]));
      else
        sum = fmaf(x, args.weights[j], sum);
    }
    args.y[token * args.y_pitch + column] = sum;
  }
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
