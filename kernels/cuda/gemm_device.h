// The launchers of gemm*.cu, of which device_gemm_launchers() is made.
#pragma once

#include "kernels/cuda/gemm.h"

namespace assay::cuda {

void launch_mma_on_device(const GemmPlan&, const GemmShape&, const GemmArgs&, Stream);
void launch_wgmma_on_device(const GemmPlan&, const GemmShape&, const GemmArgs&, Stream);
void launch_gemv_on_device(const GemvPlan&, Codes, const GemvProducts&, Stream);

}  // namespace assay::cuda
