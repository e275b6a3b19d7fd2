// What Muse Spark has that nobody else does: sums of the stream and what a block gave, weighted element by element, and
// norms around experts. Source: transformers 5.23 (muse_spark).
//
//   β = σ(gate / temperature), α = √max(σ(-gate / temperature) (1 + β), 0.001):  x = α x + β block(x)
#pragma once

#include <vector>

#include "refimpl/models/feed_forward.h"

namespace assay {

struct SparkForm {
  double gate_temperature = 0.3;  // residual_gate_temperature
  double router_scale = 1;        // output_multiplier, of the logits of routers as of those of the head
};

class ResidualGate {
 public:
  // The first gate of a layer stands behind attention, the second behind the MLP.
  static ResidualGate read(const Weights& weights, std::size_t layer, int number, double temperature);
  // Rounded once; without a gate the plain sum.
  Matrix operator()(const Matrix& x, const Matrix& block, Ops& ops) const;

 private:
  std::vector<double> stream_, block_;  // [hidden] each, or none
};

// `before`: of the norm in front of the experts; `behind`: of the one that each of them has behind it.
void put_spark_norms(const Weights& weights, std::size_t layer, const SparkForm& form, const NormRule& before,
                     const NormRule& behind, Mixture& mixture);

}  // namespace assay
