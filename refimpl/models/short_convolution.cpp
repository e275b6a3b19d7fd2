// The gated short convolution of LFM2: B | C | x = in_proj(x);  out_proj(C · conv(B · x)).
#include "refimpl/models/recurrent_mixer.h"

namespace assay {
namespace {

class ShortConvolution final : public RecurrentMixer {
 public:
  ShortConvolution(const Weights& weights, std::size_t layer)
      : in_(BiasedWeight::get(weights, {.role = Role::recurrent_in, .layer = layer})),
        out_(BiasedWeight::get(weights, {.role = Role::recurrent_out, .layer = layer})),
        convolution_(CausalConvolution::get(weights, layer)) {
    require_shape(in_.weight.outputs() == 3 * convolution_.channels, in_.weight);
    require_shape(out_.weight.inputs() == convolution_.channels, out_.weight);
  }

  std::vector<StateShape> states() const override { return {convolution_.state()}; }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    const std::size_t width = convolution_.channels;
    const Matrix in = in_(x, ops);  // [tokens, 3 · width]
    const Matrix given = ops.output_gate(in.part(2 * width, width), in.part(0, width), GateForm::identity);
    at("conv_in", given);
    const Matrix mixed = convolution_(given, layer, 0, false, batch, ops);
    at("conv", mixed);
    return out_(ops.output_gate(mixed, in.part(width, width), GateForm::identity), ops);
  }

 private:
  BiasedWeight in_, out_;
  CausalConvolution convolution_;
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_short_convolution(const Weights& weights, std::size_t layer) {
  return std::make_unique<ShortConvolution>(weights, layer);
}

}  // namespace assay
