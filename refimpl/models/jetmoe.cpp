// JetMoe (arXiv 2404.07413): a token's experts each make queries of it, a query a key head, and each take what their heads give
// back into the stream; keys and values are every expert's.
//
//   x = x + Σ over the chosen e of w_e · out_e(attention(rope(in_e(y)), rope(k), v)) + bias,  y = norm(x)
//   x = x + mixture(norm(x)) + bias                                    w: a softmax over the chosen logits, in both
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "refimpl/models/activation_name.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/own_layers.h"

namespace assay {
namespace {

constexpr GateRule kChosenSoftmax = {.top_k_first = true, .rounding = ResultRounding::as_arithmetic};
constexpr NormRule kJetmoeNorm = {.epsilon = 1e-6};  // in layers, whatever rms_norm_eps says

// [tokens, outer · inner · width] -> [tokens, inner · outer · width]
Matrix turned_groups(const Matrix& x, std::size_t outer, std::size_t inner, Ops& ops) {
  const std::size_t width = x.columns() / (outer * inner);
  const std::vector<double> from = ops.download(x);
  std::vector<double> to(from.size());
  for (std::size_t at = 0; at < from.size(); at += width) {
    const std::size_t place = at % x.columns() / width, o = place / inner, i = place % inner;
    std::copy_n(
        from.begin() + static_cast<std::ptrdiff_t>(at), width,
        to.begin() + static_cast<std::ptrdiff_t>(at / x.columns() * x.columns() + (i * outer + o) * width));
  }
  return ops.upload(to, x.rows(), x.columns());
}

// Places [token · top_k + slot] of each expert.
std::vector<std::vector<std::size_t>> places_by_expert(const Routing& routing, std::size_t experts) {
  std::vector<std::vector<std::size_t>> places(experts);
  for (std::size_t i = 0; i < routing.experts.size(); ++i)
    places.at(static_cast<std::size_t>(routing.experts[i])).push_back(i);
  return places;
}

struct QueryExperts {
  WeightView router;
  std::vector<WeightView> into, back;  // [width, hidden], [hidden, width]
  std::vector<double> bias;

  static QueryExperts get(const Weights& weights, std::size_t layer) {
    const std::string path = fmt::format("model.layers.{}.self_attention.experts.", layer);
    QueryExperts q;
    q.router = weights.get({.role = Role::router, .part = Part::attention, .layer = layer});
    for (std::size_t e = 0; e < q.router.outputs(); ++e) {
      q.into.push_back(weights.get({.role = Role::q, .layer = layer, .expert = e}));
      q.back.push_back(weights.get({.role = Role::attention_output, .layer = layer, .expert = e}));
    }
    q.bias = decode_vector(named_weight(weights, path + "bias"));
    return q;
  }

  // Slots on end: [tokens, top_k · width].
  Matrix queries(const Matrix& x, const Routing& routing, Ops& ops) const {
    const std::size_t width = into.front().outputs();
    std::vector<double> all(routing.experts.size() * width);
    const auto places = places_by_expert(routing, into.size());
    for (std::size_t e = 0; e < into.size(); ++e) {
      if (places[e].empty()) continue;
      std::vector<std::size_t> tokens;
      for (const std::size_t place : places[e]) tokens.push_back(place / routing.top_k);
      const std::vector<double> made = ops.download(ops.linear(ops.gather(x, tokens), into[e]));
      for (std::size_t i = 0; i < places[e].size(); ++i)
        std::copy_n(made.begin() + static_cast<std::ptrdiff_t>(i * width), width,
                    all.begin() + static_cast<std::ptrdiff_t>(places[e][i] * width));
    }
    return ops.upload(all, x.rows(), routing.top_k * width);
  }

