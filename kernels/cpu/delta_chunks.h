// The delta rule of one head of one sequence, in chunks (delta_rule.h).
#pragma once

#include "kernels/cpu/delta_inputs.h"
#include "refimpl/ops/recurrent_calls.h"

namespace assay::cpu {

void run_delta_chunks(const DeltaRuleCall& call, const DeltaInputs& in, const SequenceState& sequence,
                      std::size_t head, const Matrix& out);

}  // namespace assay::cpu
