// Lightning attention (arXiv 2501.08313; Ling and Ring 2.5, 2.6, and linear 2.0): of each head, with q and k normed, rotated, and q / √d,
//
//   S ← exp(-s) S + k ⊗ v;  o = qᵀS;  dense(norm(o) · w · σ(g_proj(x)))
//
// s is the head's slope of linear biases (ALiBi) × (1 - layer / (layers - 1) + 1e-5); norms are of groups of heads. It is a
// state space whose steps are 1. From the projection to the gated norm all is float32 at least, also where weights are bfloat16.
// Source: vLLM 0.32's bailing_linear_attn.py.
#include <cmath>

#include "core/system/error.h"
#include "refimpl/models/head_attention.h"
#include "refimpl/models/own_weight.h"
#include "refimpl/models/recurrent_mixer.h"
#include "refimpl/ops/apart.h"
#include "refimpl/ops/reference.h"

namespace assay {
namespace {

std::vector<double> decays_of(std::size_t heads, std::size_t layer, std::size_t layers) {
  const double depth = layers <= 1 ? 0 : static_cast<double>(layer) / static_cast<double>(layers - 1);
  std::vector<double> decays = alibi_slopes(heads, 8);
  for (double& decay : decays) decay *= 1 - depth + 1e-5;
  return decays;
}

class LightningAttention final : public RecurrentMixer {
 public:
  LightningAttention(const Weights& weights, std::size_t layer, const RecurrentForm& form)
      : form_(form),
        rope_(hyperparameters(weights.tree()).ropes.back()),
        in_(BiasedWeight::get(weights, {.role = Role::recurrent_in, .layer = layer})),
        out_(BiasedWeight::get(weights, {.role = Role::recurrent_out, .layer = layer})),
        gate_(weights.get({.role = Role::recurrent_gate, .layer = layer})),
        norm_(weights.get({.role = Role::recurrent_norm, .layer = layer})),
        heads_(key_heads_of(weights.tree(), layer)),
        whole_heads_(key_heads_of(weights.whole_tree(), layer)) {
    require_shape(heads_ > 0 && gate_.outputs() % heads_ == 0, gate_);
    width_ = gate_.outputs() / heads_;
    require_shape(in_.weight.outputs() == 3 * gate_.outputs(), in_.weight);
    require_shape(out_.weight.inputs() == gate_.outputs(), out_.weight);
    const NormRule rule = {NormKind::rms, NormForm::weight_inside, form.epsilon};
    q_norm_ = Norm(weights.find({.role = Role::q_norm, .layer = layer}), {}, rule);
    k_norm_ = Norm(weights.find({.role = Role::k_norm, .layer = layer}), {}, rule);
    std::vector<double> logs = decays_of(whole_heads_, layer, weights.tree().layers);
    for (double& decay : logs) decay = std::log(decay);
    decay_logs_ = OwnWeight("decays of lightning attention", std::move(logs));
    nothing_ = OwnWeight("nothing", std::vector<double>(heads_));
  }

  std::vector<StateShape> states() const override { return {{heads_ * width_, width_}}; }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    const std::size_t inner = heads_ * width_;
    const Matrix qkv = in_(x, ops);  // [tokens, 3 · heads · width]
    ReferenceOps float32({Precision::f32}, 1);
    Ops& wide = ops.arithmetic().bfloat16() ? float32 : ops;
    const RopeAngles angles = rope_angles(rope_, batch, wide);
    const auto placed = [&](const Matrix& rows, const Norm& norm) {
      Matrix y = norm(wide.multiply(rows, 1), wide);
      wide.rope(y, {.heads = heads_, .head_dim = width_, .cos = angles.cos, .sin = angles.sin});
      return y;
    };
    const Matrix q =
        wide.multiply(placed(qkv.part(0, inner), q_norm_), 1 / std::sqrt(static_cast<double>(width_)));
    const Matrix k = placed(qkv.part(inner, inner), k_norm_), v = qkv.part(2 * inner, inner);
    at("q", q);
    at("k", k);
    at("v", v);
    const Matrix o = LightningScan{.q = q,
                                   .k = k,
                                   .v = v,
                                   .decay_log = decay_logs_.view_of(first_head(ops), heads_),
                                   .nothing = nothing_.view(),
                                   .form = form_.scan,
                                   .rounding = ResultRounding::float32,
                                   .states = states_of(batch, layer, 0)}
                         .run(ops);
    at("scan", o);
    const Matrix y = ops.run(GatedNormCall{.x = o,
                                           .gate = ops.linear(x, gate_),
                                           .weight = norm_,
                                           .epsilon = form_.epsilon,
                                           .group = whole_heads_ * width_ / form_.norm_groups,
                                           .gate_form = GateForm::sigmoid,
                                           .form = NormForm::weight_inside});
    at("scan_norm", y);
    return out_(y, ops);
  }

 private:
  std::size_t first_head(Ops& ops) const {
    const auto* apart = dynamic_cast<const OpsApart*>(&ops);
    return apart == nullptr ? 0 : apart->first_key_head(whole_heads_);
  }

  RecurrentForm form_;
  RopeRule rope_;
  BiasedWeight in_, out_;
  WeightView gate_, norm_;
  std::size_t heads_, whole_heads_, width_ = 0;
  Norm q_norm_, k_norm_;
  OwnWeight decay_logs_, nothing_;  // of all heads of the model; of those here
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_lightning_attention(const Weights& weights, std::size_t layer,
                                                         const RecurrentForm& form) {
  return std::make_unique<LightningAttention>(weights, layer, form);
}

}  // namespace assay
