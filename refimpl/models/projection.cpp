#include "refimpl/models/projection.h"

namespace assay {

Projection find_projection(const Weights& weights, Role role, std::size_t layer) {
  return {weights.find({.role = role, .layer = layer}),
          weights.find({.role = role, .layer = layer, .bias = true})};
}

Projection get_projection(const Weights& weights, Role role, std::size_t layer) {
  weights.get({.role = role, .layer = layer});
  return find_projection(weights, role, layer);
}

}  // namespace assay
