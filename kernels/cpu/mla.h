// Latent attention, absorbed: queries of all heads go to the latent space in one loop over threads, the cache
// is read once for all heads (kernels/cpu/attention.h, one shared head), results of all heads come back in
// one loop. For one token that is three loops where an operation a head would be two a head.
#pragma once

#include "kernels/cpu/linear_work.h"
#include "refimpl/ops/interface.h"

namespace assay::cpu {

// float32; call.form is absorbed. Matrices come from `ops`.
Matrix absorbed_mla(Ops& ops, const MlaCall& call, SumOrder order = SumOrder::fastest);

}  // namespace assay::cpu
