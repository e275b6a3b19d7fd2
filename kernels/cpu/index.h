// Which keys are attended to (refimpl/ops/index_calls.h), in float32.
//
// Keys are turned into panels [head_dim, kIndexVectors vectors of keys], so that a vector holds one head's products with as
// many keys: a score is the same sum in the same order whatever keys and queries stand beside it. The best are found by
// partition, in O(keys).
#pragma once

#include "refimpl/ops/interface.h"

namespace assay::cpu {

inline constexpr std::size_t kIndexVectors = 2;  // of keys, a panel
inline constexpr std::size_t kIndexHeads = 4;    // at once

KeyChoice choose_keys(Ops& ops, const IndexCall& call);

}  // namespace assay::cpu
