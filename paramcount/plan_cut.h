// How one tensor is cut over the ranks of a layout.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/parallel_cut.h"
#include "paramcount/plan.h"

namespace assay {

// The ranks that cut `spec`: tp, or for a routed expert the ranks of one expert group.
std::uint64_t cut_group(const TensorSpec& spec, const Layout& layout);
// The widest rank's part of the tensor.
std::vector<std::uint64_t> rank_shape(const TensorSpec& spec, const Layout& layout);
// The layers of pipeline stage `stage`: [first, end). The first stages take one more.
struct Stage {
  std::uint64_t first = 0, end = 0;
};
Stage stage_layers(std::uint64_t layers, std::uint64_t stages, std::uint64_t stage);

}  // namespace assay
