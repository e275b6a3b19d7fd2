// From a plan to the instances of latent_attention and latent_product that it is for.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/latent_attention.cuh"
#include "kernels/cuda/latent_product.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

inline void launch_latent_attention(const AttentionPlan& plan, const AttentionArgs& a, unsigned element_bytes,
                                    Stream stream) {
  const unsigned groups = plan.tiling.rows / 16;
  if (element_bytes == 2) {
    if (groups == 1) return launch(plan.tiles, latent_attention<bf16, 1>, stream, a);
    if (groups == 2) return launch(plan.tiles, latent_attention<bf16, 2>, stream, a);
    return launch(plan.tiles, latent_attention<bf16, 4>, stream, a);
  }
  if (groups == 1) return launch(plan.tiles, latent_attention<float, 1>, stream, a);
  return launch(plan.tiles, latent_attention<float, 2>, stream, a);
}

inline void launch_into_latents(const LaunchPlan& plan, const LatentProductArgs& a, unsigned element_bytes,
                                Stream stream) {
  if (element_bytes == 2) return launch(plan, latent_product<bf16, bf16>, stream, a);
  launch(plan, latent_product<float, float>, stream, a);
}
inline void launch_out_of_latents(const LaunchPlan& plan, const LatentProductArgs& a, unsigned element_bytes,
                                  Stream stream) {
  if (element_bytes == 2) return launch(plan, latent_product<bf16, float>, stream, a);
  launch(plan, latent_product<float, float>, stream, a);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
