#include "refimpl/models/feed_forward.h"

#include <algorithm>
#include <cmath>

#include "core/model/layer_geometry.h"
#include "core/system/error.h"
#include "refimpl/models/experts_one_by_one.h"
#include "refimpl/models/logit_choice.h"
#include "refimpl/models/shared_sinks.h"
#include "refimpl/models/sparse_mixer.h"

namespace assay {
namespace {

// [tokens, experts]: a routing as the matrix of its weights.
Matrix dense_weights(const Routing& routing, std::size_t experts, Ops& ops) {
  const std::vector<double> chosen = ops.download(routing.weights);  // [tokens, top_k]
  const std::size_t tokens = routing.weights.rows();
  std::vector<double> dense(tokens * experts);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    dense[i / routing.top_k * experts + static_cast<std::size_t>(routing.experts[i])] = chosen[i];
  return ops.upload(dense, tokens, experts);
}

void read_experts(const Weights& weights, std::size_t layer, ExpertWeights& experts) {
  const std::size_t count = experts_of(weights.whole_tree(), layer).count;
  const auto all = [&](Role role, bool bias) {
    std::vector<WeightView> views;
    for (std::size_t e = 0; e < count; ++e) {
      const WeightView view = weights.find(
          {.role = role, .part = Part::routed_expert, .layer = layer, .expert = e, .bias = bias});
      if (view) views.push_back(view);
    }
    if (!views.empty() && views.size() != count)
      throw Error::input("some experts of a layer have a weight that others lack").tensor(*views[0].name);
    return views;
  };
  experts.gate_up = all(Role::mlp_gate_up, false);
  experts.gate_up_bias = all(Role::mlp_gate_up, true);
  experts.gate = all(Role::mlp_gate, false);
  experts.gate_bias = all(Role::mlp_gate, true);
  experts.up = all(Role::mlp_up, false);
  experts.up_bias = all(Role::mlp_up, true);
  experts.down = all(Role::mlp_down, false);
  experts.down_bias = all(Role::mlp_down, true);
  const auto required = [&](const std::vector<WeightView>& views, Role role) {
    if (views.empty()) weights.get({.role = role, .part = Part::routed_expert, .layer = layer});
  };
  if (experts.gate_up.empty()) required(experts.up, Role::mlp_up);  // gates are there or not
  required(experts.down, Role::mlp_down);
}

Projection find_latent(const Weights& weights, Role role, std::size_t layer) {
  const auto of = [&](bool bias) {
    return weights.find({.role = role, .part = Part::shared_expert, .layer = layer, .bias = bias});
  };
  return {of(false), of(true)};
}

Matrix cut_above(const Matrix& x, double limit, Ops& ops) {
  std::vector<double> values = ops.download(x);
  for (double& value : values) value = value > limit ? limit : value;
  return ops.upload(values, x.rows(), x.columns());
}

// Rounded once, at the end.
Matrix bend(const Matrix& gate, const Matrix& up, const SituForm& form, Ops& ops) {
  const std::vector<double> g = ops.download(gate);
  std::vector<double> y = ops.download(up);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (form.linear_beta != 0) y[i] = form.linear_beta * std::tanh(y[i] / form.linear_beta);
    y[i] *= form.beta * std::tanh(g[i] / form.beta) / (1 + std::exp(-g[i]));
  }
  return ops.upload(y, gate.rows(), gate.columns());
}

}  // namespace

GatedMlp GatedMlp::read(const Weights& weights, std::size_t layer, Part part, const GatedActivation& form) {
  const auto get = [&](Role role) { return weights.get({.role = role, .part = part, .layer = layer}); };
  const auto find = [&](Role role, bool bias) {
    return weights.find({.role = role, .part = part, .layer = layer, .bias = bias});
  };
  GatedMlp mlp;
  mlp.form = form;
  mlp.gate_up = find(Role::mlp_gate_up, false);
  if (!mlp.gate_up) {
    mlp.gate = find(Role::mlp_gate, false);
    mlp.up = mlp.gate ? get(Role::mlp_up) : find(Role::mlp_up, false);
  }
  mlp.down = get(Role::mlp_down);
  mlp.gate_bias = find(Role::mlp_gate, true);
  mlp.up_bias = find(Role::mlp_up, true);
  mlp.gate_up_bias = find(Role::mlp_gate_up, true);
  mlp.down_bias = find(Role::mlp_down, true);
  if (part == Part::dense_mlp) mlp.xielu = Xielu::find(weights, layer);
  return mlp;
}

Matrix GatedMlp::inner(const Matrix& x, Ops& ops) const {
  if (!gate_up && !gate && !up) return x;
  if (!gate_up && !gate) {
    const Matrix u = ops.linear(x, up, up_bias);
    return xielu ? (*xielu)(u, ops) : ops.activation(u, form.activation);
  }
  Matrix g, u;
  if (gate_up) {
    const Matrix both = ops.linear(x, gate_up, gate_up_bias);  // [tokens, 2 · width]
    const std::size_t width = both.columns() / 2;
    g = alternating ? ops.of_each(both, 2, 0, 1) : both.part(0, width);
    u = alternating ? ops.of_each(both, 2, 1, 1) : both.part(width, width);
    if (up_first) std::swap(g, u);
  } else {
    const LinearCall calls[] = {{x, gate, gate_bias}, {x, up, up_bias}};
    std::vector<Matrix> made = ops.run_together(calls);
    g = made[0], u = made[1];
  }
  if (gate_scale != 1) g = ops.multiply(g, gate_scale);
  if (situ) return bend(g, u, *situ, ops);
  if (poly) return ops.scale((*poly)(g, ops), u);
  if (limit == 0) return ops.gated_activation(g, u, form);
  if (limit_first) return ops.gated_activation(cut_above(g, limit, ops), ops.clamp(u, limit), form);
  return ops.scale(cut_above(ops.activation(g, form.activation), limit, ops), ops.clamp(u, limit));
}

