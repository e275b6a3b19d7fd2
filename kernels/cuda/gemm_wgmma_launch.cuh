// Which instance of a template a plan means: for gemm_wgmma.cu, on the device, and for tests, under the
// emulator.
#pragma once

#include "kernels/cuda/gemm.h"
#include "kernels/cuda/gemm_wgmma.cuh"
#include "kernels/cuda/gemm_wgmma_tma.cuh"

namespace assay::cuda {
inline namespace ASSAY_TARGET {

template <class Math, int kSteps>
void launch_warpgroups(const GemmPlan& plan, const GemmArgs& args, Stream stream) {
  const bool small = plan.size == GemmTileSize::small;
  if (plan.fed && small) return launch(plan.launch, gemm_wgmma_tma<Math, 1, kSteps>, stream, args);
  if (plan.fed) return launch(plan.launch, gemm_wgmma_tma<Math, 2, kSteps>, stream, args);
  if (small) return launch(plan.launch, gemm_wgmma<Math, 1, kSteps>, stream, args);
  launch(plan.launch, gemm_wgmma<Math, 2, kSteps>, stream, args);
}
inline void launch_wgmma(const GemmPlan& plan, const GemmShape& shape, const GemmArgs& args, Stream stream) {
  if (shape.math == GemmMath::bf16) return launch_warpgroups<Bf16Wgmma, 4>(plan, args, stream);
  if (shape.promotion == 128) return launch_warpgroups<Fp8Wgmma, 4>(plan, args, stream);
  launch_warpgroups<Fp8Wgmma, 2>(plan, args, stream);
}

}  // namespace ASSAY_TARGET
}  // namespace assay::cuda
