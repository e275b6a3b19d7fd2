#include "kernels/calls.h"

namespace assay {

Matrix run_reference(ReferenceOps& ops, const EmbeddingCall& call) {
  return ops.ReferenceOps::embed(call.tokens, call.table);
}
Matrix run_reference(ReferenceOps& ops, const LinearCall& call) {
  return ops.ReferenceOps::linear(call.x, call.weight, call.bias, call.rounding);
}
Matrix run_reference(ReferenceOps& ops, const RmsNormCall& call) {
  return ops.ReferenceOps::rms_norm(call.x, call.weight, call.epsilon, call.form);
}
Matrix run_reference(ReferenceOps& ops, const LayerNormCall& call) {
  return ops.ReferenceOps::layer_norm(call.x, call.weight, call.bias, call.epsilon);
}
Matrix run_reference(ReferenceOps& ops, const RotaryCall& call) {
  Matrix x = call.x;
  ops.ReferenceOps::rope(x, call.angles);
  return x;
}
Matrix run_reference(ReferenceOps& ops, const AttentionCall& call) {
  return ops.ReferenceOps::attention(call);
}
Matrix run_reference(ReferenceOps& ops, const MlaCall& call) {
  return ops.ReferenceOps::mla(call);
}
Matrix run_reference(ReferenceOps& ops, const ActivationCall& call) {
  return ops.ReferenceOps::activation(call.x, call.kind);
}
Matrix run_reference(ReferenceOps& ops, const GatedCall& call) {
  return ops.ReferenceOps::gated(call.gate, call.up, call.form);
}
Matrix run_reference(ReferenceOps& ops, const SoftmaxCall& call) {
  return ops.ReferenceOps::softmax(call.x);
}
Routing run_reference(ReferenceOps& ops, const MoeGateCall& call) {
  return ops.ReferenceOps::moe_gate(call.logits, call.correction, call.rule);
}
Matrix run_reference(ReferenceOps& ops, const MoeMixCall& call) {
  return ops.ReferenceOps::moe_mix(call.x, call.routing, call.experts, call.form);
}
QuantizedMatrix run_reference(ReferenceOps& ops, const QuantizeCall& call) {
  return ops.ReferenceOps::quantize(call.x, call.rule);
}
Matrix run_reference(ReferenceOps& ops, const DequantizeCall& call) {
  return ops.ReferenceOps::dequantize(call.x);
}

}  // namespace assay
