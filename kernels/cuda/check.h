// Results of cudart as Error.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace assay::cuda {

// Throws what went wrong, and while doing what.
void check(cudaError_t status, std::string_view doing);

}  // namespace assay::cuda
