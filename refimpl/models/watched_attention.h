// What a call's attention went to, told to those layer policies of the batch's caches that go by it
// (step/cache_policy.h).
#pragma once

#include "refimpl/step/batch.h"

namespace assay {

// `call` has one span for each sequence of the batch, whose rows its cache holds for `layer`.
void tell_attention(const AttentionCall& call, const Batch& batch, std::size_t layer, Ops& ops);

}  // namespace assay
