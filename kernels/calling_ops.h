// An Ops to which every operation comes as one Call: derive, and say in call() what becomes of it.
//
//   class MyOps : public CallingOps<MyOps> {
//    private:
//     friend CallingOps;
//     template <class Call> ResultOf<Call> call(const Call& call) { return run_reference(*this, call); }
//   };
//
// A RotaryCall is to turn its matrix in place.
#pragma once

#include "kernels/calls.h"

namespace assay {

template <class Derived>
class CallingOps : public ReferenceOps {
 public:
  using ReferenceOps::ReferenceOps;

  Matrix embed(std::span<const TokenId> tokens, const WeightView& table) override {
    return derived().call(EmbeddingCall{{tokens.begin(), tokens.end()}, table});
  }
  Matrix linear(const Matrix& x, const WeightView& weight, const WeightView& bias,
                ResultRounding rounding) override {
    return derived().call(LinearCall{x, weight, bias, rounding});
  }
  Matrix rms_norm(const Matrix& x, const WeightView& weight, double epsilon, NormForm form) override {
    return derived().call(RmsNormCall{x, weight, epsilon, form});
  }
  Matrix layer_norm(const Matrix& x, const WeightView& weight, const WeightView& bias,
                    double epsilon) override {
    return derived().call(LayerNormCall{x, weight, bias, epsilon});
  }
  void rope(Matrix& x, const RopeCall& call) override { derived().call(RotaryCall{x, call}); }
  Matrix attention(const AttentionCall& call) override { return derived().call(call); }
  Matrix mla(const MlaCall& call) override { return derived().call(call); }
  Matrix activation(const Matrix& x, Activation kind) override {
    return derived().call(ActivationCall{x, kind});
  }
  Matrix gated(const Matrix& gate, const Matrix& up, const GatedForm& form) override {
    return derived().call(GatedCall{gate, up, form});
  }
  Matrix softmax(const Matrix& x) override { return derived().call(SoftmaxCall{x}); }
  Routing moe_gate(const Matrix& logits, const WeightView& correction, const GateRule& rule) override {
    return derived().call(MoeGateCall{logits, correction, rule});
  }
  Matrix moe_mix(const Matrix& x, const Routing& routing, const ExpertWeights& experts,
                 MoeForm form) override {
    return derived().call(MoeMixCall{x, routing, experts, form});
  }
  QuantizedMatrix quantize(const Matrix& x, const QuantizeRule& rule) override {
    return derived().call(QuantizeCall{x, rule});
  }
  Matrix dequantize(const QuantizedMatrix& x) override { return derived().call(DequantizeCall{x}); }

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }
};

}  // namespace assay
