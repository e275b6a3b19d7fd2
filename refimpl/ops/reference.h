// The meaning of every operation: plain loops, double accumulators, one file an operation. Threads work on
// different outputs only, so that results do not depend on their number; nor does a row's result depend on
// the rows beside it.
#pragma once

#include "refimpl/ops/interface.h"

namespace assay {

class ReferenceOps : public Ops {
 public:
  ReferenceOps(const Arithmetic& arithmetic, int jobs) : Ops(arithmetic, jobs) {}

  Matrix allocate(std::size_t rows, std::size_t columns) override;
  Matrix upload(std::span<const double> values, std::size_t rows, std::size_t columns) override;
  std::vector<double> download(const Matrix& x) override;
  void store(const CacheRows& cache, std::size_t position, const Matrix& source) override;
  Matrix gather(const Matrix& x, std::span<const std::size_t> rows) override;

  Matrix embed(std::span<const TokenId> tokens, const WeightView& table) override;
  Matrix linear(const Matrix& x, const WeightView& weight, const WeightView& bias,
                ResultRounding rounding) override;
  Matrix rms_norm(const Matrix& x, const WeightView& weight, double epsilon, NormForm form) override;
  Matrix layer_norm(const Matrix& x, const WeightView& weight, const WeightView& bias,
                    double epsilon) override;
  void rope(Matrix& x, const RopeCall& call) override;
  Matrix attention(const AttentionCall& call) override;
  Matrix mla(const MlaCall& call) override;
  Matrix activation(const Matrix& x, Activation kind) override;
  Matrix gated(const Matrix& gate, const Matrix& up, const GatedForm& form) override;
  Matrix softmax(const Matrix& x) override;
  Matrix add(const Matrix& a, const Matrix& b) override;
  Matrix multiply(const Matrix& x, double factor) override;
  Matrix soft_cap(const Matrix& x, double cap) override;
  Matrix concatenate(const Matrix& a, const Matrix& b) override;

  Routing moe_gate(const Matrix& logits, const WeightView& correction, const GateRule& rule) override;
  Matrix moe_mix(const Matrix& x, const Routing& routing, const ExpertWeights& experts,
                 MoeForm form) override;

  QuantizedMatrix quantize(const Matrix& x, const QuantizeRule& rule) override;
  Matrix dequantize(const QuantizedMatrix& x) override;

 private:
  Matrix exact_linear(const Matrix& x, const WeightView& weight, const WeightView& bias,
                      ResultRounding rounding);
};

}  // namespace assay
