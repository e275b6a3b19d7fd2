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
  void store(const PagedKvView& cache, std::size_t position, const Matrix& source) override;
  Matrix gather(const Matrix& x, std::span<const std::size_t> rows) override;

  Matrix run(const EmbeddingCall& call) override;
  Matrix run(const LinearCall& call) override;
  Matrix run(const RmsNormCall& call) override;
  Matrix run(const LayerNormCall& call) override;
  Matrix run(const RotaryCall& call) override;
  Matrix run(const AttentionCall& call) override;
  Matrix run(const MlaCall& call) override;
  Matrix run(const ActivationCall& call) override;
  Matrix run(const GatedActivationCall& call) override;
  Matrix run(const SoftmaxCall& call) override;
  Routing run(const MoeGateCall& call) override;
  Matrix run(const FusedMoeCall& call) override;
  QuantizedMatrix run(const QuantizeCall& call) override;
  Matrix run(const DequantizeCall& call) override;
  Matrix run(const ConvolutionCall& call) override;
  Matrix run(const DeltaRuleCall& call) override;
  Matrix run(const StateSpaceCall& call) override;
  Matrix run(const GatedNormCall& call) override;
  Matrix run(const OutputGateCall& call) override;
  KeyChoice run(const IndexCall& call) override;

  Matrix add(const Matrix& a, const Matrix& b) override;
  Matrix multiply(const Matrix& x, double factor) override;
  Matrix soft_cap(const Matrix& x, double cap) override;
  Matrix scale(const Matrix& x, const Matrix& factors) override;
  Matrix clamp(const Matrix& x, double limit) override;
  Matrix concatenate(const Matrix& a, const Matrix& b) override;
  Matrix of_each(const Matrix& x, std::size_t width, std::size_t first, std::size_t count) override;

 private:
};

// The meaning, whatever `ops` itself would do: ReferenceOps' own function, in the memory of `ops`.
template <class Call>
ResultOf<Call> run_reference(ReferenceOps& ops, const Call& call) {
  return ops.ReferenceOps::run(call);
}

}  // namespace assay
