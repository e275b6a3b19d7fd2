// Griffin's gated linear recurrence (RG-LRU, arXiv 2402.19427, section 2.4), as RecurrentGemma has it:
//
//   u = conv(x_branch);  i = σ(Wᵢ u + bᵢ), r = σ(Wᵣ u + bᵣ), matrices of each head;  a = exp(-8 r softplus(Λ))
//   h <- a h + √(1 - a²) i u, and where a text begins h <- i u;  out(h · act(y_branch))
//
// As the operation of state spaces has it, every channel is a head whose step is r and whose input is what is added, over r.
#include <algorithm>
#include <cmath>

#include "refimpl/models/own_weight.h"
#include "refimpl/models/recurrent_mixer.h"
#include "refimpl/ops/as_it_is.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

constexpr double kSharpness = 8, kLeastGate = 1e-30;

// A matrix for each head.
struct HeadwiseGate {
  std::vector<WeightView> weights;
  WeightView bias;  // [heads, width]

  static HeadwiseGate get(const Weights& weights, Role role, std::size_t layer, std::size_t heads) {
    HeadwiseGate gate;
    for (std::size_t head = 0; head < heads; ++head)
      gate.weights.push_back(weights.get({.role = role, .layer = layer, .expert = head}));
    gate.bias = weights.get({.role = role, .layer = layer, .bias = true});
    return gate;
  }
  Matrix operator()(const Matrix& x, Ops& ops) const {
    const std::size_t width = x.columns() / weights.size();
    Matrix all;
    for (std::size_t head = 0; head < weights.size(); ++head) {
      const Matrix own = ops.linear(x.part(head * width, width), weights[head], bias.row_range(head, 1));
      all = head == 0 ? own : ops.concatenate(all, own);
    }
    return all;
  }
};

class LinearRecurrence final : public RecurrentMixer {
 public:
  LinearRecurrence(const Weights& weights, std::size_t layer, const RecurrentForm& form)
      : form_(form),
        heads_(key_heads_of(weights.tree(), layer)),
        y_(BiasedWeight::get(weights, {.role = Role::recurrent_gate, .layer = layer})),
        x_(BiasedWeight::get(weights, {.role = Role::recurrent_in, .layer = layer})),
        out_(BiasedWeight::get(weights, {.role = Role::recurrent_out, .layer = layer})),
        convolution_(CausalConvolution::get(weights, layer)),
        input_(HeadwiseGate::get(weights, Role::recurrent_beta, layer, heads_)),
        forget_(HeadwiseGate::get(weights, Role::recurrent_decay, layer, heads_)) {
    require_all_heads(weights, layer);
    for (const double p : decode_vector(weights.get({.role = Role::decay, .layer = layer})))
      rates_.push_back(kSharpness * softplus(p));
    require_shape(rates_.size() == convolution_.channels && heads_ > 0, convolution_.weight);
    std::vector<double> logs;
    for (const double rate : rates_) logs.push_back(std::log(rate));
    decay_log_ = OwnWeight("decays", std::move(logs));
    nothing_ = OwnWeight("nothing", std::vector<double>(rates_.size()));
  }

  std::vector<StateShape> states() const override { return {convolution_.state(), {rates_.size(), 1}}; }

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, Ops& ops,
                 const TapScope& at) const override {
    const Matrix beside = ops.activation(y_(x, ops), form_.activation);
    const Matrix u = convolution_(x_(x, ops), layer, 0, false, batch, ops);  // [tokens, width]
    at("conv", u);
    const Matrix h = scan(u, layer, batch, ops);
    at("scan", h);
    return out_(ops.output_gate(h, beside, GateForm::identity), ops);
  }

 private:
  Matrix scan(const Matrix& u, std::size_t layer, const Batch& batch, Ops& ops) const {
    const std::size_t width = rates_.size(), tokens = u.rows();
    const Arithmetic& arithmetic = ops.arithmetic();
    const std::vector<double> inputs = ops.download(input_(u, ops)), forgets = ops.download(forget_(u, ops));
    std::vector<double> given = ops.download(u), steps(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) {
      const double r = std::max(logistic(forgets[i]), kLeastGate);
      const bool begins = batch.positions.at(i / width) == 0;
      const double share = begins ? 1 : std::sqrt(1 - std::exp(-2 * r * rates_[i % width]));
      steps[i] = arithmetic.stage(std::log(std::expm1(r)));  // whose softplus is r
      given[i] =
          arithmetic.round(given[i] * logistic(inputs[i]) * share) / arithmetic.stage(softplus(steps[i]));
    }
    const Matrix ones = ops.upload(std::vector<double>(tokens, 1.0), tokens, 1);
    return ops.run(StateSpaceCall{.x = as_it_is(ops, given, tokens, width),
                                  .b = ones,
                                  .c = ones,
                                  .step = as_it_is(ops, steps, tokens, width),
                                  .decay_log = decay_log_.view(),
                                  .skip = nothing_.view(),
                                  .step_bias = nothing_.view(),
                                  .heads = width,
                                  .head_dim = 1,
                                  .state = 1,
                                  .form = form_.scan,
                                  .sequences = states_of(batch, layer, 1)});
  }

  RecurrentForm form_;
  std::size_t heads_;
  BiasedWeight y_, x_, out_;
  CausalConvolution convolution_;
  HeadwiseGate input_, forget_;
  std::vector<double> rates_;  // 8 softplus(Λ)
  OwnWeight decay_log_, nothing_;
};

}  // namespace

std::unique_ptr<RecurrentMixer> read_linear_recurrence(const Weights& weights, std::size_t layer,
                                                       const RecurrentForm& form) {
  return std::make_unique<LinearRecurrence>(weights, layer, form);
}

}  // namespace assay
