// From a plan to the instances of mla_attention, mla_wgmma and mla_product that it is for.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/mla_attention.cuh"
#include "kernels/cuda/mla_product.cuh"
#include "kernels/cuda/mla_wgmma.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <class T, int kRowGroups>
void launch_latents(const AttentionPlan& plan, const AttentionArgs& a, Stream stream) {
  if (plan.tiling.keys == 32) return launch(plan.tiles, mla_attention<T, kRowGroups, 32>, stream, a);
  launch(plan.tiles, mla_attention<T, kRowGroups, 16>, stream, a);
}
inline void launch_mla_attention(const AttentionPlan& plan, const AttentionArgs& a, unsigned element_bytes,
                                 Stream stream) {
  if (plan.wgmma) return launch(plan.tiles, mla_wgmma, stream, a);
  const unsigned groups = plan.tiling.rows / 16;
  if (plan.tiles.cluster == 2) return launch(plan.tiles, mla_attention_pair<bf16, 4>, stream, a);
  if (element_bytes == 2) {
    if (groups == 1) return launch_latents<bf16, 1>(plan, a, stream);
    if (groups == 2) return launch_latents<bf16, 2>(plan, a, stream);
    return launch_latents<bf16, 4>(plan, a, stream);
  }
  if (groups == 1) return launch_latents<float, 1>(plan, a, stream);
  launch(plan.tiles, mla_attention<float, 2, 16>, stream, a);
}

inline void launch_into_latents(const LaunchPlan& plan, const MlaProductArgs& a, unsigned element_bytes,
                                Stream stream) {
  if (element_bytes == 2) return launch(plan, mla_product<bf16, bf16>, stream, a);
  launch(plan, mla_product<float, float>, stream, a);
}
inline void launch_out_of_latents(const LaunchPlan& plan, const MlaProductArgs& a, unsigned element_bytes,
                                  Stream stream) {
  if (element_bytes == 2) return launch(plan, mla_product<bf16, float>, stream, a);
  launch(plan, mla_product<float, float>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
