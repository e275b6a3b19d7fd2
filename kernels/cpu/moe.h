// Mixtures of experts, grouped: the gates and ups of all experts that have tokens are one loop over threads,
// the downs another. For one token, of which each of six experts computes a little, threads then wait twice
// and not eighteen times; for many, experts with few tokens fill up what those with many leave.
#pragma once

#include "kernels/cpu/linear_work.h"
#include "refimpl/ops/interface.h"

namespace assay::cpu {

// No biases, gates apart from ups or before them, nothing input_major; in float32, or in bfloat16 where no activation is
// quantized.
bool grouped_moe_takes(const ExpertWeights& experts, const Arithmetic& arithmetic);

// In the arithmetic of `ops`, and what that says of the weights. Matrices come from `ops`.
Matrix grouped_moe(Ops& ops, const Matrix& x, const Routing& routing, const ExpertWeights& experts,
                   MoeForm form, SumOrder order = SumOrder::fastest);

}  // namespace assay::cpu
