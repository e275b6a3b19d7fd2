// How Phi-3.5-MoE chooses two experts and weighs them (SparseMixer-v2, arXiv 2409.12136): each is the best of what is
// left, and its weight the softmax over those logits that come near it.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay {

// `jitter`: a logit counts if it is behind the best by at most 2 · jitter of the larger of the best and its own size.
Routing sparse_mixer(const Matrix& logits, double jitter, Ops& ops);

}  // namespace assay
