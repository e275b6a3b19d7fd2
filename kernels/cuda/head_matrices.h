// W_k and W_v of latent attention, one matrix a head, as mla_product.cuh multiplies by them: [heads,
// inputs, outputs], in the element type of the kernels.
#pragma once

#include "kernels/cuda/machine.h"
#include "refimpl/ops/interface.h"

namespace assay::cuda {

// absorbed: queries (nope_dim) become latent ones (kv_rank). expanded: latents become keys.
enum class KeyMatrix : std::uint8_t { absorbed, expanded };
const void* key_matrices(Staging& staging, const Arithmetic& arithmetic, const MlaCall& call, KeyMatrix way);
// Latents become values.
const void* value_matrices(Staging& staging, const Arithmetic& arithmetic, const MlaCall& call);

}  // namespace assay::cuda
