// quantize: s = max|x| / limit of a block, q = round(x / s). A team of threads has a block: a warp the usual
// 1 × 128, a block of threads a whole row or a square.
//
// Divisions are IEEE's and scales those of core/numeric/block_quantizer.h, so that codes and scales are the
// reference's bit for bit. An FP8 block's largest magnitude counts as 1e-4 at least (DeepSeek's act_quant).
#pragma once

#include "kernels/cuda/memory.cuh"
#include "kernels/cuda/quantize_number.cuh"
#include "kernels/cuda/reduce.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <int kThreads, int kTeams>
ASSAY_KERNEL ASSAY_LAUNCH_BOUNDS(kThreads* kTeams, 1) quantize_kernel(const QuantizeArguments a) {
  const unsigned team = thread_id() / kThreads, member = thread_id() % kThreads;
  const std::uint64_t block = static_cast<std::uint64_t>(block_index().x) * kTeams + team;
  if (block >= a.blocks) return;  // a warp of its own, or the block
  const std::uint64_t top = block / a.scale_columns * a.block_rows;
  const std::uint64_t left = block % a.scale_columns * a.block_columns;
  const std::uint64_t down = a.rows - top < a.block_rows ? a.rows - top : a.block_rows;
  const std::uint64_t across = a.columns - left < a.block_columns ? a.columns - left : a.block_columns;
  const std::uint64_t elements = down * across;

  float amax = 0;
  for (std::uint64_t i = member; i < elements; i += kThreads) {
    const float x = fabsf(a.x[(top + i / across) * a.x_stride + left + i % across]);
    amax = Maximum()(x, amax);
  }
  if constexpr (kThreads == 32)
    amax = warp_max(amax);
  else
    amax = block_max<kThreads>(amax, shared_memory<float>());

  const bool finite = amax < INFINITY;  // false for NaN
  const float scale = finite ? scale_of(amax, a.code, a.power_of_two) : 1.0f;
  if (member == 0) {
    a.scales[a.scale_pitch == 0 ? block : block % a.scale_columns * a.scale_pitch + block / a.scale_columns] =
        scale;
    if (!finite) *a.unquantizable = 1;
  }
  if (!finite) return;  // all of the team
  for (std::uint64_t i = member; i < elements; i += kThreads) {
    const std::uint64_t row = top + i / across, column = left + i % across;
    a.codes[row * a.columns + column] = code_of(a.x[row * a.x_stride + column] / scale, a.code);
  }
}

inline void launch_quantize(const LaunchPlan& plan, const QuantizeArguments& a, Stream stream) {
  if (plan.team == RowTeam::warp)
    launch(plan, quantize_kernel<32, 4>, stream, a);
  else
    launch(plan, quantize_kernel<256, 1>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
