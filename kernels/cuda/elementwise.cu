#include "kernels/cuda/elementwise.cuh"

namespace assay::cuda {

ElementwiseLaunchers device_elementwise_launchers() {
  return {.rope = launch_rope, .activation = launch_activation, .dequantize = launch_dequantize};
}

}  // namespace assay::cuda
