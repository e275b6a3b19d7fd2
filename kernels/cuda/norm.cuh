// rms_norm, one group of columns a team of threads: a warp for heads, a block for whole rows.
//
// A thread sums the squares of every kThreads-th four of elements, then the team adds up in a fixed tree:
// the order depends on the group's width alone, so that bits do not depend on neighbours, strides or grid.
// Where the group fits, it stays in shared memory between the two passes and is read once; else the second
// pass reads it again, from the L2 cache as a rule.
#pragma once

#include "kernels/cuda/memory.cuh"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

ASSAY_DEVICE float scaled_by_weight(float x, float factor, float w, const RmsNormArguments& a) {
  float y = x * factor;
  if (a.use == WeightUse::last && a.bfloat16) y = round_to_bf16(y);
  y *= a.use == WeightUse::one_plus ? 1.0f + w : w;
  return a.bfloat16 ? round_to_bf16(y) : y;
}

// kThreads threads a group, kTeams groups a block; kKept: in shared memory between the passes.
template <int kThreads, int kTeams, bool kKept>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads* kTeams, 1) rms_norm_kernel(const RmsNormArguments a) {
  const unsigned team = thread_id() / kThreads, member = thread_id() % kThreads;
  const std::uint64_t index = static_cast<std::uint64_t>(block_index().x) * kTeams + team;
  // A team of a warp may end early, as no barrier of the block follows.
  if (index >= a.count) return;
  const float* x = a.x + index / a.groups * a.x_stride + index % a.groups * a.group;
  float* y = a.y + index / a.groups * a.y_stride + index % a.groups * a.group;
  const std::uint32_t quads = (a.group + 3) / 4;
  const bool aligned = aligned16(x), y_aligned = aligned16(y);
  float* sums = shared_memory<float>();
  Quad* kept = shared_memory<Quad>(kKept ? 128 : 0) + (kKept ? team * quads : 0);

  float sum = 0;
  for (std::uint32_t q = member; q < quads; q += kThreads) {
    const Quad four = load_quad(x, aligned, q, a.group);
    ASSAY_UNROLL
    for (int j = 0; j < 4; ++j) sum += four.v[j] * four.v[j];
    if constexpr (kKept) kept[q] = four;  // read again by this very thread: no barrier
  }
  if constexpr (kThreads == 32)
    sum = warp_sum(sum);
  else
    sum = block_sum<kThreads>(sum, sums);
  const float factor = reciprocal_root(sum / static_cast<float>(a.group) + a.epsilon);

  for (std::uint32_t q = member; q < quads; q += kThreads) {
    const Quad four = kKept ? kept[q] : load_quad(x, aligned, q, a.group);
    Quad result;
    ASSAY_UNROLL
    for (std::uint32_t j = 0; j < 4; ++j) {
      const float w = 4 * q + j < a.group ? element(a.weight, 4 * q + j) : 0.0f;
      result.v[j] = scaled_by_weight(four.v[j], factor, w, a);
    }
    store_quad(y, y_aligned, q, a.group, result);
  }
}

inline void launch_rms_norm(const LaunchPlan& plan, const RmsNormArguments& a, Stream stream) {
  if (plan.variant == "a warp a group")
    launch(plan, rms_norm_kernel<32, 4, false>, stream, a);
  else if (plan.variant == "a block a group, kept")
    launch(plan, rms_norm_kernel<256, 1, true>, stream, a);
  else
    launch(plan, rms_norm_kernel<256, 1, false>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
