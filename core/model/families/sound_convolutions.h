// Convolutions over time, as codecs and vocoders have them.
#pragma once

#include <string>
#include <vector>

#include "core/model/tower_blocks.h"

namespace assay::families {

// `shape` as torch stores it: [out, in, reach], or [in, out, reach] of one that stretches.
inline void add_sound_convolution(blocks::Tower& tower, const std::string& name,
                                  const std::vector<Quantity>& shape, const Quantity& out, bool bias = true) {
  tower.tensor(name + ".weight", shape);
  if (bias) tower.tensor(name + ".bias", {out});
}

}  // namespace assay::families
