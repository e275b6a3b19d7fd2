// ZAYA1 (Zyphra): attention behind convolutions (convolved_attention.h), a small MLP for a router that reads the last layer's, one
// expert a token or none, and residuals that are scaled.
//
//   r = down(y) + ρ · (r of the layer before);   p = softmax(out(gelu(fc2(gelu(fc1(norm(r)))))))   over the experts and one that does nothing
//   x ← (x + b) · s + (block + c) · t            s, t, b, c of each channel; the stream is not rounded further than to float32
//
// Source: modeling_zaya.py of transformers 5.19.
#include <fmt/format.h>

#include <algorithm>

#include "refimpl/models/activation_name.h"
#include "refimpl/models/convolved_attention.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/ops/as_it_is.h"

namespace assay {
namespace {

struct ShiftAndScale {
  std::vector<double> shift, scale;
  static ShiftAndScale get(const Weights& weights, const std::string& prefix) {
    return {decode_vector(named_weight(weights, prefix + "bias")),
            decode_vector(named_weight(weights, prefix + "scale"))};
  }
  double operator()(double x, std::size_t channel) const { return (x + shift[channel]) * scale[channel]; }
};

struct ScaledSum {
  ShiftAndScale block, stream;
  static ScaledSum get(const Weights& weights, const std::string& prefix) {
    return {ShiftAndScale::get(weights, prefix + "hidden_states_"),
            ShiftAndScale::get(weights, prefix + "residual_")};
  }
  Matrix operator()(const Matrix& y, const Matrix& x, Ops& ops) const {
    const std::vector<double> given = ops.download(y);
    std::vector<double> sums = ops.download(x);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const std::size_t channel = i % x.columns();
      sums[i] = stream(sums[i], channel) + ops.arithmetic().round(block(given[i], channel));
    }
    return as_it_is(ops, sums, x.rows(), x.columns());
  }
};

Matrix rounded(const Matrix& x, Ops& ops) {
  return ops.upload(ops.download(x), x.rows(), x.columns());
}

struct ZayaRouter {
  Projection down, fc1, fc2;
  WeightView out, correction;
  std::vector<double> kept;  // ρ; in the first layer none
  Norm norm;

  static ZayaRouter get(const Weights& weights, std::size_t layer, const NormRule& rule) {
    const std::string path = fmt::format("model.layers.{}.mlp.gate.", layer), mlp = path + "router_mlp.";
    const auto projection = [&](const std::string& name) {
      return Projection{named_weight(weights, name + ".weight"), named_weight(weights, name + ".bias")};
    };
    ZayaRouter r;
    r.down = projection(path + "down_proj");
    r.fc1 = projection(mlp + "fc1"), r.fc2 = projection(mlp + "fc2");
    r.out = named_weight(weights, mlp + "out_proj.weight");
    r.norm = Norm(named_weight(weights, mlp + "norm.weight"), {}, rule);
    r.correction = named_weight(weights, path + "balancing_biases");
    if (const WeightView kept = weights.find_named(path + "router_states_scale"))
      r.kept = decode_vector(kept);
    return r;
  }
  // `state`: of the layer before, then of this one.
  Matrix logits(const Matrix& x, std::vector<Matrix>& state, Ops& ops) const {
    Matrix r = down(x, ops);
    if (!kept.empty() && !state.empty()) r = ops.add(r, times_vector(state.front(), kept, ops));
    state = {r};
    const Matrix one = ops.activation(fc1(norm(r, ops), ops), Activation::gelu);
    return ops.linear(ops.activation(fc2(one, ops), Activation::gelu), out);
  }
};

struct ZayaLayer {
  Norm attention_norm, mlp_norm;
  ConvolvedAttention attention;
  std::size_t rope = 0;
  ScaledSum behind_attention, behind_mlp;
  ZayaRouter router;
  ExpertWeights experts;
};

const AttentionGeometry& geometry_of_layer(const ModuleTree& tree, std::size_t layer) {
  for (const AttentionGeometry& g : tree.attention)
    if (std::find(g.layers.begin(), g.layers.end(), layer) != g.layers.end()) return g;
  throw Error::internal("a layer of ZAYA1 without attention");
}

class Zaya final : public OwnLayers {
 public:
  Zaya(const Weights& weights, MoeForm form)
      : OwnLayers(weights, {.epsilon = hyperparameters(weights.tree()).epsilon}),
        start_(ShiftAndScale::get(weights, "model.input_hidden_states_")),
        count_(weights.tree().experts),
        form_(form) {
    const NormRule rule = {.epsilon = settings().epsilon};
    const GatedActivation activation = {.activation = activation_of(settings(), weights.config())};
    for (std::size_t i = 0; i < weights.tree().layers; ++i) {
      const std::string path = fmt::format("model.layers.{}.", i);
      layers_.push_back({Norm(weights.get({.role = Role::input_norm, .layer = i}), {}, rule),
                         Norm(weights.get({.role = Role::pre_feedforward_norm, .layer = i}), {}, rule),
                         ConvolvedAttention(weights, i, geometry_of_layer(weights.tree(), i)),
                         settings().rope_of.at(i).value_or(0),
                         ScaledSum::get(weights, path + "post_attention_residual_scale."),
                         ScaledSum::get(weights, path + "post_mlp_residual_scale."),
                         ZayaRouter::get(weights, i, rule),
                         Mixture::read(weights, i, activation, form).experts});
    }
  }

