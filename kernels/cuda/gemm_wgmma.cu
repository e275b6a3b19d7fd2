#include "kernels/cuda/gemm_device.h"
#include "kernels/cuda/gemm_wgmma_launch.cuh"

namespace assay::cuda {

void launch_wgmma_on_device(const GemmPlan& plan, const GemmShape& shape, const GemmArgs& args,
                            Stream stream) {
  launch_wgmma(plan, shape, args, stream);
}

}  // namespace assay::cuda
