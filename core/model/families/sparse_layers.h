// Which layers of Qwen's mixtures, and of those after them, have experts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/model/config.h"

namespace assay::families {

// Every decoder_sparse_step-th layer, but those of mlp_only_layers: `dense_default` where the config does not say.
inline auto qwen_sparse_layers(ConfigReader& config, const std::vector<std::uint64_t>& dense_default = {}) {
  const std::uint64_t step = config.size("decoder_sparse_step", 1).value();
  return [step, dense = config.numbers("mlp_only_layers").value_or(dense_default)](std::uint64_t layer) {
    return (layer + 1) % step == 0 && std::find(dense.begin(), dense.end(), layer) == dense.end();
  };
}

}  // namespace assay::families