  // Of [tokens, top_k · width] into the stream.
  Matrix joined(const Matrix& context, const Routing& routing, Ops& ops) const {
    const std::size_t width = back.front().inputs(), hidden = back.front().outputs();
    const Matrix slots = ops.upload(ops.download(context), routing.experts.size(), width);
    const std::vector<double> shares = ops.download(routing.weights);
    std::vector<double> sums(context.rows() * hidden);
    const auto places = places_by_expert(routing, back.size());
    for (std::size_t e = 0; e < back.size(); ++e) {
      if (places[e].empty()) continue;
      std::vector<double> factors;
      for (const std::size_t place : places[e]) factors.push_back(shares[place]);
      const std::vector<double> made = ops.download(ops.scale(
          ops.linear(ops.gather(slots, places[e]), back[e]), ops.upload(factors, factors.size(), 1)));
      for (std::size_t i = 0; i < made.size(); ++i)
        sums[places[e][i / hidden] / routing.top_k * hidden + i % hidden] += made[i];
    }
    return plus_vector(ops.upload(sums, context.rows(), hidden), bias, ops);
  }
};

struct JetmoeLayer {
  Norm attention_norm, mlp_norm;
  QueryExperts experts;
  WeightView kv;
  Mixture mixture;
  std::vector<double> mixture_bias;
};

class Jetmoe final : public OwnLayers {
 public:
  Jetmoe(const Weights& weights, MoeForm form)
      : OwnLayers(weights, {.epsilon = hyperparameters(weights.tree()).epsilon}),
        geometry_(weights.tree().attention.at(0)) {
    rule_ = kChosenSoftmax;
    rule_.top_k = weights.tree().experts_per_token;
    const GatedActivation activation = {.activation = activation_of(settings(), weights.config())};
    for (std::size_t i = 0; i < weights.tree().layers; ++i) {
      JetmoeLayer l;
      l.attention_norm = Norm(weights.get({.role = Role::input_norm, .layer = i}), {}, kJetmoeNorm);
      l.mlp_norm = Norm(weights.get({.role = Role::pre_feedforward_norm, .layer = i}), {}, kJetmoeNorm);
      l.experts = QueryExperts::get(weights, i);
      l.kv = weights.get({.role = Role::qkv, .layer = i});
      l.mixture = Mixture::read(weights, i, activation, form);
      l.mixture.rule = rule_;
      l.mixture_bias = decode_vector(named_weight(weights, fmt::format("model.layers.{}.mlp.bias", i)));
      layers_.push_back(std::move(l));
    }
  }

 protected:
  CacheWidth cache_width(std::size_t) const override {
    return cache_of_heads(geometry_.kv_heads, geometry_.qk_head_dim, geometry_.v_head_dim);
  }

  Matrix layer(std::size_t index, const Matrix& given, const OwnStep& step, const TapScope& at,
               std::vector<Matrix>&) const override {
    const JetmoeLayer& l = layers_[index];
    Ops& ops = step.ops;
    const Matrix seen = l.attention_norm(given, ops);
    at("attn_norm", seen);
    const Matrix attended = attention(l, index, seen, step, at);
    at("attn_out", attended);
    const Matrix x = ops.add(given, attended);
    at("attn_residual", x);
    const Matrix fed = l.mlp_norm(x, ops);
    at("mlp_norm", fed);
    const Matrix out = plus_vector(l.mixture.forward(fed, ops, at), l.mixture_bias, ops);
    at("mlp_out", out);
    return ops.add(x, out);
  }

 private:
  Matrix attention(const JetmoeLayer& l, std::size_t index, const Matrix& x, const OwnStep& step,
                   const TapScope& at) const {
    Ops& ops = step.ops;
    const std::size_t kv_heads = geometry_.kv_heads, width = geometry_.qk_head_dim, all = kv_heads * width;
    const Matrix logits = ops.linear(x, l.experts.router);
    at("q_router_logits", logits);
    const Routing routing = ops.moe_gate(logits, {}, rule_);
    const Matrix q = l.experts.queries(x, routing, ops), both = ops.linear(x, l.kv);
    const Matrix k = both.part(0, all), v = both.part(all, all);
    const RopeAngles& angles = step.angles.front();
    for (const auto& [of, heads] : {std::pair{q, routing.top_k * kv_heads}, {k, kv_heads}})
      ops.rope(of, {.heads = heads, .head_dim = width, .cos = angles.cos, .sin = angles.sin});
    at("q", q), at("k", k), at("v", v);
    // Queries of one key head lie together in the operation, and those of one expert here.
    AttentionCall call = {.q = turned_groups(q, routing.top_k, kv_heads, ops),
                          .sequences = {},
                          .heads = routing.top_k * kv_heads,
                          .kv_heads = kv_heads,
                          .qk_dim = width,
                          .v_dim = width,
                          .scale = 1 / std::sqrt(static_cast<double>(width))};
    const Matrix context = turned_groups(attend_to_cache(std::move(call), k, v, index, step.batch, ops),
                                         kv_heads, routing.top_k, ops);
    at("attn_context", context);
    return l.experts.joined(context, routing, ops);
  }

  AttentionGeometry geometry_;
  GateRule rule_;
  std::vector<JetmoeLayer> layers_;
};

std::unique_ptr<LanguageModel> make_jetmoe(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  require_all_heads(weights);
  return std::make_unique<Jetmoe>(weights, options.moe);
}

constexpr std::string_view kJetmoeFamilies[] = {"jetmoe"};
constexpr auto kJetmoeUsed =
    decoder_keys({"num_layers", "num_key_value_heads", "kv_channels", "head_dim", "activation_function",
                  "num_local_experts", "num_experts_per_tok"});
constexpr std::string_view kJetmoeIdle[] = {"aux_loss_coef"};

}  // namespace

const ModelRule kJetmoeRule = {kJetmoeFamilies, {}, {kJetmoeUsed, kJetmoeIdle}, make_jetmoe};

}  // namespace assay
