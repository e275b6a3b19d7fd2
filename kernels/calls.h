// The arguments of each operation as one value, so that kernels of different operations can be kept, chosen,
// measured and sabotaged in one way. The fields mean what they mean in refimpl/ops/interface.h.
#pragma once

#include <string_view>
#include <vector>

#include "refimpl/ops/interface.h"
#include "refimpl/ops/reference.h"

namespace assay {

struct EmbeddingCall {
  std::vector<TokenId> tokens;
  WeightView table;
};
struct LinearCall {
  Matrix x;
  WeightView weight, bias;
  ResultRounding rounding = ResultRounding::as_arithmetic;
};
struct RmsNormCall {
  Matrix x;
  WeightView weight;
  double epsilon = 0;
  NormForm form = NormForm::weight_last;
};
struct LayerNormCall {
  Matrix x;
  WeightView weight, bias;
  double epsilon = 0;
};
struct RotaryCall {
  Matrix x;  // changed: it is the result
  RopeCall angles;
};
struct ActivationCall {
  Matrix x;
  Activation kind = Activation::silu;
};
struct GatedCall {
  Matrix gate, up;
  GatedForm form;
};
struct SoftmaxCall {
  Matrix x;
};
struct MoeGateCall {
  Matrix logits;
  WeightView correction;
  GateRule rule;
};
struct MoeMixCall {
  Matrix x;
  Routing routing;
  ExpertWeights experts;
  MoeForm form = MoeForm::sparse;
};
struct QuantizeCall {
  Matrix x;
  QuantizeRule rule;
};
struct DequantizeCall {
  QuantizedMatrix x;
};

// The operation's name, and what it yields.
template <class Call>
struct OpOf;
template <>
struct OpOf<EmbeddingCall> {
  static constexpr std::string_view kName = "embedding";
  using Result = Matrix;
};
template <>
struct OpOf<LinearCall> {
  static constexpr std::string_view kName = "linear";
  using Result = Matrix;
};
template <>
struct OpOf<RmsNormCall> {
  static constexpr std::string_view kName = "rms_norm";
  using Result = Matrix;
};
template <>
struct OpOf<LayerNormCall> {
  static constexpr std::string_view kName = "layer_norm";
  using Result = Matrix;
};
template <>
struct OpOf<RotaryCall> {
  static constexpr std::string_view kName = "rope";
  using Result = Matrix;
};
template <>
struct OpOf<AttentionCall> {
  static constexpr std::string_view kName = "attention";
  using Result = Matrix;
};
template <>
struct OpOf<MlaCall> {
  static constexpr std::string_view kName = "mla";
  using Result = Matrix;
};
template <>
struct OpOf<ActivationCall> {
  static constexpr std::string_view kName = "activation";
  using Result = Matrix;
};
template <>
struct OpOf<GatedCall> {
  static constexpr std::string_view kName = "gated";
  using Result = Matrix;
};
template <>
struct OpOf<SoftmaxCall> {
  static constexpr std::string_view kName = "softmax";
  using Result = Matrix;
};
template <>
struct OpOf<MoeGateCall> {
  static constexpr std::string_view kName = "moe_gate";
  using Result = Routing;
};
template <>
struct OpOf<MoeMixCall> {
  static constexpr std::string_view kName = "moe_mix";
  using Result = Matrix;
};
template <>
struct OpOf<QuantizeCall> {
  static constexpr std::string_view kName = "quantize";
  using Result = QuantizedMatrix;
};
template <>
struct OpOf<DequantizeCall> {
  static constexpr std::string_view kName = "dequantize";
  using Result = Matrix;
};

template <class Call>
using ResultOf = typename OpOf<Call>::Result;

// The meaning, whatever `ops` itself would do: ReferenceOps' own function, in the memory of `ops`.
Matrix run_reference(ReferenceOps& ops, const EmbeddingCall& call);
Matrix run_reference(ReferenceOps& ops, const LinearCall& call);
Matrix run_reference(ReferenceOps& ops, const RmsNormCall& call);
Matrix run_reference(ReferenceOps& ops, const LayerNormCall& call);
Matrix run_reference(ReferenceOps& ops, const RotaryCall& call);
Matrix run_reference(ReferenceOps& ops, const AttentionCall& call);
Matrix run_reference(ReferenceOps& ops, const MlaCall& call);
Matrix run_reference(ReferenceOps& ops, const ActivationCall& call);
Matrix run_reference(ReferenceOps& ops, const GatedCall& call);
Matrix run_reference(ReferenceOps& ops, const SoftmaxCall& call);
Routing run_reference(ReferenceOps& ops, const MoeGateCall& call);
Matrix run_reference(ReferenceOps& ops, const MoeMixCall& call);
QuantizedMatrix run_reference(ReferenceOps& ops, const QuantizeCall& call);
Matrix run_reference(ReferenceOps& ops, const DequantizeCall& call);

}  // namespace assay
