#include "kernels/cuda/gemm_device.h"
#include "kernels/cuda/gemm_prepare_launch.cuh"

namespace assay::cuda {

GemmLaunchers device_gemm_launchers() {
  return {.mma = launch_mma_on_device,
          .wgmma = launch_wgmma_on_device,
          .gemv = launch_gemv_on_device,
          .planes = launch_planes,
          .quantize_fp8 = launch_quantize_fp8,
          .quantize_int8 = launch_quantize_int8,
          .align_rows = launch_align_rows,
          .unpack_q8_0 = launch_unpack_q8_0,
          .activation = device_elementwise_launchers().activation,
          .combine = launch_combine};
}

}  // namespace assay::cuda
