// Mamba (arXiv 2312.00752), each channel a head of its own:
//
//   x | z = in_proj(x);  x = act(conv(x));  dt | B | C = x_proj(x);  y = state_space(x, B, C, dt_proj(dt))
//   out_proj(y · silu(z))
//
// Jamba has norms of dt, B and C, and Falcon-Mamba the same without weights.
#include "refimpl/models/norms.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {
namespace {

class Mamba1 final : public RecurrentMixer {
 public:
  Mamba1(const Weights& weights, std::size_t layer, const RecurrentForm& form)
      : form_(form),
        in_(BiasedWeight::get(weights, {.role = Role::recurrent_in, .layer = layer})),
        out_(BiasedWeight::get(weights, {.role = Role::recurrent_out, .layer = layer})),
        convolution_(CausalConvolution::get(weights, layer)) {
    const auto get = [&](Role role) { return weights.get({.role = role, .layer = layer}); };
    select_ = get(Role::recurrent_beta);
    step_ = get(Role::recurrent_decay);
    step_bias_ = weights.get({.role = Role::recurrent_decay, .layer = layer, .bias = true});
    decay_log_ = get(Role::decay);
    skip_ = get(Role::skip);
    inner_ = decay_log_.rows;
    state_ = decay_log_.columns;
    rank_ = step_.inputs();
    for (int i = 0; i < 3; ++i)
      norms_[i] = form.inner_norms != 0
                      ? Norm::unweighted(i == 0 ? rank_ : state_, {.epsilon = form.inner_norms})
                      : Norm(weights.find({.role = Role::recurrent_norm, .layer = layer, .half = i}), {},
                             {.epsilon = form.epsilon});
    require_shape(convolution_.channels == inner_ && out_.weight.inputs() == inner_, out_.weight);
    require_shape(in_.weight.outputs() == 2 * inner_, in_.weight);
    require_shape(select_.outputs() == rank_ + 2 * state_ && step_.outputs() == inner_, select_);
  }

  std::vector<StateShape> states() const override { return {convolution_.state(), {inner_, state_}}; }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    const Matrix in = in_(x, ops);  // [tokens, 2 · inner]
    at("conv_in", in.part(0, inner_));
    const Matrix mixed = convolution_.activated(in.part(0, inner_), layer, 0, form_.activation, batch, ops);
    at("conv", mixed);
    const Matrix selected = ops.linear(mixed, select_);  // [tokens, rank + 2 · state]
    const Matrix step = ops.linear(norms_[0](selected.part(0, rank_), ops), step_);
    at("decay", step);
    const Matrix y = ops.run(StateSpaceCall{.x = mixed,
                                            .b = norms_[1](selected.part(rank_, state_), ops),
                                            .c = norms_[2](selected.part(rank_ + state_, state_), ops),
                                            .step = step,
                                            .decay_log = decay_log_,
                                            .skip = skip_,
                                            .step_bias = step_bias_,
                                            .heads = inner_,
                                            .head_dim = 1,
                                            .groups = 1,
                                            .state = state_,
                                            .form = form_.scan,
                                            .rounding = ResultRounding::float32,
                                            .sequences = states_of(batch, layer, 1)});
    at("scan", y);
    const Matrix out = ops.gated_activation(in.part(inner_, inner_), y, {.activation = Activation::silu});
    at("scan_norm", out);
    return out_(out, ops);
  }

 private:
  RecurrentForm form_;
  BiasedWeight in_, out_;
  CausalConvolution convolution_;
  WeightView select_, step_, step_bias_, decay_log_, skip_;
  Norm norms_[3];  // of dt, B and C; or none
  std::size_t inner_ = 0, state_ = 0, rank_ = 0;
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_mamba1(const Weights& weights, std::size_t layer,
                                            const RecurrentForm& form) {
  return std::make_unique<Mamba1>(weights, layer, form);
}

}  // namespace assay
