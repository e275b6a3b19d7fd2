// What an activation makes of one number.
#pragma once

#include "refimpl/ops/calls.h"

namespace assay {

// Throws Error::internal for gpt_oss, which exists only gated.
double activate(double x, Activation kind);

}  // namespace assay
