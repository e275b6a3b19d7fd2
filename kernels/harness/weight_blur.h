// How much a stored form blurs what it stores, and which weights a model uses between two taps.
//
// A checkpoint converted to fewer bits computes something else by design. By how much it may, no bound says
// that a fault would not hide behind; so the yardstick computes with the weights of the unconverted one, each
// blurred by as much as the other's storage cannot help:
//
//   floating-point codes of m mantissa bits   relative spacing at most 2^-m, error of its √(1/12)
//   integer codes                             spacing = the scale, or a block's range / (2^bits - 1); the
//   same
//
// both relative to the weight's root mean square. Where the codes of both are alike and the blocks fit, a
// conversion copies them, and nothing is blurred.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/harness/passing_ops.h"
#include "refimpl/engine/taps.h"

namespace assay {

// Root mean square error of rounding to the form of `weight`, relative to its root mean square.
double rounding_noise(const WeightView& weight);
// Values in `from` can be copied to `to` without rounding, whatever they are.
bool copies_exactly(const WeightView& from, const WeightView& to);

// The weights of a segment, in the order of their use: what is computed between two taps.
struct Segment {
  std::vector<WeightView> matrices, vectors;
};
using Segments = std::map<std::string, Segment>;  // by the tap that ends it

// Keeps what passes until the first tap of each name is seen.
class WeightWatch final : public PassingOps, public TapListener {
 public:
  using PassingOps::PassingOps;
  void see(const std::string& tap, const Matrix&) override;
  const Segments& segments() const { return segments_; }

  Matrix embed(std::span<const TokenId> tokens, const WeightView& table) override;
  Matrix linear(const Matrix& x, const WeightView& weight, const WeightView& bias,
                ResultRounding rounding) override;
  Matrix rms_norm(const Matrix& x, const WeightView& weight, double epsilon, NormForm form) override;
  Matrix layer_norm(const Matrix& x, const WeightView& weight, const WeightView& bias,
                    double epsilon) override;
  Matrix attention(const AttentionCall& call) override;
  Matrix mla(const MlaCall& call) override;
  Routing moe_gate(const Matrix& logits, const WeightView& correction, const GateRule& rule) override;
  Matrix moe_mix(const Matrix& x, const Routing& routing, const ExpertWeights& experts,
                 MoeForm form) override;

 private:
  void matrix(const WeightView& weight);
  void vector(const WeightView& weight);
  Segment open_;
  Segments segments_;
};

// How a weight of the reference is to be blurred.
struct Blur {
  double noise = 0;
  bool narrow_inputs = false;  // the other side's arithmetic multiplies it in 8 bits
};
using Blurs = std::map<std::string, Blur>;  // by the name of the reference's weight
// Weights of a segment are matched in order; where the two sides cut them differently (q, k, v in one matrix
// or three), each is blurred as the coarsest of the other side.
Blurs blurs_of(const Segments& reference, const Segments& test, const Arithmetic& arithmetic);

}  // namespace assay
