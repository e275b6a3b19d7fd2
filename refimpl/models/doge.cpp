// Doge: what a value says of its token is added to the scores of its key (dynamic mask attention), and what a block passes by is
// scaled, channel by channel.
//
//   b = exp(A · softplus(dt(v)))  a number a key head;   scores = q · k / √d + b
//   x = r x + o(attention);  x = s x + mlp(norm(x))
//
// Where a text is longer than keep_window_size, its class leaves out the keys with the smallest b: longer ones are not computed.
// Its mixture is not, either: the class takes the two halves of a token's router from other tokens' rows. Source: modeling_doge.py
// of transformers 5.19.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "refimpl/models/activation_name.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/own_layers.h"
#include "refimpl/ops/recurrence.h"

namespace assay {
namespace {

struct DogeLayer {
  Norm attention_norm, mlp_norm, q_norm, k_norm;
  Projection q, k, v, o, dt;
  std::vector<double> a, attention_kept, mlp_kept;  // A, r, s
  GatedMlp mlp;
};

DogeLayer read_doge_layer(const Weights& weights, std::size_t i, const NormRule& rule,
                          const GatedActivation& activation) {
  const std::string path = fmt::format("model.layers.{}.", i);
  const auto norm = [&](Role role) { return Norm(weights.get({.role = role, .layer = i}), {}, rule); };
  const auto vector = [&](const char* name) { return decode_vector(named_weight(weights, path + name)); };
  DogeLayer l;
  l.attention_norm = norm(Role::input_norm), l.mlp_norm = norm(Role::pre_feedforward_norm);
  l.q_norm = norm(Role::q_norm), l.k_norm = norm(Role::k_norm);
  l.q = get_projection(weights, Role::q, i), l.k = get_projection(weights, Role::k, i);
  l.v = get_projection(weights, Role::v, i), l.o = get_projection(weights, Role::attention_output, i);
  l.dt = {named_weight(weights, path + "self_attn.dt_proj.weight"),
          weights.find_named(path + "self_attn.dt_proj.bias")};
  l.a = vector("self_attn.A");
  l.attention_kept = vector("input_residual"), l.mlp_kept = vector("post_attention_residual");
  l.mlp = GatedMlp::read(weights, i, Part::dense_mlp, activation);
  return l;
}

// One number more behind every head: `more` has one a head of each row.
Matrix with_one_more(const Matrix& x, const std::vector<double>& more, std::size_t heads, Ops& ops) {
  const std::size_t width = x.columns() / heads;
  const std::vector<double> from = ops.download(x);
  std::vector<double> to;
  to.reserve(from.size() + more.size());
  for (std::size_t i = 0; i < more.size(); ++i) {
    const auto head = from.begin() + static_cast<std::ptrdiff_t>(i * width);
    to.insert(to.end(), head, head + static_cast<std::ptrdiff_t>(width));
    to.push_back(more[i]);
  }
  return ops.upload(to, x.rows(), x.columns() + heads);
}

class Doge final : public OwnLayers {
 public:
  Doge(const Weights& weights, std::size_t longest)
      : OwnLayers(weights, {.epsilon = hyperparameters(weights.tree()).epsilon}),
        geometry_(weights.tree().attention.at(0)),
        longest_(longest) {
    const GatedActivation activation = {.activation = activation_of(settings(), weights.config())};
    for (std::size_t i = 0; i < weights.tree().layers; ++i)
      layers_.push_back(read_doge_layer(weights, i, {.epsilon = settings().epsilon}, activation));
  }

  std::size_t context() const override { return std::min(OwnLayers::context(), longest_); }

 protected:
  CacheWidth cache_width(std::size_t) const override {  // what is added to scores lies behind each key
    return cache_of_heads(geometry_.kv_heads, geometry_.qk_head_dim + 1, geometry_.v_head_dim,
                          geometry_.window);
  }

