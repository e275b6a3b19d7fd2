// Mixtures whose experts no kernel knows: each on the tokens that chose it, one after the other.
#pragma once

#include "refimpl/ops/apart.h"

namespace assay {

// Σ over a token's experts of weight · expert(token), which are all here: [tokens, columns].
Matrix summed_one_by_one(const Matrix& x, const Routing& routing, std::size_t experts, std::size_t columns,
                         const ExpertFunction& expert, Ops& ops);

// The same, as wide as x, of experts that may lie elsewhere.
Matrix experts_one_by_one(const Matrix& x, const Routing& routing, std::size_t experts,
                          const ExpertFunction& expert, Ops& ops);

}  // namespace assay
