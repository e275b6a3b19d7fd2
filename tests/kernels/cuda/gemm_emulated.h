// The launchers of matrix products under the emulator, and cases small enough for it.
#pragma once

#include "kernels/cuda/gemm.h"
#include "kernels/harness/case_id.h"

namespace assay {

// For all architectures: below sm_89 FP8 is multiplied as float16.
cuda::GemmLaunchers emulated_gemm_launchers();

// Whether all of the case is computed in a second or so: by the products of a tile of the emulator.
bool is_small_product(const CaseId& id);

}  // namespace assay
