#include "kernels/cuda/library_linear.cuh"

namespace assay::cuda {

LibraryLinearLaunchers device_library_linear_launchers() {
  return {.convert = launch_convert,
          .epilogue = launch_epilogue,
          .quantize = launch_quantize,
          .gemm = cublas_gemm,
          .unavailable = cublas_unavailable};
}

}  // namespace assay::cuda
