#include "kernels/cuda/glue.cuh"

namespace assay::cuda {

GlueLaunchers device_glue_launchers() {
  return {.add = launch_add, .scale = launch_scale, .copy = launch_copy};
}

}  // namespace assay::cuda
