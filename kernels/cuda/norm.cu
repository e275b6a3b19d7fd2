#include "kernels/cuda/norm.cuh"

namespace assay::cuda {

NormLaunchers device_norm_launchers() {
  return {.rms_norm = launch_rms_norm, .layer_norm = launch_layer_norm};
}

}  // namespace assay::cuda
