// Gated DeltaNet as Qwen3-Next and Qwen3.5 have it:
//
//   q, k, v = split(act(conv(in_proj(x))));  o = delta_rule(q, k, v; a, b);  out_proj(norm(o) · w · silu(z))
//
// Qwen3-Next keeps q, k, v and z in one matrix, b and a in another, rows of a key head together:
// [q | k | v of its value heads | z of them], [b of them | a of them].
#include <cmath>

#include "refimpl/models/recurrent_mixer.h"

namespace assay {
namespace {

struct DeltaNetSizes {
  std::size_t key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
  std::size_t keys() const { return key_heads * key_dim; }
  std::size_t values() const { return value_heads * value_dim; }
};

class GatedDeltaNet final : public RecurrentMixer {
 public:
  GatedDeltaNet(const Weights& weights, std::size_t layer, const RecurrentForm& form) : form_(form) {
    const auto get = [&](Role role) { return weights.get({.role = role, .layer = layer}); };
    in_ = get(Role::recurrent_in);
    gate_ = weights.find({.role = Role::recurrent_gate, .layer = layer});
    beta_ = get(Role::recurrent_beta);
    decay_ = weights.find({.role = Role::recurrent_decay, .layer = layer});
    convolution_ = CausalConvolution::get(weights, layer);
    decay_log_ = get(Role::decay);
    decay_bias_ = get(Role::time_bias);
    norm_ = get(Role::recurrent_norm);
    out_ = get(Role::recurrent_out);
    read_sizes(weights.tree(), layer);
  }

  std::vector<StateShape> states() const override {
    return {convolution_.state(), {sizes_.value_heads * sizes_.key_dim, sizes_.value_dim}};
  }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    Projected p = project(x, ops);
    at("conv_in", p.qkv);
    at("beta", p.beta);
    at("decay", p.decay);
    const Matrix qkv =
        convolution_.activated(p.qkv, layer, 0, form_.activation, batch, ops);  // [tokens, 2 · keys + values]
    at("conv", qkv);
    const DeltaNetSizes& n = sizes_;
    const Matrix o = ops.run(DeltaRuleCall{.q = qkv.part(0, n.keys()),
                                           .k = qkv.part(n.keys(), n.keys()),
                                           .v = qkv.part(2 * n.keys(), n.values()),
                                           .decay = p.decay,
                                           .beta = p.beta,
                                           .decay_log = decay_log_,
                                           .decay_bias = decay_bias_,
                                           .key_heads = n.key_heads,
                                           .value_heads = n.value_heads,
                                           .key_dim = n.key_dim,
                                           .value_dim = n.value_dim,
                                           .scale = 1 / std::sqrt(static_cast<double>(n.key_dim)),
                                           .form = form_.scan,
                                           .sequences = states_of(batch, layer, 1)});
    at("scan", o);  // [tokens, values]
    const Matrix y = ops.run(GatedNormCall{.x = o,
                                           .gate = p.gate,
                                           .weight = norm_,
                                           .epsilon = form_.epsilon,
                                           .group = n.value_dim,
                                           .gate_form = form_.norm_gate});
    at("scan_norm", y);
    return ops.linear(y, out_);  // [tokens, hidden]
  }

 private:
  struct Projected {
    Matrix qkv, gate, beta, decay;  // [tokens, 2 · keys + values], [values], [value_heads] twice
  };

  Projected project(const Matrix& x, Ops& ops) const {
    std::vector<LinearCall> calls = {{x, in_}, {x, beta_}};
    if (gate_) calls.insert(calls.end(), {{x, gate_}, {x, decay_}});
    const std::vector<Matrix> made = ops.run_together(calls);
    const Matrix &in = made[0], &beta = made[1];
    if (gate_) return {in, made[2], beta, made[3]};
    const std::size_t k = sizes_.key_dim, each = sizes_.value_heads / sizes_.key_heads,
                      v = each * sizes_.value_dim, width = 2 * k + 2 * v;
    const auto part = [&](std::size_t first, std::size_t count) {
      return ops.of_each(in, width, first, count);
    };
    return {ops.concatenate(ops.concatenate(part(0, k), part(k, k)), part(2 * k, v)), part(2 * k + v, v),
            ops.of_each(beta, 2 * each, 0, each), ops.of_each(beta, 2 * each, each, each)};
  }

  void read_sizes(const ModuleTree& tree, std::size_t layer) {
    DeltaNetSizes& n = sizes_;
    n.key_heads = key_heads_of(tree, layer);
    n.value_heads = decay_log_.rows * decay_log_.columns;
    n.value_dim = norm_.rows * norm_.columns;
    require_shape(n.key_heads > 0 && n.value_heads % n.key_heads == 0, decay_log_);
    require_shape(convolution_.channels > n.values(), convolution_.weight);
    n.key_dim = (convolution_.channels - n.values()) / (2 * n.key_heads);
    require_shape(2 * n.keys() + n.values() == convolution_.channels, convolution_.weight);
    require_shape(out_.inputs() == n.values(), out_);
    require_shape(in_.outputs() == convolution_.channels + (gate_ ? 0 : n.values()), in_);
    require_shape(beta_.outputs() == (gate_ ? 1 : 2) * n.value_heads, beta_);
    if (gate_) require_shape(gate_.outputs() == n.values() && decay_, gate_);
  }

  RecurrentForm form_;
  DeltaNetSizes sizes_;
  WeightView in_, gate_, beta_, decay_;  // fused: in_ and beta_ alone
  CausalConvolution convolution_;
  WeightView decay_log_, decay_bias_, norm_, out_;
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_gated_delta_net(const Weights& weights, std::size_t layer,
                                                     const RecurrentForm& form) {
  return std::make_unique<GatedDeltaNet>(weights, layer, form);
}

}  // namespace assay
