#include "kernels/cuda/gemm_device.h"
#include "kernels/cuda/gemv_launch.cuh"

namespace assay::cuda {

void launch_gemv_on_device(const GemvPlan& plan, Codes codes, const GemvProducts& products, Stream stream) {
  launch_gemv(plan, codes, products, stream);
}

}  // namespace assay::cuda
