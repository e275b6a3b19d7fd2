// Lightning attention (arXiv 2501.08313) as MiniMax-01 has it. For each head, with q, k and v of act(qkv(x)),
//
//   S <- λ S + v kᵀ;  o = S q;  out(norm(o) · σ(gate(x)))
//
// where λ = exp(-2^(-8 (h + 1) / heads) · (1 - layer / (layers - 1 + 1e-5) + 1e-5)). This is a state space whose steps are all 1.
// The norm's ε is 1e-6, whatever the others' is.
#include <cmath>

#include "refimpl/models/own_weight.h"
#include "refimpl/models/recurrent_mixer.h"

namespace assay {
namespace {

constexpr double kLightningEpsilon = 1e-6, kNearNothing = 1e-5;

class MinimaxAttention final : public RecurrentMixer {
 public:
  MinimaxAttention(const Weights& weights, std::size_t layer, const RecurrentForm& form)
      : form_(form), heads_(key_heads_of(weights.tree(), layer)) {
    const auto get = [&](Role role) { return weights.get({.role = role, .layer = layer}); };
    qkv_ = get(Role::recurrent_in), gate_ = get(Role::recurrent_gate), out_ = get(Role::recurrent_out);
    norm_ = get(Role::recurrent_norm);
    require_all_heads(weights, layer);
    require_shape(heads_ > 0 && out_.inputs() % heads_ == 0 && qkv_.outputs() == 3 * out_.inputs(), qkv_);
    width_ = out_.inputs() / heads_;
    const auto count = static_cast<double>(weights.tree().layers);
    const double factor = 1 - static_cast<double>(layer) / (count - 1 + kNearNothing) + kNearNothing;
    std::vector<double> logs;  // of the slopes
    for (std::size_t head = 1; head <= heads_; ++head)
      logs.push_back(-8 * std::log(2.0) * static_cast<double>(head) / static_cast<double>(heads_) +
                     std::log(factor));
    decay_log_ = OwnWeight("decays", std::move(logs));
    nothing_ = OwnWeight("nothing", std::vector<double>(heads_));
  }

  std::vector<StateShape> states() const override { return {{heads_ * width_, width_}}; }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    const Matrix all = ops.activation(ops.linear(x, qkv_), form_.activation);  // q, k and v of each head
    const auto part = [&](std::size_t i) { return ops.of_each(all, 3 * width_, i * width_, width_); };
    const Matrix y = LightningScan{.q = part(0),
                                   .k = part(1),
                                   .v = part(2),
                                   .decay_log = decay_log_.view(),
                                   .nothing = nothing_.view(),
                                   .form = form_.scan,
                                   .states = states_of(batch, layer, 0)}
                         .run(ops);
    at("scan", y);
    const Matrix normed = ops.rms_norm(y, norm_, kLightningEpsilon, NormForm::weight_last);
    at("scan_norm", normed);
    return ops.linear(ops.output_gate(normed, ops.linear(x, gate_)), out_);
  }

 private:
  RecurrentForm form_;
  std::size_t heads_, width_ = 0;
  WeightView qkv_, gate_, out_, norm_;
  OwnWeight decay_log_, nothing_;
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_minimax_attention(const Weights& weights, std::size_t layer,
                                                       const RecurrentForm& form) {
  return std::make_unique<MinimaxAttention>(weights, layer, form);
}

}  // namespace assay
