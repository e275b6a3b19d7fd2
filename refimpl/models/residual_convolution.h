// Inkling's short convolutions: x + conv(x), of each channel by itself, behind keys, values and both blocks of a layer.
// Source: transformers 5.23 (inkling).
#pragma once

#include "refimpl/models/recurrent_mixer.h"

namespace assay {

class ResidualConvolution {
 public:
  ResidualConvolution() = default;  // x stays as it is
  // The one of `key`; `state`: which state of the layer is its.
  ResidualConvolution(const Weights& weights, const WeightKey& key, std::size_t state);

  explicit operator bool() const { return static_cast<bool>(convolution_.weight); }
  StateShape state() const { return convolution_.state(); }
  Matrix operator()(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops) const;

 private:
  CausalConvolution convolution_;
  std::size_t state_ = 0;
};

}  // namespace assay
