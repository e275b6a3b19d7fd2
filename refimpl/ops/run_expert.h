// One expert of a mixture, on tokens that were sent to it.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay {

// x: [tokens, hidden]; so is what comes of it, unweighted.
Matrix run_expert(Ops& ops, const Matrix& x, const ExpertWeights& experts, std::size_t expert);

}  // namespace assay
