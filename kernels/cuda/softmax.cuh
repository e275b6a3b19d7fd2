// softmax: y = exp(x - max) / Σ exp(x - max), a row a team of threads: a warp for short rows, a block for
// long ones. The row is read once where it fits in shared memory. A row of nothing but -inf becomes zeros.
#pragma once

#include "kernels/cuda/memory.cuh"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/softmax.h"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// kThreads threads a row, kTeams rows a block; kKept: in shared memory between the passes.
template <int kThreads, int kTeams, bool kKept>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads* kTeams, 1) softmax_kernel(const SoftmaxArguments a) {
  const unsigned team = thread_id() / kThreads, member = thread_id() % kThreads;
  const std::uint64_t row = static_cast<std::uint64_t>(block_index().x) * kTeams + team;
  if (row >= a.rows) return;  // a warp of its own, or the block
  const float* x = a.x + row * a.x_stride;
  float* y = a.y + row * a.y_stride;
  float* sums = shared_memory<float>();
  float* kept = shared_memory<float>(kKept ? 128 : 0);
  const auto reduce = [&](float value, auto combine) {
    if constexpr (kThreads == 32)
      return warp_reduce(value, combine);
    else
      return block_reduce<kThreads>(value, sums, combine);
  };

  float largest = -INFINITY;  // of the numbers: a NaN spoils the sum below, and so the row
  for (std::uint32_t i = member; i < a.columns; i += kThreads) {
    const float value = x[i];
    largest = fmaxf(largest, value);
    if constexpr (kKept) kept[i] = value;  // read again by this very thread
  }
  largest = reduce(largest, Maximum());
  const bool nothing = largest == -INFINITY;

  float sum = 0;
  for (std::uint32_t i = member; i < a.columns; i += kThreads) {
    const float e = expf((kKept ? kept[i] : x[i]) - largest);
    if constexpr (kKept) kept[i] = e;
    sum += e;
  }
  sum = reduce(sum, Sum());

  for (std::uint32_t i = member; i < a.columns; i += kThreads) {
    const float e = kKept ? kept[i] : expf(x[i] - largest);
    const float p = nothing ? 0.0f : e / sum;
    y[i] = a.bfloat16 ? round_to_bf16(p) : p;
  }
}

inline void launch_softmax(const LaunchPlan& plan, const SoftmaxArguments& a, Stream stream) {
  if (plan.team == RowTeam::warp)
    launch(plan, softmax_kernel<32, 4, false>, stream, a);
  else if (plan.team == RowTeam::block_that_keeps)
    launch(plan, softmax_kernel<256, 1, true>, stream, a);
  else
    launch(plan, softmax_kernel<256, 1, false>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
