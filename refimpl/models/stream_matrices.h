// The weights by which residual streams are read, written and mixed around a block (ops/stream_calls.h).
#pragma once

#include <string>

#include "refimpl/models/weights.h"

namespace assay {

struct StreamMatrices {
  WeightView fn, base, scale;
  // name: what the three begin with, "layers.3.hc_attn". Empty views where there are none.
  static StreamMatrices read(const Weights& weights, const std::string& name) {
    return {weights.find_named(name + "_fn"), weights.find_named(name + "_base"),
            weights.find_named(name + "_scale")};
  }
};

}  // namespace assay
