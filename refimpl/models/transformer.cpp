#include "refimpl/models/transformer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/rope_table.h"

namespace assay {
namespace {

struct DecoderLayer {
  std::size_t index = 0;
  std::optional<HeadAttention> attention;
  std::unique_ptr<RecurrentMixer> recurrent;                          // in its place
  Norm attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;  // each may be absent
  GatedMlp mlp;                                                       // in a layer without experts
  std::optional<Mixture> mixture;
};

// What a layer's norms are made of.
class NormReader {
 public:
  NormReader(const Weights& weights, const DecoderForm& form)
      : weights_(weights),
        rule_{form.norm_kind, form.norm, hyperparameters(weights.tree()).epsilon},
        unweighted_(form.unweighted_norms) {}

  const NormRule& rule() const { return rule_; }
  // Absent where nothing is stored.
  Norm stored(Role role, std::size_t layer = 0) const {
    return {weights_.find({.role = role, .layer = layer}),
            weights_.find({.role = role, .layer = layer, .bias = true}), rule_};
  }
  Norm stored_or_unweighted(Role role, std::size_t layer = 0) const {
    return unweighted_ ? Norm::unweighted(weights_.tree().hidden_size, rule_) : stored(role, layer);
  }

 private:
  const Weights& weights_;
  NormRule rule_;
  bool unweighted_;
};

Mixture read_mixture(const Weights& weights, std::size_t index, const GatedActivation& activation,
                     const DecoderForm& form) {
  const ExpertRouting& routing = hyperparameters(weights.tree()).routing;
  Mixture mixture = Mixture::read(weights, index, activation, form.moe);
  mixture.rule = form.gate;
  mixture.rule.top_k = weights.tree().experts_per_token;
  mixture.rule.renormalize = routing.renormalize;
  mixture.rule.scale = routing.scale;
  mixture.rule.groups = routing.groups;
  mixture.rule.chosen_groups = routing.chosen_groups;
  mixture.router_rounding = form.router_rounding;
  mixture.scaled_inputs = form.scaled_inputs;
  mixture.experts.interleaved = form.interleaved_experts;
  return mixture;
}

const AttentionGeometry& geometry_of(const ModuleTree& tree, std::size_t layer) {
  for (const AttentionGeometry& geometry : tree.attention) {
    if (std::find(geometry.layers.begin(), geometry.layers.end(), layer) != geometry.layers.end())
      return geometry;
  }
  throw Error::internal(fmt::format("layer {} attends to nothing", layer));
}

DecoderLayer read_layer(const Weights& weights, std::size_t index, const GatedActivation& activation,
                        const DecoderForm& form) {
  const NormReader norms(weights, form);
  DecoderLayer layer;
  layer.index = index;
  layer.attention_norm = norms.stored_or_unweighted(Role::input_norm, index);
  layer.attention_post_norm = norms.stored(Role::post_attention_norm, index);
  layer.mlp_norm = norms.stored_or_unweighted(Role::pre_feedforward_norm, index);
  layer.mlp_post_norm = norms.stored(Role::post_feedforward_norm, index);
  RecurrentForm recurrent = form.recurrent;
  recurrent.epsilon = norms.rule().epsilon;
  layer.recurrent = read_recurrent_mixer(weights, index, recurrent);
  if (!layer.recurrent)
    layer.attention.emplace(weights, index, geometry_of(weights.tree(), index), form.attention, norms.rule());
  if (is_mixture(weights, index))
    layer.mixture = read_mixture(weights, index, activation, form);
  else if (weights.find({.role = Role::mlp_down, .layer = index}))
    layer.mlp = GatedMlp::read(weights, index, Part::dense_mlp, activation);
  return layer;
}

class Decoder : public LanguageModel {
 public:
  Decoder(const Weights& weights, const DecoderForm& form)
      : h_(hyperparameters(weights.tree())),
        form_(form),
        context_(h_.context),
        embedding_(weights.get({.role = Role::token_embedding})),
        positions_(weights.find({.role = Role::position_embedding})),
        head_(weights.get({.role = Role::output_head})),
        head_bias_(weights.find({.role = Role::output_head, .bias = true})) {
    const NormReader norms(weights, form);
    embedding_norm_ = norms.stored(Role::embedding_norm);
    final_norm_ = norms.stored_or_unweighted(Role::final_norm);
    if (!h_.ropes.empty()) h_.ropes.front() = with_stored_factors(h_.ropes.front(), weights);
    for (const RopeRule& rule : h_.ropes) context_ = std::max(context_, stretched_context(rule));
    if (positions_) context_ = std::min(context_, positions_.rows - form.position_offset);
    const GatedActivation activation =
        form.mlp ? *form.mlp : GatedActivation{.activation = activation_of(h_, weights.config())};
    for (std::size_t i = 0; i < weights.tree().layers; ++i)
      layers_.push_back(read_layer(weights, i, activation, form));
  }

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return context_; }
  RopeLayout rope_layout() const override {
    return h_.interleaved_pairs ? RopeLayout::interleaved : RopeLayout::half_split;
  }
  std::vector<CacheWidth> cache_widths() const override {
    std::vector<CacheWidth> widths;
    for (const DecoderLayer& layer : layers_)
      widths.push_back(layer.recurrent ? CacheWidth{0, 0, layer.recurrent->states()}
                                       : layer.attention->cache_width());
    return widths;
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    for (const RopeRule& rule : h_.ropes) {
      if (!same_frequencies(rule, length, other)) return false;
    }
    return true;
  }

  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override {
    Matrix x = embed(batch, ops);  // [tokens, hidden]
    taps("embed", x);
    std::vector<RopeAngles> angles;
    for (const RopeRule& rule : h_.ropes) angles.push_back(rope_angles(rule, batch, ops));
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      batch.go_on();
      const TapScope at(taps, "layers", i);
      const RopeAngles* of_layer = h_.rope_of.at(i) ? &angles.at(*h_.rope_of[i]) : nullptr;
      x = h_.parallel_branches ? branches(x, layers_[i], batch, of_layer, ops, at)
                               : one_by_one(x, layers_[i], batch, of_layer, ops, at);
      at("out", x);
    }
    x = final_norm_(x, ops);
    taps("final_norm", x);
    return x;
  }

  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    Matrix y = ops.linear(hidden, head_, head_bias_);  // [rows, vocabulary]
    if (h_.head_scale != 1) y = ops.multiply(y, h_.head_scale);
    if (h_.final_cap != 0) y = ops.soft_cap(y, h_.final_cap);
    taps("logits", y);
    return y;
  }

 private:
  Matrix embed(const Batch& batch, Ops& ops) const {
    Matrix x = ops.embed(batch.tokens, embedding_);
    if (h_.embedding_scale != 1)
      x = ops.multiply(
          x, form_.rounded_embedding_scale ? ops.arithmetic().round(h_.embedding_scale) : h_.embedding_scale);
    if (positions_) {
      std::vector<TokenId> places;
      for (const auto position : batch.positions)
        places.push_back(static_cast<TokenId>(position + form_.position_offset));
      x = ops.add(x, ops.embed(places, positions_));
    }
    return embedding_norm_(x, ops);
  }

  Matrix one_by_one(Matrix x, const DecoderLayer& layer, const Batch& batch, const RopeAngles* angles,
                    Ops& ops, const TapScope& at) const {
    x = ops.add(
        x, attention(normed(x, layer.attention_norm, "attn_norm", ops, at), layer, batch, angles, ops, at));
    at("attn_residual", x);
    if (!layer.mixture && !layer.mlp.down) return x;  // one mixer a layer
    return ops.add(x, feed_forward(normed(x, layer.mlp_norm, "mlp_norm", ops, at), layer, ops, at));
  }

  Matrix branches(const Matrix& x, const DecoderLayer& layer, const Batch& batch, const RopeAngles* angles,
                  Ops& ops, const TapScope& at) const {
    const Matrix y = normed(x, layer.attention_norm, "attn_norm", ops, at);
    const Matrix attended = attention(y, layer, batch, angles, ops, at);
    const Matrix mixed =
        feed_forward(layer.mlp_norm ? normed(x, layer.mlp_norm, "mlp_norm", ops, at) : y, layer, ops, at);
    if (form_.branches_first) return ops.add(ops.add(attended, mixed), x);
    return ops.add(ops.add(x, attended), mixed);
  }

  static Matrix normed(const Matrix& x, const Norm& norm, std::string_view tap, Ops& ops,
                       const TapScope& at) {
    const Matrix y = norm(x, ops);  // [tokens, hidden]
    if (norm) at(tap, y);
    return y;
  }

  Matrix attention(const Matrix& x, const DecoderLayer& layer, const Batch& batch, const RopeAngles* angles,
                   Ops& ops, const TapScope& at) const {
    const Matrix out = layer.recurrent ? layer.recurrent->forward(x, layer.index, batch, ops, at)
                                       : layer.attention->forward(x, batch, angles, ops, at);
    at("attn_out", out);
    return for_stream(normed(out, layer.attention_post_norm, "attn_post_norm", ops, at), ops);
  }

  Matrix feed_forward(const Matrix& x, const DecoderLayer& layer, Ops& ops, const TapScope& at) const {
    const Matrix out = layer.mixture ? layer.mixture->forward(x, ops, at) : layer.mlp.forward(x, ops);
    at("mlp_out", out);
    return for_stream(normed(out, layer.mlp_post_norm, "mlp_post_norm", ops, at), ops);
  }

  Matrix for_stream(const Matrix& x, Ops& ops) const {
    return h_.residual_scale == 1 ? x : ops.multiply(x, h_.residual_scale);
  }

  Hyperparameters h_;
  DecoderForm form_;
  std::size_t context_;
  WeightView embedding_, positions_, head_, head_bias_;
  Norm embedding_norm_, final_norm_;
  std::vector<DecoderLayer> layers_;
};

}  // namespace

std::unique_ptr<LanguageModel> make_decoder(const Weights& weights, const DecoderForm& form) {
  return std::make_unique<Decoder>(weights, form);
}

}  // namespace assay
