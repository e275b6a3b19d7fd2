#include "refimpl/models/stream_mixes.h"

#include <algorithm>

namespace assay {

Matrix StreamMixes::before(std::size_t layer, Matrix x, std::vector<Matrix>& kept, Ops& ops) const {
  const auto holds = [&](const std::vector<std::size_t>& layers) {
    return std::find(layers.begin(), layers.end(), layer) != layers.end();
  };
  for (std::size_t slot = 0; slot < kSlots; ++slot)
    if (holds(keep[slot])) kept.at(slot) = x;
  for (std::size_t slot = 0; slot < kSlots; ++slot)
    if (holds(mix[slot])) x = ops.add(ops.multiply(kept.at(slot), weight), ops.multiply(x, 1 - weight));
  return x;
}

}  // namespace assay
