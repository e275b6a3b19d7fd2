// The calls of all operations that may have kernels: what the registry keeps lists of.
#pragma once

#include "refimpl/ops/calls.h"
#include "refimpl/ops/recurrent_calls.h"

namespace assay {

template <class... Calls>
struct CallList {};
using EveryCall = CallList<EmbeddingCall, LinearCall, RmsNormCall, LayerNormCall, RotaryCall, AttentionCall,
                           MlaCall, ActivationCall, GatedActivationCall, SoftmaxCall, MoeGateCall,
                           FusedMoeCall, QuantizeCall, DequantizeCall>;

}  // namespace assay
