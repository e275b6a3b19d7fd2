// What Inkling's layers have beside others': convolutions behind attention and MLP, shared experts that the router scores.
#pragma once

#include <cstddef>
#include <limits>

#include "refimpl/models/residual_convolution.h"
#include "refimpl/models/shared_sinks.h"

namespace assay {

struct InklingForm {
  double route_scale = 8;
  // unpadded_vocab_size: so many rows of the head are computed.
  std::size_t words = std::numeric_limits<std::size_t>::max();
};

struct InklingBlocks {
  ResidualConvolution attention, mlp;  // behind them, or none

  // A layer's convolutions; its MLP gets its factor, or its experts the shared ones.
  static InklingBlocks read(const Weights& weights, std::size_t layer, const InklingForm& form, GatedMlp& mlp,
                            Mixture* mixture);
};

}  // namespace assay
