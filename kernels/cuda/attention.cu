#include "kernels/cuda/attention_launch.cuh"

namespace assay::cuda {

AttentionLaunchers device_attention_launchers() {
  return {.pack = launch_pack_heads, .tiles = launch_attention, .merge = launch_attention_merge};
}

}  // namespace assay::cuda
