#include "kernels/cuda/quantize.cuh"

namespace assay::cuda {

QuantizeLaunchers device_quantize_launchers() {
  return {.quantize = launch_quantize};
}

}  // namespace assay::cuda
