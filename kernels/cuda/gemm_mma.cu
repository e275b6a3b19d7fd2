#include "kernels/cuda/gemm_device.h"
#include "kernels/cuda/gemm_mma_launch.cuh"

namespace assay::cuda {

void launch_mma_on_device(const GemmPlan& plan, const GemmShape& shape, const GemmArgs& args, Stream stream) {
  launch_mma(plan, shape, args, stream);
}

}  // namespace assay::cuda
