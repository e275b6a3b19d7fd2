// Mamba with its channels in groups (Zamba, arXiv 2405.16712): each has matrices of its own behind the convolution, and in_proj makes
// a channel's x beside its z.
//
//   x z x z … = in_proj(x);  x = silu(conv(x));  of group g: dt | B | C = x_proj_g(x_g);  y_g = state_space(x_g, B, C, dt_proj_g(dt))
//   out_proj(y · silu(z))
#include "refimpl/models/own_weight.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {
namespace {

std::vector<double> all_rows(const std::vector<WeightView>& of_groups) {
  std::vector<double> all;
  for (const WeightView& view : of_groups) {
    const std::vector<double> own = decode_vector(view);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

class GroupedMamba final : public RecurrentMixer {
 public:
  GroupedMamba(const Weights& weights, std::size_t layer, std::size_t groups, const RecurrentForm& form)
      : form_(form),
        in_(BiasedWeight::get(weights, {.role = Role::recurrent_in, .layer = layer})),
        out_(BiasedWeight::get(weights, {.role = Role::recurrent_out, .layer = layer})),
        convolution_(CausalConvolution::get(weights, layer)) {
    const auto of_groups = [&](Role role) {
      std::vector<WeightView> views;
      for (std::size_t g = 0; g < groups; ++g)
        views.push_back(weights.get({.role = role, .layer = layer, .expert = g}));
      return views;
    };
    select_ = of_groups(Role::recurrent_beta);
    step_ = of_groups(Role::recurrent_decay);
    const std::vector<WeightView> decays = of_groups(Role::decay);
    state_ = decays.front().columns;
    rank_ = step_.front().inputs();
    decay_log_ = OwnWeight("decays of all groups", all_rows(decays));
    decay_log_.rows = decay_log_.values.size() / state_;
    decay_log_.columns = state_;
    inner_ = decay_log_.rows;
    skip_ =
        OwnWeight("skips of all groups", decode_vector(weights.get({.role = Role::skip, .layer = layer})));
    const WeightKey bias = {.role = Role::recurrent_decay, .layer = layer, .bias = true};
    step_bias_ = OwnWeight("biases of all groups", decode_vector(weights.get(bias)));
    require_shape(convolution_.channels == inner_ && out_.weight.inputs() == inner_, out_.weight);
    require_shape(in_.weight.outputs() == 2 * inner_, in_.weight);
    require_shape(select_.front().outputs() == rank_ + 2 * state_, select_.front());
    require_shape(skip_.values.size() == inner_ && step_bias_.values.size() == inner_, step_.front());
  }

  std::vector<StateShape> states() const override { return {convolution_.state(), {inner_, state_}}; }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    const Matrix in = in_(x, ops);  // [tokens, 2 · inner]
    const Matrix given = ops.of_each(in, 2, 0, 1), gate = ops.of_each(in, 2, 1, 1);
    at("conv_in", given);
    const Matrix mixed = convolution_(given, layer, 0, true, batch, ops);
    at("conv", mixed);
    StateSpaceCall call = selected(mixed, ops);
    at("decay", call.step);
    call.sequences = states_of(batch, layer, 1);
    const Matrix y = ops.run(call);
    at("scan", y);
    const Matrix out = ops.gated_activation(gate, y, {.activation = Activation::silu});
    at("scan_norm", out);
    return out_(out, ops);
  }

 private:
  StateSpaceCall selected(const Matrix& x, Ops& ops) const {
    const std::size_t width = inner_ / select_.size();
    Matrix b, c, step;
    for (std::size_t g = 0; g < select_.size(); ++g) {
      const Matrix own = ops.linear(x.part(g * width, width), select_[g]);  // [tokens, rank + 2 · state]
      const auto add = [&](Matrix& all, const Matrix& more) {
        all = g == 0 ? more : ops.concatenate(all, more);
      };
      add(b, own.part(rank_, state_));
      add(c, own.part(rank_ + state_, state_));
      add(step, ops.linear(own.part(0, rank_), step_[g]));
    }
    return {.x = x,
            .b = b,
            .c = c,
            .step = step,
            .decay_log = decay_log_.view(),
            .skip = skip_.view(),
            .step_bias = step_bias_.view(),
            .heads = inner_,
            .head_dim = 1,
            .groups = select_.size(),
            .state = state_,
            .form = form_.scan,
            .rounding = ResultRounding::float32,
            .sequences = {}};
  }

  RecurrentForm form_;
  BiasedWeight in_, out_;
  CausalConvolution convolution_;
  std::vector<WeightView> select_, step_;  // of each group
  OwnWeight decay_log_, skip_, step_bias_;
  std::size_t inner_ = 0, state_ = 0, rank_ = 0;
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_grouped_mamba(const Weights& weights, std::size_t layer,
                                                   std::size_t groups, const RecurrentForm& form) {
  return std::make_unique<GroupedMamba>(weights, layer, groups, form);
}

}  // namespace assay
