// A model's vector as an argument of kernels, where it is stored as they can read it.
#pragma once

#include "kernels/cuda/machine.h"
#include "kernels/cuda/stored_vector.h"

namespace assay::cuda {

// Plain F32, BF16 or F16 whose bytes are at hand, all of it on end.
bool is_stored_vector(const WeightView& weight);
StoredVector stored_vector(Staging& staging, const WeightView& weight);  // none for an empty view

}  // namespace assay::cuda
