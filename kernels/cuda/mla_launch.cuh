// From a plan to the instances of mla_attention and mla_product that it is for.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/mla_attention.cuh"
#include "kernels/cuda/mla_product.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

inline void launch_mla_attention(const AttentionPlan& plan, const AttentionArgs& a, unsigned element_bytes,
                                 Stream stream) {
  const unsigned groups = plan.tiling.rows / 16;
  if (element_bytes == 2) {
    if (groups == 1) return launch(plan.tiles, mla_attention<bf16, 1>, stream, a);
    if (groups == 2) return launch(plan.tiles, mla_attention<bf16, 2>, stream, a);
    return launch(plan.tiles, mla_attention<bf16, 4>, stream, a);
  }
  if (groups == 1) return launch(plan.tiles, mla_attention<float, 1>, stream, a);
  return launch(plan.tiles, mla_attention<float, 2>, stream, a);
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
