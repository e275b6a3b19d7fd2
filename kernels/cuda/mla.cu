#include "kernels/cuda/mla_launch.cuh"

namespace assay::cuda {

MlaLaunchers device_mla_launchers() {
  const AttentionLaunchers shared = device_attention_launchers();
  return {.attention = {.pack = shared.pack, .tiles = launch_mla_attention, .merge = shared.merge},
          .into = launch_into_latents,
          .out_of = launch_out_of_latents};
}

MlaLaunchers device_expanded_launchers() {
  return {.attention = device_attention_launchers(),
          .into = launch_into_latents,
          .out_of = launch_out_of_latents};
}

}  // namespace assay::cuda
