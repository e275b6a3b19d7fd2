// The stream as it was before some layers, mixed in again before later ones (Solar Pro: bskcn_1 to bskcn_4 of its config):
//
//   kept_s = x                                before the layers of keep[s]
//   x = weight · kept_s + (1 - weight) · x    before those of mix[s]
#pragma once

#include <array>
#include <vector>

#include "refimpl/ops/interface.h"

namespace assay {

struct StreamMixes {
  static constexpr std::size_t kSlots = 2;
  std::array<std::vector<std::size_t>, kSlots> keep, mix;
  double weight = 0;

  // What the layer is given. `kept`: kSlots matrices, which it changes.
  Matrix before(std::size_t layer, Matrix x, std::vector<Matrix>& kept, Ops& ops) const;
};

}  // namespace assay
