#include "kernels/cuda/library_linear.cuh"

#include "kernels/cuda/fp8_library.h"

namespace assay::cuda {

LibraryLinearLaunchers device_library_linear_launchers() {
  return {.convert = launch_convert,
          .epilogue = launch_epilogue,
          .quantize = launch_quantize,
          .gemm = cublas_gemm,
          .unavailable = cublas_unavailable};
}

Fp8LibraryLaunchers device_fp8_library_launchers() {
  return {.convert = launch_convert,
          .quantize = launch_quantize,
          .epilogue = launch_epilogue,
          .gemm = cublaslt_fp8_gemm,
          .unavailable = cublaslt_unavailable};
}

}  // namespace assay::cuda
