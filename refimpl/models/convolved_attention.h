// Attention whose queries and keys pass two convolutions (ZAYA1's CCA, arXiv 2510.04476), with the token before:
//
//   c = grouped(depthwise(q | k)),  a matrix of each head for each of a few tokens in `grouped`
//   m_h = (q_h + k_g) / 2 for query head h of key head g;   q_h ← c + m_h,  k_g ← c + mean of its m_h
//   q, k ← of length √width each, k × a number a key head; rotated
//   v = current(x) | delayed(the x before)
#pragma once

#include "refimpl/models/own_layers.h"
#include "refimpl/models/projection.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {

class ConvolvedAttention {
 public:
  ConvolvedAttention(const Weights& weights, std::size_t layer, const AttentionGeometry& geometry);

  CacheWidth cache_width() const;
  // `x`: after the layer's norm; `angles`: of the layer's rope.
  Matrix forward(const Matrix& x, std::size_t layer, const RopeAngles& angles, const OwnStep& step,
                 const TapScope& at) const;

 private:
  Matrix convolved(const Matrix& qk, std::size_t layer, const OwnStep& step) const;
  Matrix grouped(const std::vector<Matrix>& lags, Ops& ops) const;
  Matrix values(const Matrix& x, std::size_t layer, const OwnStep& step) const;
  void read_grouped(const Weights& weights, std::size_t layer);

  AttentionGeometry geometry_;
  Projection q_, k_, v_current_, v_delayed_, o_;
  WeightView depthwise_;                          // [channels, kernel]
  std::vector<std::vector<OwnWeight>> matrices_;  // of each lag, of each head: [width, width]
  std::vector<double> bias_;                      // of both convolutions
  std::vector<OwnWeight> shifts_;                 // convolutions that take the token 1, 2, … before
  OwnWeight value_shift_;
  std::vector<double> key_factors_;  // of each key head
  Norm unit_;
};

}  // namespace assay
