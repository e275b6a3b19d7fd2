// Each operation's call in the words of kernels/plugin.h.
#pragma once

#include "kernels/plugin/marshal.h"

namespace assay {

template <class Call>
struct AbiOf;  // kOp, Struct, kMember: its pointer in assay_call

// Where a call's result goes, of the right shape; in the memory of `ops`, or (null) in none.
template <class Call>
ResultOf<Call> result_of(Ops* ops, const Call& call);

// Fills in the struct; `result` is where the result goes.
template <class Call>
typename AbiOf<Call>::Struct described(MarshalledCall& marshalled, const Call& call, ResultOf<Call>& result);

#define ASSAY_ABI_OF(Call, op, name)                                                 \
  template <>                                                                        \
  struct AbiOf<Call> {                                                               \
    static constexpr std::int32_t kOp = op;                                          \
    using Struct = assay_##name;                                                     \
    static void set(assay_call& call, const Struct* value) { call.as.name = value; } \
  };                                                                                 \
  template <>                                                                        \
  ResultOf<Call> result_of(Ops* ops, const Call& call);                              \
  template <>                                                                        \
  assay_##name described(MarshalledCall& marshalled, const Call& call, ResultOf<Call>& result)
ASSAY_ABI_OF(LinearCall, ASSAY_LINEAR, linear);
ASSAY_ABI_OF(RmsNormCall, ASSAY_RMS_NORM, rms_norm);
ASSAY_ABI_OF(LayerNormCall, ASSAY_LAYER_NORM, layer_norm);
ASSAY_ABI_OF(RotaryCall, ASSAY_ROPE, rope);
ASSAY_ABI_OF(AttentionCall, ASSAY_ATTENTION, attention);
ASSAY_ABI_OF(MlaCall, ASSAY_MLA, mla);
ASSAY_ABI_OF(ActivationCall, ASSAY_ACTIVATION, activation);
ASSAY_ABI_OF(GatedActivationCall, ASSAY_GATED_ACTIVATION, gated_activation);
ASSAY_ABI_OF(SoftmaxCall, ASSAY_SOFTMAX, softmax);
ASSAY_ABI_OF(MoeGateCall, ASSAY_MOE_GATE, moe_gate);
ASSAY_ABI_OF(FusedMoeCall, ASSAY_FUSED_MOE, fused_moe);
ASSAY_ABI_OF(QuantizeCall, ASSAY_QUANTIZE, quantize);
ASSAY_ABI_OF(DequantizeCall, ASSAY_DEQUANTIZE, dequantize);
ASSAY_ABI_OF(EmbeddingCall, ASSAY_EMBEDDING, embedding);
#undef ASSAY_ABI_OF

}  // namespace assay
