// From a plan to the instance of flash_attention that it is for.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_merge.cuh"
#include "kernels/cuda/flash_attention.cuh"
#include "kernels/cuda/packed_heads.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

inline void launch_attention(const AttentionPlan& plan, const AttentionArgs& a, unsigned element_bytes,
                             Stream stream) {
  const unsigned tiles = plan.value_tiles;
  if (element_bytes == 2) {
    if (plan.row_groups == 2) return launch(plan.tiles, flash_attention<bf16, 1, 2>, stream, a);
    if (tiles == 1) return launch(plan.tiles, flash_attention<bf16, 1, 1>, stream, a);
    if (tiles == 2) return launch(plan.tiles, flash_attention<bf16, 2, 1>, stream, a);
    return launch(plan.tiles, flash_attention<bf16, 4, 1>, stream, a);
  }
  if (a.round_out) {  // bfloat16 arithmetic over caches where they lie
    if (tiles == 1) return launch(plan.tiles, flash_attention<wide_bf16, 1, 1>, stream, a);
    return launch(plan.tiles, flash_attention<wide_bf16, 2, 1>, stream, a);
  }
  if (tiles == 1) return launch(plan.tiles, flash_attention<float, 1, 1>, stream, a);
  return launch(plan.tiles, flash_attention<float, 2, 1>, stream, a);
}

inline void launch_pack_heads(const LaunchPlan& plan, const PackArgs& a, unsigned element_bytes,
                              Stream stream) {
  if (element_bytes == 2) return launch(plan, pack_heads<bf16>, stream, a);
  launch(plan, pack_heads<float>, stream, a);
}

inline void launch_attention_merge(const AttentionPlan& plan, const AttentionArgs& a, Stream stream) {
  launch(plan.merge, attention_merge<kMergeThreads>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
