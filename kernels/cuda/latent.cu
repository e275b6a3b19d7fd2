#include "kernels/cuda/latent_launch.cuh"

namespace assay::cuda {

LatentLaunchers device_latent_launchers() {
  return {.attention = {.tiles = launch_latent_attention, .merge = device_attention_launchers().merge},
          .into = launch_into_latents,
          .out_of = launch_out_of_latents};
}

}  // namespace assay::cuda
