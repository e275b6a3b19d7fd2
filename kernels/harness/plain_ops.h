// The yardstick: the plain computation in the same precision. One loop, one accumulator of the type that
// activations are stored in, sums from the first term to the last; no blocks, no vectors, no tricks. An
// optimized kernel may be twice as far from float64 as this is (docs/compare.md).
//
// Rounding errors of few numbers are a matter of luck; so the plain computation is done in three orders: sums
// from the first term on, from the last, and first the even ones, then the odd. Weights may be blurred first
// (weight_blur.h), by noise that depends on the order's number, the weight's name and the element alone.
#pragma once

#include "kernels/harness/weight_blur.h"
#include "refimpl/ops/reference.h"

namespace assay {

class PlainOps final : public ReferenceOps {
 public:
  static constexpr int kOrders = 3;
  PlainOps(const Arithmetic& arithmetic, int jobs, int order = 0, Blurs blurs = {})
      : ReferenceOps(arithmetic, jobs), order_(order), blurs_(std::move(blurs)) {}

  Matrix embed(std::span<const TokenId> tokens, const WeightView& table) override;
  Matrix linear(const Matrix& x, const WeightView& weight, const WeightView& bias,
                ResultRounding rounding) override;
  Matrix rms_norm(const Matrix& x, const WeightView& weight, double epsilon, NormForm form) override;
  Matrix layer_norm(const Matrix& x, const WeightView& weight, const WeightView& bias,
                    double epsilon) override;
  void rope(Matrix& x, const RopeCall& call) override;
  Matrix attention(const AttentionCall& call) override;
  Routing moe_gate(const Matrix& logits, const WeightView& correction, const GateRule& rule) override;

 private:
  Matrix multiplied(const Matrix& x, const WeightView& weight);
  Blur blur_of(const WeightView& weight) const;
  std::vector<double> vector(const WeightView& weight) const;  // blurred, as the arithmetic holds it
  int order_;
  Blurs blurs_;
};

}  // namespace assay
