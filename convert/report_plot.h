// The plots of a conversion's report, as SVG.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/error_sums.h"

namespace assay {

// "model.layers.12.mlp.experts.3.down_proj.weight": layer 12, role "mlp.experts.*.down_proj". Without a layer
// the role is the whole name.
struct TensorPlace {
  std::optional<std::uint64_t> layer;
  std::string role;
};
TensorPlace place_of(std::string_view tensor);

struct PlottedTensor {
  std::string name;
  ErrorSums sums;
};

// A mark for every layer and role: all its tensors together, and a line down to the worst and up to the best
// of them.
std::string plot_by_layer(const std::vector<PlottedTensor>& tensors);
// How many tensors have which signal-to-noise ratio.
std::string plot_histogram(const std::vector<PlottedTensor>& tensors);

}  // namespace assay
