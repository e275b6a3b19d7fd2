// Hyper-connections of Qwen4-Exp: the residual is m streams side by side. With n the norm of each, a block is given
//
//   mean over streams of σ(up(silu(down(n) / m))) · n,   and to stream s is added   2 σ(inject(n) / m)_s · what it gives
//
// (transformers, Qwen4ExpTextGatedResidual). The head sees the streams by one more such reading.
#pragma once

#include <string>

#include "refimpl/models/norms.h"

namespace assay {

class GatedStreams {
 public:
  // `name`: "model.layers.3.attn_hyper_connection"
  static GatedStreams read(const Weights& weights, const std::string& name, std::size_t streams,
                           const NormRule& rule);

  struct Reading {
    Matrix x;       // [tokens, width]: what the block is given
    Matrix shares;  // [tokens, streams]: of what it gives; none where nothing is given back
  };
  Reading operator()(const Matrix& streams, Ops& ops) const;

  // The streams with what a block gave: [tokens, streams · width]
  static Matrix written(const Matrix& streams, const Matrix& y, const Matrix& shares, Ops& ops);
  // The same in every stream.
  static Matrix in_each(const Matrix& x, std::size_t streams, Ops& ops);

 private:
  std::size_t streams_ = 1;
  Norm norm_;
  WeightView down_, up_, inject_;
};

}  // namespace assay
