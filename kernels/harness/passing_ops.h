// An Ops that hands every call on to another: to look at what passes, derive and override.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay {

class PassingOps : public Ops {
 public:
  explicit PassingOps(Ops& inner) : Ops(inner.arithmetic(), inner.jobs()), inner_(inner) {}

  Matrix allocate(std::size_t rows, std::size_t columns) override { return inner_.allocate(rows, columns); }
  Matrix upload(std::span<const double> values, std::size_t rows, std::size_t columns) override {
    return inner_.upload(values, rows, columns);
  }
  std::vector<double> download(const Matrix& x) override { return inner_.download(x); }
  void store(const CacheRows& cache, std::size_t position, const Matrix& source) override {
    inner_.store(cache, position, source);
  }
  Matrix gather(const Matrix& x, std::span<const std::size_t> rows) override {
    return inner_.gather(x, rows);
  }
  Matrix embed(std::span<const TokenId> tokens, const WeightView& table) override {
    return inner_.embed(tokens, table);
  }
  Matrix linear(const Matrix& x, const WeightView& weight, const WeightView& bias,
                ResultRounding rounding) override {
    return inner_.linear(x, weight, bias, rounding);
  }
  Matrix rms_norm(const Matrix& x, const WeightView& weight, double epsilon, NormForm form) override {
    return inner_.rms_norm(x, weight, epsilon, form);
  }
  Matrix layer_norm(const Matrix& x, const WeightView& weight, const WeightView& bias,
                    double epsilon) override {
    return inner_.layer_norm(x, weight, bias, epsilon);
  }
  void rope(Matrix& x, const RopeCall& call) override { inner_.rope(x, call); }
  Matrix attention(const AttentionCall& call) override { return inner_.attention(call); }
  Matrix mla(const MlaCall& call) override { return inner_.mla(call); }
  Matrix activation(const Matrix& x, Activation kind) override { return inner_.activation(x, kind); }
  Matrix gated(const Matrix& gate, const Matrix& up, const GatedForm& form) override {
    return inner_.gated(gate, up, form);
  }
  Matrix softmax(const Matrix& x) override { return inner_.softmax(x); }
  Matrix add(const Matrix& a, const Matrix& b) override { return inner_.add(a, b); }
  Matrix multiply(const Matrix& x, double factor) override { return inner_.multiply(x, factor); }
  Matrix soft_cap(const Matrix& x, double cap) override { return inner_.soft_cap(x, cap); }
  Matrix concatenate(const Matrix& a, const Matrix& b) override { return inner_.concatenate(a, b); }
  Routing moe_gate(const Matrix& logits, const WeightView& correction, const GateRule& rule) override {
    return inner_.moe_gate(logits, correction, rule);
  }
  Matrix moe_mix(const Matrix& x, const Routing& routing, const ExpertWeights& experts,
                 MoeForm form) override {
    return inner_.moe_mix(x, routing, experts, form);
  }
  QuantizedMatrix quantize(const Matrix& x, const QuantizeRule& rule) override {
    return inner_.quantize(x, rule);
  }
  Matrix dequantize(const QuantizedMatrix& x) override { return inner_.dequantize(x); }

 private:
  Ops& inner_;
};

}  // namespace assay
