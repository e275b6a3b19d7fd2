#include "kernels/cuda/latent_launch.cuh"

namespace assay::cuda {

LatentLaunchers device_latent_launchers() {
  const AttentionLaunchers shared = device_attention_launchers();
  return {.attention = {.pack = shared.pack, .tiles = launch_latent_attention, .merge = shared.merge},
          .into = launch_into_latents,
          .out_of = launch_out_of_latents};
}

LatentLaunchers device_expanded_launchers() {
  return {.attention = device_attention_launchers(),
          .into = launch_into_latents,
          .out_of = launch_out_of_latents};
}

}  // namespace assay::cuda
