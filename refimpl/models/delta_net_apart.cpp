// The delta rule of q, k and v that have a matrix and a convolution each:
//
//   q, k, v = act(conv(…_proj(x))) each;  o = delta_rule(q, k, v; decay(x), b(x));  o_proj(norm(o) · w · act(gate(x)))
//
// Kimi Delta Attention (arXiv 2510.26692): a decay for each channel of a key, decay and gate of two matrices of low
// rank, act = σ. OLMo Hybrid's Gated DeltaNet: a decay for each head, one matrix for it and one for the gate, act = silu.
#include <cmath>
#include <utility>

#include "core/system/error.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {
namespace {

// One matrix, or two of low rank: b(a(x)).
struct LowRank {
  WeightView first, second;
  static LowRank get(const Weights& weights, Role role, std::size_t layer) {
    return {weights.get({.role = role, .layer = layer}),
            weights.find({.role = role, .layer = layer, .half = 1})};
  }
  Matrix operator()(const Matrix& x, Ops& ops) const {
    const Matrix y = ops.linear(x, first);
    return second ? ops.linear(y, second) : y;
  }
};

// Kimi K3 stores as many decays as a head is wide, and uses the first ones.
void keep_first(WeightView& vector, std::size_t count) {
  if (vector.rows * vector.columns <= count) return;
  if (vector.rows == 1) {  // one row of many becomes rows of one
    if (vector.codes == nullptr || vector.kind != FormKind::plain || info(vector.type).block_elements != 1)
      throw Error::input(
          "more decays are stored than heads decay, and in a form of which none can be left out");
    std::swap(vector.rows, vector.columns);
    vector.row_bytes = info(vector.type).block_bytes;
  }
  vector = vector.row_range(0, count);
}

class DeltaNetApart final : public RecurrentMixer {
 public:
  DeltaNetApart(const Weights& weights, std::size_t layer, const RecurrentForm& form)
      : form_(form),
        decay_(LowRank::get(weights, Role::recurrent_decay, layer)),
        gate_(LowRank::get(weights, Role::recurrent_gate, layer)) {
    const auto get = [&](Role role) { return weights.get({.role = role, .layer = layer}); };
    constexpr Role kRoles[] = {Role::q, Role::k, Role::v};
    for (int i = 0; i < 3; ++i) {
      in_[i] = get(kRoles[i]);
      convolutions_[i] = CausalConvolution::get(weights, layer, i);
      require_shape(convolutions_[i].channels == in_[i].outputs(), convolutions_[i].weight);
    }
    beta_ = get(Role::recurrent_beta);
    decay_log_ = get(Role::decay);
    decay_bias_ = get(Role::time_bias);
    norm_ = get(Role::recurrent_norm);
    out_ = get(Role::recurrent_out);
    value_heads_ = beta_.outputs();
    value_dim_ = norm_.rows * norm_.columns;
    keep_first(decay_log_, value_heads_);
    key_heads_ = key_heads_of(weights.tree(), layer);
    require_shape(key_heads_ > 0 && in_[0].outputs() % key_heads_ == 0 && value_heads_ % key_heads_ == 0,
                  in_[0]);
    key_dim_ = in_[0].outputs() / key_heads_;  // NOLINT(clang-analyzer-core.DivideZero): required above
    require_shape(in_[1].outputs() == in_[0].outputs(), in_[1]);
    require_shape(out_.inputs() == value_heads_ * value_dim_ && in_[2].outputs() == out_.inputs(), out_);
  }

  std::vector<StateShape> states() const override {
    return {convolutions_[0].state(),
            convolutions_[1].state(),
            convolutions_[2].state(),
            {value_heads_ * key_dim_, value_dim_}};
  }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    const LinearCall calls[] = {{x, in_[0]}, {x, in_[1]}, {x, in_[2]}};
    const std::vector<Matrix> made = ops.run_together(calls);
    Matrix qkv[3];  // [tokens, keys] twice, [tokens, values]
    for (std::size_t i = 0; i < 3; ++i)
      qkv[i] = convolutions_[i].activated(made[i], layer, i, form_.activation, batch, ops);
    at("q", qkv[0]);
    at("k", qkv[1]);
    at("v", qkv[2]);
    const Matrix decay = decay_(x, ops), beta = ops.linear(x, beta_);
    at("decay", decay);
    at("beta", beta);
    const Matrix o = ops.run(DeltaRuleCall{.q = qkv[0],
                                           .k = qkv[1],
                                           .v = qkv[2],
                                           .decay = decay,
                                           .beta = beta,
                                           .decay_log = decay_log_,
                                           .decay_bias = decay_bias_,
                                           .decay_floor = form_.decay_floor,
                                           .beta_scale = form_.beta_scale,
                                           .key_heads = key_heads_,
                                           .value_heads = value_heads_,
                                           .key_dim = key_dim_,
                                           .value_dim = value_dim_,
                                           .scale = 1 / std::sqrt(static_cast<double>(key_dim_)),
                                           .form = form_.scan,
                                           .sequences = states_of(batch, layer, 3)});
    at("scan", o);
    const Matrix y = ops.run(GatedNormCall{.x = o,
                                           .gate = gate_(x, ops),
                                           .weight = norm_,
                                           .epsilon = form_.epsilon,
                                           .group = value_dim_,
                                           .gate_form = form_.gate_form,
                                           .form = form_.norm});
    at("scan_norm", y);
    return ops.linear(y, out_);
  }

 private:
  RecurrentForm form_;
  LowRank decay_, gate_;
  WeightView in_[3];
  CausalConvolution convolutions_[3];
  WeightView beta_, decay_log_, decay_bias_, norm_, out_;
  std::size_t key_heads_ = 0, value_heads_ = 0, key_dim_ = 0, value_dim_ = 0;
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_delta_net_apart(const Weights& weights, std::size_t layer,
                                                     const RecurrentForm& form) {
  return std::make_unique<DeltaNetApart>(weights, layer, form);
}

}  // namespace assay
