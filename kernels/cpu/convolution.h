// Causal convolutions of each channel by itself, in float32: channels in vectors, tokens on all threads.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay::cpu {

// Results in the memory of `ops`; the states that the call asks for are written.
Matrix convolution(Ops& ops, const ConvolutionCall& call);

}  // namespace assay::cpu
