// y = x · Wᵀ + b by the matrix libraries found when assay was built, in float32; W is decoded for each call.
#pragma once

#include <vector>

#include "kernels/registry/registry.h"

namespace assay {

// "library.openblas", "library.onednn"; none where none was found.
std::vector<Kernel<LinearCall>> library_linear_kernels();

}  // namespace assay
