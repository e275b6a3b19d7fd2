// Mamba-2 (arXiv 2405.21060):
//
//   z | x B C | dt = in_proj(x);  x, B, C = split(act(conv(x B C)));  y = state_space(x, B, C, dt)
//   out_proj(norm(y · silu(z)) · w), the norm over each group's share; or without one, y · silu(z)
#include <algorithm>

#include "refimpl/models/recurrent_mixer.h"

namespace assay {
namespace {

class Mamba2 final : public RecurrentMixer {
 public:
  Mamba2(const Weights& weights, std::size_t layer, const RecurrentForm& form)
      : form_(form),
        in_(BiasedWeight::get(weights, {.role = Role::recurrent_in, .layer = layer})),
        out_(BiasedWeight::get(weights, {.role = Role::recurrent_out, .layer = layer})),
        convolution_(CausalConvolution::get(weights, layer)) {
    const auto get = [&](Role role) { return weights.get({.role = role, .layer = layer}); };
    decay_log_ = get(Role::decay);
    skip_ = get(Role::skip);
    step_bias_ = get(Role::time_bias);
    norm_ = weights.find({.role = Role::recurrent_norm, .layer = layer});
    read_sizes(weights.tree(), layer);
  }

  std::vector<StateShape> states() const override { return {convolution_.state(), {inner_, state_}}; }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    const Matrix in = projected(x, ops);
    const Matrix gate = in.part(0, inner_), xbc = in.part(inner_, convolution_.channels);
    const Matrix step = in.part(inner_ + convolution_.channels, heads_);
    at("conv_in", xbc);
    at("decay", step);
    const Matrix mixed = convolution_.activated(xbc, layer, 0, form_.activation, batch, ops);
    at("conv", mixed);
    const std::size_t shared = groups_ * state_;
    const Matrix y = ops.run(StateSpaceCall{.x = mixed.part(0, inner_),
                                            .b = mixed.part(inner_, shared),
                                            .c = mixed.part(inner_ + shared, shared),
                                            .step = step,
                                            .decay_log = decay_log_,
                                            .skip = skip_,
                                            .step_bias = step_bias_,
                                            .least_step = form_.least_step,
                                            .most_step = form_.most_step,
                                            .heads = heads_,
                                            .head_dim = inner_ / heads_,
                                            .groups = groups_,
                                            .state = state_,
                                            .form = form_.scan,
                                            .rounding = ResultRounding::float32,
                                            .sequences = states_of(batch, layer, 1)});
    at("scan", y);
    const Matrix out = gated(y, gate, ops);
    at("scan_norm", out);
    return out_(out, ops);
  }

 private:
  // z | x B C | dt: [tokens, inner + channels + heads]
  Matrix projected(const Matrix& x, Ops& ops) const {
    const Matrix in = in_(form_.input_scale == 1 ? x : ops.multiply(x, form_.input_scale), ops);
    const std::array<double, 5>& factors = form_.part_scales;
    if (std::all_of(factors.begin(), factors.end(), [](double f) { return f == 1; })) return in;
    const std::size_t widths[] = {inner_, inner_, groups_ * state_, groups_ * state_, heads_};
    Matrix all;
    for (std::size_t i = 0, first = 0; i < 5; first += widths[i++]) {
      const Matrix part = ops.multiply(in.part(first, widths[i]), factors[i]);
      all = i == 0 ? part : ops.concatenate(all, part);
    }
    return all;
  }

  Matrix gated(const Matrix& y, const Matrix& gate, Ops& ops) const {
    if (!norm_) return ops.gated_activation(gate, y, {.activation = Activation::silu});
    return ops.run(GatedNormCall{.x = y,
                                 .gate = gate,
                                 .weight = norm_,
                                 .epsilon = form_.epsilon,
                                 .group = inner_ / groups_,
                                 .gate_first = form_.gate_first,
                                 .form = NormForm::weight_inside});
  }

  void read_sizes(const ModuleTree& tree, std::size_t layer) {
    heads_ = decay_log_.rows * decay_log_.columns;
    inner_ = out_.weight.inputs();
    std::size_t values = 0;  // of the state
    for (const RecurrentGeometry& geometry : tree.recurrent) {
      for (const std::uint64_t i : geometry.layers) {
        if (i == layer) values = geometry.state_values;
      }
    }
    require_shape(heads_ > 0 && inner_ > 0 && inner_ % heads_ == 0 && values % inner_ == 0, decay_log_);
    state_ = values / inner_;
    require_shape(state_ > 0 && convolution_.channels > inner_, convolution_.weight);
    groups_ = (convolution_.channels - inner_) / (2 * state_);
    require_shape(
        convolution_.channels == inner_ + 2 * groups_ * state_ && groups_ > 0 && heads_ % groups_ == 0,
        convolution_.weight);
    require_shape(in_.weight.outputs() == inner_ + convolution_.channels + heads_, in_.weight);
  }

  RecurrentForm form_;
  BiasedWeight in_, out_;
  CausalConvolution convolution_;
  WeightView decay_log_, skip_, step_bias_, norm_;  // norm_ may be absent
  std::size_t heads_ = 0, inner_ = 0, groups_ = 0, state_ = 0;
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_mamba2(const Weights& weights, std::size_t layer,
                                            const RecurrentForm& form) {
  return std::make_unique<Mamba2>(weights, layer, form);
}

}  // namespace assay