  Matrix layer(std::size_t index, const Matrix& given, const OwnStep& step, const TapScope& at,
               std::vector<Matrix>&) const override {
    const DogeLayer& l = layers_[index];
    Ops& ops = step.ops;
    const Matrix seen = l.attention_norm(given, ops);
    at("attn_norm", seen);
    const Matrix attended = attention(l, index, seen, step, at);
    at("attn_out", attended);
    const Matrix x = ops.add(times_vector(given, l.attention_kept, ops), attended);
    at("attn_residual", x);
    const Matrix fed = l.mlp_norm(x, ops);
    at("mlp_norm", fed);
    const Matrix out = l.mlp.forward(fed, ops);
    at("mlp_out", out);
    return ops.add(times_vector(x, l.mlp_kept, ops), out);
  }

 private:
  // b · √d, which the scale of the scores takes back.
  std::vector<double> of_keys(const DogeLayer& l, const Matrix& v, const TapScope& at, Ops& ops) const {
    const Matrix dt = l.dt(v, ops);  // [tokens, kv_heads]
    at("attn_mask", dt);
    std::vector<double> values = ops.download(dt);
    const Arithmetic& arithmetic = ops.arithmetic();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double exponent = l.a[i % l.a.size()] * arithmetic.round(softplus(values[i]));
      values[i] = arithmetic.round(std::exp(arithmetic.round(exponent))) / scale();
    }
    return values;
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(geometry_.qk_head_dim)); }

  Matrix attention(const DogeLayer& l, std::size_t index, const Matrix& x, const OwnStep& step,
                   const TapScope& at) const {
    Ops& ops = step.ops;
    const std::size_t width = geometry_.qk_head_dim, heads = geometry_.heads, kv_heads = geometry_.kv_heads;
    const Matrix q = l.q_norm(l.q(x, ops), ops), k = l.k_norm(l.k(x, ops), ops), v = l.v(x, ops);
    const RopeAngles& angles = step.angles.front();
    for (const auto& [of, count] : {std::pair{q, heads}, {k, kv_heads}})
      ops.rope(of, {.heads = count, .head_dim = width, .cos = angles.cos, .sin = angles.sin});
    at("q", q), at("k", k), at("v", v);
    const std::vector<double> ones(x.rows() * heads, 1.0);
    AttentionCall call = {.q = with_one_more(q, ones, heads, ops),
                          .sequences = {},
                          .heads = heads,
                          .kv_heads = kv_heads,
                          .qk_dim = width + 1,
                          .v_dim = geometry_.v_head_dim,
                          .scale = scale(),
                          .window = geometry_.window};
    const Matrix keys = with_one_more(k, of_keys(l, v, at, ops), kv_heads, ops);
    const Matrix context = attend_to_cache(std::move(call), keys, v, index, step.batch, ops);
    at("attn_context", context);
    return l.o(context, ops);
  }

  AttentionGeometry geometry_;
  std::size_t longest_;
  std::vector<DogeLayer> layers_;
};

std::unique_ptr<LanguageModel> make_doge(const Weights& weights, const ModelOptions&) {
  require_safetensors(weights);
  require_all_heads(weights);
  ConfigReader config(weights.config(), "Doge");
  return std::make_unique<Doge>(weights, config.size("keep_window_size", 2048).value());
}

constexpr std::string_view kDogeFamilies[] = {"doge"};
constexpr auto kDogeUsed = decoder_keys({"hidden_act", "num_key_value_heads", "head_dim", "attention_bias",
                                         "mlp_bias", "sliding_window", "keep_window_size"});
constexpr std::string_view kDogeIdle[] = {"num_experts", "num_experts_per_tok", "norm_topk_prob"};
constexpr FixedKey kDogeFixed[] = {{"is_moe", "false"}};

}  // namespace

const ModelRule kDogeRule = {kDogeFamilies, {}, {kDogeUsed, kDogeIdle, kDogeFixed}, make_doge};

}  // namespace assay
