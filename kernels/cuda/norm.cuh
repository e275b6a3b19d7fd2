// Norms, one group of columns a team of threads: a warp for heads, a block for whole rows.
//
// A thread sums every kThreads-th four of elements, then the team adds up in a fixed tree: the order depends
// on the group's width alone, so that bits do not depend on neighbours, strides or grid. Where the group
// fits, it stays in shared memory between the passes and is read once; else later passes read it again, from
// the L2 cache as a rule. A variance is summed about the mean, not as E[x²] - mean²: that difference cancels.
#pragma once

#include "kernels/cuda/memory.cuh"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

// A norm's weight or bias as the arithmetic holds it; 0 beyond the group's end.
ASSAY_DEVICE float vector_at(const StoredVector& vector, std::uint32_t i, std::uint32_t group,
                             bool bfloat16) {
  const float w = i < group ? element(vector, i) : 0.0f;
  return bfloat16 ? round_to_bf16(w) : w;
}

// One group of a norm: where it is, and who of a team reads what of it.
template <int kThreads, bool kKept>
struct NormGroup {
  const float* x;
  float* y;
  Quad* kept;
  float* sums;
  std::uint32_t group, quads;
  bool aligned, y_aligned;

  template <class Arguments>
  ASSAY_DEVICE NormGroup(const Arguments& a, std::uint64_t index, unsigned team)
      : x(a.x + index / a.groups * a.x_stride + index % a.groups * a.group),
        y(a.y + index / a.groups * a.y_stride + index % a.groups * a.group),
        kept(shared_memory<Quad>(kKept ? 128 : 0) + (kKept ? team * ((a.group + 3) / 4) : 0)),
        sums(shared_memory<float>()),
        group(a.group),
        quads((a.group + 3) / 4),
        aligned(aligned16(x)),
        y_aligned(aligned16(y)) {}

  // value(element, whether it is one) summed over the group, the same in every thread of the team. The first
  // pass keeps what it reads; each thread reads again what it kept itself, so that no barrier is needed.
  template <class Value>
  ASSAY_DEVICE float sum(unsigned member, bool first, Value value) {
    float total = 0;
    for (std::uint32_t q = member; q < quads; q += kThreads) {
      const Quad four = kKept && !first ? kept[q] : load_quad(x, aligned, q, group);
      ASSAY_UNROLL
      for (std::uint32_t j = 0; j < 4; ++j) total += value(four.v[j], 4 * q + j < group);
      if constexpr (kKept) {
        if (first) kept[q] = four;
      }
    }
    if constexpr (kThreads == 32)
      return warp_sum(total);
    else
      return block_sum<kThreads>(total, sums);
  }

  // y = value(x, column)
  template <class Value>
  ASSAY_DEVICE void write(unsigned member, Value value) {
    for (std::uint32_t q = member; q < quads; q += kThreads) {
      const Quad four = kKept ? kept[q] : load_quad(x, aligned, q, group);
      Quad result;
      ASSAY_UNROLL
      for (std::uint32_t j = 0; j < 4; ++j) result.v[j] = value(four.v[j], 4 * q + j);
      store_quad(y, y_aligned, q, group, result);
    }
  }
};

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
  NormGroup<kThreads, kKept> group(a, index, team);
  const float squares = group.sum(member, true, [](float x, bool) { return x * x; });
  const float factor = reciprocal_root(squares / static_cast<float>(a.group) + a.epsilon);
  group.write(member, [&](float x, std::uint32_t column) {
    return scaled_by_weight(x, factor, vector_at(a.weight, column, a.group, a.bfloat16), a);
  });
}

template <int kThreads, int kTeams, bool kKept>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads* kTeams, 1) layer_norm_kernel(const LayerNormArguments a) {
  const unsigned team = thread_id() / kThreads, member = thread_id() % kThreads;
  const std::uint64_t index = static_cast<std::uint64_t>(block_index().x) * kTeams + team;
  if (index >= a.count) return;
  NormGroup<kThreads, kKept> group(a, index, team);
  const float count = static_cast<float>(a.group);
  const float mean = group.sum(member, true, [](float x, bool) { return x; }) / count;
  const float squares =
      group.sum(member, false, [&](float x, bool inside) { return inside ? (x - mean) * (x - mean) : 0.0f; });
  const float factor = reciprocal_root(squares / count + a.epsilon);
  group.write(member, [&](float x, std::uint32_t column) {
    const float y = (x - mean) * factor * vector_at(a.weight, column, a.group, a.bfloat16) +
                    vector_at(a.bias, column, a.group, a.bfloat16);
    return a.bfloat16 ? round_to_bf16(y) : y;
  });
}

inline void launch_rms_norm(const LaunchPlan& plan, const RmsNormArguments& a, Stream stream) {
  if (plan.team == RowTeam::warp)
    launch(plan, rms_norm_kernel<32, 4, false>, stream, a);
  else if (plan.team == RowTeam::block_that_keeps)
    launch(plan, rms_norm_kernel<256, 1, true>, stream, a);
  else
    launch(plan, rms_norm_kernel<256, 1, false>, stream, a);
}
inline void launch_layer_norm(const LaunchPlan& plan, const LayerNormArguments& a, Stream stream) {
  if (plan.team == RowTeam::warp)
    launch(plan, layer_norm_kernel<32, 4, false>, stream, a);
  else if (plan.team == RowTeam::block_that_keeps)
    launch(plan, layer_norm_kernel<256, 1, true>, stream, a);
  else
    launch(plan, layer_norm_kernel<256, 1, false>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