 protected:
  CacheWidth cache_width(std::size_t layer) const override { return layers_[layer].attention.cache_width(); }

  Matrix entered(const Matrix& embedding, Ops& ops) const override {
    std::vector<double> values = ops.download(embedding);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = start_(values[i], i % embedding.columns());
    return ops.upload(values, embedding.rows(), embedding.columns());
  }

  Matrix layer(std::size_t index, const Matrix& given, const OwnStep& step, const TapScope& at,
               std::vector<Matrix>& beside) const override {
    const ZayaLayer& l = layers_[index];
    Ops& ops = step.ops;
    const Matrix seen = l.attention_norm(rounded(given, ops), ops);
    at("attn_norm", seen);
    const Matrix attended = l.attention.forward(seen, index, step.angles.at(l.rope), step, at);
    at("attn_out", attended);
    const Matrix x = l.behind_attention(attended, given, ops);
    at("attn_residual", x);
    const Matrix fed = l.mlp_norm(rounded(x, ops), ops);
    at("mlp_norm", fed);
    const Matrix out = mixture(l, fed, beside, at, ops);
    at("mlp_out", out);
    return l.behind_mlp(out, x, ops);
  }

 private:
  Matrix mixture(const ZayaLayer& l, const Matrix& x, std::vector<Matrix>& state, const TapScope& at,
                 Ops& ops) const {
    const Matrix logits = l.router.logits(x, state, ops);  // [tokens, experts + 1]
    at("router_logits", logits);
    Routing routing =
        ops.moe_gate(logits, l.router.correction, {.top_k = 1, .rounding = ResultRounding::as_arithmetic});
    std::vector<double> weights = ops.download(routing.weights);
    for (std::size_t t = 0; t < weights.size(); ++t) {
      if (static_cast<std::size_t>(routing.experts[t]) < count_) continue;
      routing.experts[t] = 0;  // the last class does nothing
      weights[t] = 0;
    }
    routing.weights = ops.upload(weights, weights.size(), 1);
    return ops.fused_moe(x, routing, l.experts, form_);
  }

  ShiftAndScale start_;
  std::size_t count_;
  MoeForm form_;
  std::vector<ZayaLayer> layers_;
};

std::unique_ptr<LanguageModel> make_zaya(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  require_all_heads(weights);
  return std::make_unique<Zaya>(weights, options.moe);
}

constexpr std::string_view kZayaFamilies[] = {"zaya"};
constexpr auto kZayaUsed =
    decoder_keys({"hidden_act", "num_key_value_heads", "head_dim", "attention_bias", "lm_head_bias",
                  "layer_types", "sliding_window", "cca_time0", "cca_time1", "num_experts",
                  "moe_intermediate_size", "router_hidden_size"});
constexpr FixedKey kZayaFixed[] = {{"num_experts_per_tok", "1"}};

}  // namespace

const ModelRule kZayaRule = {kZayaFamilies, {}, {kZayaUsed, {}, kZayaFixed}, make_zaya};

}  // namespace assay
