// A table of log-probabilities without what it says twice.
//
// Tokens that a model never saw may have one row of the head among them (padding of a vocabulary; rows near zero that a quantizer
// makes equal), and a server may give one vector to several contexts. Their rounding errors are the same, too, and what logit_rank.h
// counts on is that errors are independent: k equal columns look like a direction √k times as strong, and what is left behind the last of the
// distinct ones is exactly zero, as if there were no rounding at all. Taking them once changes no rank.
#pragma once

#include <cstddef>

#include "refimpl/fingerprint/dense_matrix.h"

namespace assay {

// The first of equal columns and of equal rows, in their order.
DenseMatrix distinct_logits(const DenseMatrix& table);

}  // namespace assay
