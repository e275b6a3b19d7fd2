// The calls of all operations that may have kernels: what the registry keeps lists of; and of the others.
#pragma once

#include <type_traits>

#include "refimpl/ops/calls.h"
#include "refimpl/ops/index_calls.h"
#include "refimpl/ops/recurrent_calls.h"

namespace assay {

template <class... Calls>
struct CallList {};
using EveryCall = CallList<EmbeddingCall, LinearCall, RmsNormCall, LayerNormCall, RotaryCall, AttentionCall,
                           MlaCall, ActivationCall, GatedActivationCall, SoftmaxCall, MoeGateCall,
                           FusedMoeCall, QuantizeCall, DequantizeCall, ConvolutionCall, DeltaRuleCall,
                           StateSpaceCall, GatedNormCall, OutputGateCall, IndexCall>;
// Those of recurrent layers, and of indexers: kernels/plugin.h has no words for them.
using CallsOfOurOwn =
    CallList<ConvolutionCall, DeltaRuleCall, StateSpaceCall, GatedNormCall, OutputGateCall, IndexCall>;

template <class Call, class List>
inline constexpr bool kIsListed = false;
template <class Call, class... Calls>
inline constexpr bool kIsListed<Call, CallList<Calls...>> = (std::is_same_v<Call, Calls> || ...);

}  // namespace assay
