// From a plan to the instance of flash_attention or decode_attention that it is for.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_merge.cuh"
#include "kernels/cuda/decode_attention.cuh"
#include "kernels/cuda/flash_attention.cuh"
#include "kernels/cuda/packed_heads.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <class T>
void launch_decoding(const AttentionPlan& plan, const AttentionArgs& a, Stream stream) {
  const bool few = plan.tiling.rows == 8;
  switch (plan.streamed_columns) {
    case 64:
      return launch(plan.tiles, few ? decode_attention<T, 64, 8> : decode_attention<T, 64, 16>, stream, a);
    case 128:
      return launch(plan.tiles, few ? decode_attention<T, 128, 8> : decode_attention<T, 128, 16>, stream, a);
    default: return launch(plan.tiles, decode_attention<T, 256, 8>, stream, a);
  }
}

inline void launch_attention(const AttentionPlan& plan, const AttentionArgs& a, unsigned element_bytes,
                             Stream stream) {
  if (plan.streamed_columns != 0)
    return a.round_out ? launch_decoding<wide_bf16>(plan, a, stream)
                       : launch_decoding<float>(plan, a, stream);
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