Matrix GatedMlp::forward(const Matrix& x, Ops& ops) const {
  const Matrix y = ops.linear(inner_norm(inner(x, ops), ops), down, down_bias);  // [tokens, hidden]
  return down_scale == 1 ? y : ops.multiply(y, down_scale);
}

Mixture Mixture::read(const Weights& weights, std::size_t layer, const GatedActivation& form,
                      MoeForm mixing) {
  Mixture m;
  m.router = weights.get({.role = Role::router, .part = Part::router, .layer = layer});
  m.router_bias = weights.find({.role = Role::router, .part = Part::router, .layer = layer, .bias = true});
  m.correction = weights.find({.role = Role::router_correction, .layer = layer, .bias = true});
  if (m.correction && m.correction.rows > 1) m.correction = m.correction.row_range(0, 1);  // of text
  m.experts.form = form;
  m.mixing = mixing;
  read_experts(weights, layer, m.experts);
  if (weights.find({.role = Role::mlp_down, .part = Part::shared_expert, .layer = layer}))
    m.shared = GatedMlp::read(weights, layer, Part::shared_expert, form);
  m.shared_gate = weights.find({.role = Role::shared_expert_gate, .layer = layer});
  m.latent_down = find_latent(weights, Role::latent_down, layer);
  m.latent_up = find_latent(weights, Role::latent_up, layer);
  return m;
}

Routing Mixture::choose(const Matrix& logits, Ops& ops) const {
  if (jitter) return sparse_mixer(logits, *jitter, ops);
  if (by_logits) return logit_choice(logits, correction, rule, ops);
  Routing routing = ops.moe_gate(logits, correction, rule);  // [tokens, top_k]
  if (!expert_scales) return routing;
  const std::vector<double> scales = decode_vector(expert_scales);
  std::vector<double> factors;
  for (const std::int32_t expert : routing.experts)
    factors.push_back(scales.at(static_cast<std::size_t>(expert)));
  routing.weights = ops.scale(routing.weights, ops.upload(factors, logits.rows(), routing.top_k));
  return routing;
}

Matrix Mixture::forward(const Matrix& seen, const Matrix& x, Ops& ops, const TapScope& at) const {
  if (sinks) return sinks->forward(*this, x, ops, at);
  Matrix logits = ops.linear(seen, router, router_bias, router_rounding);  // [tokens, experts]
  if (router_scale != 1) logits = ops.multiply(logits, router_scale);
  if (router_cap != 0) logits = ops.soft_cap(logits, router_cap);
  at("router_logits", logits);
  const Routing routing = choose(logits, ops);
  if (at.listening()) at("router_weights", dense_weights(routing, logits.columns(), ops));
  const Matrix given = latent_down ? latent_in_norm(latent_down(x, ops), ops) : x;
  Matrix mixed = routed(given, routing, ops);
  if (latent_up) mixed = latent_up(latent_norm(mixed, ops), ops);  // [tokens, hidden]
  if (!shared) return mixed;
  Matrix beside = shared->forward(x, ops);
  if (shared_gate) beside = ops.output_gate(beside, ops.linear(x, shared_gate));
  const Matrix sum = ops.add(mixed, beside);
  return averaged ? ops.multiply(sum, 0.5) : sum;
}

// Where weights scale the inputs, the chosen experts take turns: the likeliest of all tokens first.
Matrix Mixture::routed(const Matrix& x, const Routing& routing, Ops& ops) const {
  if (limit != 0 || situ || expert_norm) return one_by_one(x, routing, ops);
  if (!scaled_inputs) return ops.fused_moe(x, routing, experts, mixing);
  const std::size_t tokens = x.rows();
  Matrix sum;
  for (std::size_t i = 0; i < routing.top_k; ++i) {
    Routing one = {1, {}, ops.upload(std::vector<double>(tokens, 1.0), tokens, 1)};
    for (std::size_t t = 0; t < tokens; ++t) one.experts.push_back(routing.experts[t * routing.top_k + i]);
    const Matrix given = ops.scale(x, routing.weights.part(i, 1));
    const Matrix y = ops.fused_moe(given, one, experts, mixing == MoeForm::soft ? MoeForm::dense : mixing);
    sum = i == 0 ? y : ops.add(sum, y);
  }
  return sum;
}

// No kernel knows the limit, situ, or a norm behind an expert.
Matrix Mixture::one_by_one(const Matrix& x, const Routing& routing, Ops& ops) const {
  const ExpertFunction expert = [&](const Matrix& rows, std::size_t e) {
    GatedMlp one;
    if (experts.gate_up.empty())
      one.gate = experts.gate[e], one.up = experts.up[e];
    else
      one.gate_up = experts.gate_up[e];
    one.down = experts.down[e];
    one.form = experts.form;
    one.limit = limit;
    one.limit_first = limit_first;
    one.situ = situ;
    return expert_norm(one.forward(rows, ops), ops);
  };
  return experts_one_by_one(x, routing, experts.down.size(), expert, ops);
}

bool is_mixture(const Weights& weights, std::size_t layer) {
  return static_cast<bool>(weights.find({.role = Role::router, .part = Part::router, .layer = layer}));
}

}  // namespace assay
