// How much a stored form noises what it stores, and which weights a model uses between two taps.
//
// A checkpoint converted to fewer bits computes something else by design. By how much it may, no bound says
// that a fault would not hide behind; so the yardstick computes with the weights of the unconverted one, each
// requantized by as much as the other's storage cannot help:
//
//   floating-point codes of m mantissa bits   relative spacing at most 2^-m, error of its √(1/12)
//   integer codes                             spacing = the scale, or a block's range / (2^bits - 1); the
//   same
//
// both relative to the weight's root mean square. Where the codes of both are alike and the blocks fit, a
// conversion copies them, and nothing is requantized.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/model_compare/passing_ops.h"
#include "refimpl/step/taps.h"

namespace assay {

// Root mean square error of rounding to the form of `weight`, relative to its root mean square.
double rounding_noise(const WeightView& weight);
// Values in `from` can be copied to `to` without rounding, whatever they are.
bool copies_exactly(const WeightView& from, const WeightView& to);

// The weights of a segment, in the order of their use: what is computed between two taps.
struct Segment {
  std::vector<WeightView> matrices, vectors;
  bool bends = false;  // an exponential is computed in it: a σ, a softmax, a decay
};
using Segments = std::map<std::string, Segment>;  // by the tap that ends it

// Keeps what passes until the first tap of each name is seen.
class WeightWatch final : public PassingOps, public TapListener {
 public:
  using PassingOps::PassingOps;
  void see(const std::string& tap, const Matrix&) override;
  const Segments& segments() const { return segments_; }

  using PassingOps::run;
  Matrix run(const EmbeddingCall& call) override;
  Matrix run(const LinearCall& call) override;
  Matrix run(const RmsNormCall& call) override;
  Matrix run(const LayerNormCall& call) override;
  Matrix run(const AttentionCall& call) override;
  Matrix run(const MlaCall& call) override;
  Routing run(const MoeGateCall& call) override;
  Matrix run(const FusedMoeCall& call) override;
  Matrix run(const ActivationCall& call) override;
  Matrix run(const GatedActivationCall& call) override;
  Matrix run(const SoftmaxCall& call) override;
  Matrix run(const ConvolutionCall& call) override;
  Matrix run(const DeltaRuleCall& call) override;
  Matrix run(const StateSpaceCall& call) override;
  Matrix run(const GatedNormCall& call) override;
  Matrix run(const OutputGateCall& call) override;
  Matrix soft_cap(const Matrix& x, double cap) override;

 private:
  // A call that computes exponentials, if `bends`, handed on.
  template <class Call>
  ResultOf<Call> bent(const Call& call, bool bends = true) {
    open_.bends |= bends;
    return PassingOps::run(call);
  }
  void matrix(const WeightView& weight);
  void vector(const WeightView& weight);
  Segment open_;
  Segments segments_;
};

// How a weight of the reference is to be requantized.
struct QuantizationNoise {
  double noise = 0;
  bool narrow_inputs = false;  // the other side's arithmetic multiplies it in 8 bits
};
using QuantizationNoises = std::map<std::string, QuantizationNoise>;  // by the name of the reference's weight
// Weights of a segment are matched in order; where the two sides cut them differently (q, k, v in one matrix
// or three), each is requantized as the coarsest of the other side.
QuantizationNoises noises_of(const Segments& reference, const Segments& test, const Arithmetic& arithmetic);

}  // namespace assay
