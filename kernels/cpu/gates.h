// Gates, by themselves and on a norm, in float32: exponentials in vectors, rows on all threads.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay::cpu {

Matrix gated_norm(Ops& ops, const GatedNormCall& call);
Matrix output_gate(Ops& ops, const OutputGateCall& call);

}  // namespace assay::cpu
