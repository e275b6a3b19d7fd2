// The yardstick: the plain computation in the same precision. One loop, one accumulator of the type that
// activations are stored in, sums from the first term to the last; no blocks, no vectors, no tricks. An
// optimized kernel may be twice as far from float64 as this is (docs/compare.md). Where kernels round operands
// (kernels/operands), so does this.
//
// Rounding errors of few numbers are a matter of luck; so the plain computation is done in three orders: sums
// from the first term on, from the last, and first the even ones, then the odd. Weights may be requantized first
// (quantization_noise.h), by noise that depends on the order's number, the weight's name and the element alone.
#pragma once

#include "kernels/model_compare/quantization_noise.h"
#include "kernels/operands/rounded_operands.h"
#include "refimpl/ops/reference.h"

namespace assay {

class PlainOps final : public ReferenceOps {
 public:
  static constexpr int kOrders = 3;
  PlainOps(const Arithmetic& arithmetic, int jobs, int order = 0, QuantizationNoises noises = {},
           OperandRule rule = rounded_operands)
      : ReferenceOps(arithmetic, jobs), order_(order), noises_(std::move(noises)), rule_(rule) {}

  using ReferenceOps::run;
  Matrix run(const EmbeddingCall& call) override;
  Matrix run(const LinearCall& call) override;
  Matrix run(const RmsNormCall& call) override;
  Matrix run(const LayerNormCall& call) override;
  Matrix run(const RotaryCall& call) override;
  Matrix run(const AttentionCall& call) override;
  Routing run(const MoeGateCall& call) override;
  Matrix run(const DeltaRuleCall& call) override;  // plain_recurrent.cpp
  Matrix run(const StateSpaceCall& call) override;

 private:
  Matrix multiplied(const Matrix& x, const WeightView& weight);
  QuantizationNoise noise_of(const WeightView& weight) const;
  std::vector<double> vector(const WeightView& weight) const;  // requantized, as the arithmetic holds it
  int order_;
  QuantizationNoises noises_;
  OperandRule rule_;
};

}  // namespace assay
