#include "refimpl/models/inkling_blocks.h"

namespace assay {

// States 0 and 1 of a layer are those of keys and values.
InklingBlocks InklingBlocks::read(const Weights& weights, std::size_t layer, const InklingForm& form,
                                  GatedMlp& mlp, Mixture* mixture) {
  const auto convolution = [&](int number) {
    const WeightKey key = {.role = Role::convolution, .part = Part::norm, .layer = layer, .half = number};
    return ResidualConvolution(weights, key, static_cast<std::size_t>(2 + number));
  };
  InklingBlocks blocks = {convolution(0), convolution(1)};
  if (mixture == nullptr) {
    const WeightView scale =
        weights.get({.role = Role::layer_scale, .part = Part::dense_mlp, .layer = layer});
    mlp.down_scale = decode_vector(scale).at(0);
    mlp.alternating = static_cast<bool>(mlp.gate_up);
    return blocks;
  }
  mixture->shared.reset();
  mixture->sinks =
      std::make_shared<const SharedSinks>(SharedSinks::read(weights, layer, *mixture, form.route_scale));
  return blocks;
}

}  // namespace assay
