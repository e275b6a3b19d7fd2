#include "kernels/cuda/softmax.cuh"

namespace assay::cuda {

SoftmaxLaunchers device_softmax_launchers() {
  return {.softmax = launch_softmax};
}

}  // namespace assay::cuda
