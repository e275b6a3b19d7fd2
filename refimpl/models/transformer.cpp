#include "refimpl/models/transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/rope_table.h"

namespace assay {
namespace {

struct Projection {
  WeightView weight, bias;
  explicit operator bool() const { return static_cast<bool>(weight); }
};

struct Heads {
  std::size_t heads = 0, kv_heads = 0, head_dim = 0, window = 0;
};

struct DecoderLayer {
  Heads heads;
  WeightView attention_norm, attention_post_norm, mlp_norm, mlp_post_norm;  // each may be absent
  Projection qkv, q, k, v, o;                                               // qkv, or the three
  WeightView q_norm, k_norm, sinks;
  std::unique_ptr<RecurrentMixer> recurrent;  // in place of all these but the norms
  GatedMlp mlp;                               // in a layer without experts
  std::optional<Mixture> mixture;
};

class LayerReader {
 public:
  LayerReader(const Weights& weights, std::size_t layer) : weights_(weights), layer_(layer) {}

  WeightView norm(Role role) const { return weights_.find({.role = role, .layer = layer_}); }
  Projection optional(Role role) const {
    return {weights_.find({.role = role, .layer = layer_}),
            weights_.find({.role = role, .layer = layer_, .bias = true})};
  }
  Projection required(Role role) const {
    weights_.get({.role = role, .layer = layer_});
    return optional(role);
  }

 private:
  const Weights& weights_;
  std::size_t layer_;
};

void read_attention(const LayerReader& reader, DecoderLayer& layer) {
  layer.qkv = reader.optional(Role::qkv);
  if (!layer.qkv) {
    layer.q = reader.required(Role::q);
    layer.k = reader.required(Role::k);
    layer.v = reader.required(Role::v);
  }
  layer.o = reader.required(Role::attention_output);
  layer.q_norm = reader.norm(Role::q_norm);
  layer.k_norm = reader.norm(Role::k_norm);
  layer.sinks = reader.norm(Role::sinks);
}

DecoderLayer read_layer(const Weights& weights, std::size_t index, const GatedActivation& activation,
                        const DecoderForm& form) {
  const LayerReader reader(weights, index);
  DecoderLayer layer;
  layer.attention_norm = reader.norm(Role::input_norm);
  layer.attention_post_norm = reader.norm(Role::post_attention_norm);
  layer.mlp_norm = reader.norm(Role::pre_feedforward_norm);
  layer.mlp_post_norm = reader.norm(Role::post_feedforward_norm);
  RecurrentForm recurrent = form.recurrent;
  recurrent.epsilon = hyperparameters(weights.tree()).epsilon;
  layer.recurrent = read_recurrent_mixer(weights, index, recurrent);
  if (!layer.recurrent) read_attention(reader, layer);
  if (is_mixture(weights, index)) {
    layer.mixture = Mixture::read(weights, index, activation, form.moe);
    layer.mixture->rule = form.gate;
    layer.mixture->rule.top_k = weights.tree().experts_per_token;
    layer.mixture->rule.renormalize = hyperparameters(weights.tree()).routing.renormalize;
    layer.mixture->experts.interleaved = form.interleaved_experts;
  } else if (weights.find({.role = Role::mlp_down, .layer = index})) {
    layer.mlp = GatedMlp::read(weights, index, Part::dense_mlp, activation);
  }
  return layer;
}

std::vector<Heads> read_heads(const ModuleTree& tree) {
  std::vector<Heads> heads(tree.layers);
  for (const AttentionGeometry& geometry : tree.attention) {
    for (const std::uint64_t layer : geometry.layers)
      heads.at(layer) = {geometry.heads, geometry.kv_heads, geometry.qk_head_dim, geometry.window};
  }
  return heads;
}

class Decoder : public LanguageModel {
 public:
  Decoder(const Weights& weights, const DecoderForm& form)
      : h_(hyperparameters(weights.tree())),
        norm_(form.norm),
        context_(h_.context),
        embedding_(weights.get({.role = Role::token_embedding})),
        final_norm_(weights.get({.role = Role::final_norm})),
        head_(weights.get({.role = Role::output_head})),
        head_bias_(weights.find({.role = Role::output_head, .bias = true})) {
    const std::vector<Heads> heads = read_heads(weights.tree());
    if (!h_.ropes.empty()) h_.ropes.front() = with_stored_factors(h_.ropes.front(), weights);
    for (const RopeRule& rule : h_.ropes) context_ = std::max(context_, stretched_context(rule));
    const GatedActivation activation =
        form.mlp ? *form.mlp : GatedActivation{.activation = activation_of(h_, weights.config())};
    for (std::size_t i = 0; i < heads.size(); ++i) {
      layers_.push_back(read_layer(weights, i, activation, form));
      layers_.back().heads = heads[i];
    }
  }

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return context_; }
  RopeLayout rope_layout() const override {
    return h_.interleaved_pairs ? RopeLayout::interleaved : RopeLayout::half_split;
  }
  std::vector<CacheWidth> cache_widths() const override {
    std::vector<CacheWidth> widths;
    for (const DecoderLayer& layer : layers_) {
      const std::size_t width = layer.heads.kv_heads * layer.heads.head_dim;
      widths.push_back(
          {width, width, layer.recurrent ? layer.recurrent->states() : std::vector<StateShape>()});
    }
    return widths;
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    for (const RopeRule& rule : h_.ropes) {
      if (!same_frequencies(rule, length, other)) return false;
    }
    return true;
  }

  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override {
    Matrix x = ops.embed(batch.tokens, embedding_);  // [tokens, hidden]
    if (h_.embedding_scale != 1)                     // a number of the weights' type, in transformers
      x = ops.multiply(x, ops.arithmetic().round(h_.embedding_scale));
    taps("embed", x);
    std::vector<RopeAngles> angles;
    for (const RopeRule& rule : h_.ropes) angles.push_back(rope_angles(rule, batch, ops));
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      batch.go_on();
      const TapScope at(taps, "layers", i);
      x = ops.add(x, attention(x, i, batch, angles, ops, at));
      at("attn_residual", x);
      if (layers_[i].mixture || layers_[i].mlp.down) x = ops.add(x, feed_forward(x, layers_[i], ops, at));
      at("out", x);
    }
    x = norm(x, final_norm_, ops);
    taps("final_norm", x);
    return x;
  }

  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    Matrix y = ops.linear(hidden, head_, head_bias_);  // [rows, vocabulary]
    if (h_.final_cap != 0) y = ops.soft_cap(y, h_.final_cap);
    taps("logits", y);
    return y;
  }

 private:
  Matrix norm(const Matrix& x, const WeightView& weight, Ops& ops) const {
    return weight ? ops.rms_norm(x, weight, h_.epsilon, norm_) : x;
  }

  Matrix attention(const Matrix& x, std::size_t index, const Batch& batch,
                   const std::vector<RopeAngles>& angles, Ops& ops, const TapScope& at) const {
    const DecoderLayer& layer = layers_[index];
    const Matrix y = norm(x, layer.attention_norm, ops);  // [tokens, hidden]
    if (layer.attention_norm) at("attn_norm", y);
    Matrix out = layer.recurrent ? layer.recurrent->forward(y, index, batch, ops, at)
                                 : attention_of_heads(y, index, batch, angles, ops, at);
    at("attn_out", out);
    if (layer.attention_post_norm) at("attn_post_norm", out = norm(out, layer.attention_post_norm, ops));
    return out;
  }

  Matrix attention_of_heads(const Matrix& y, std::size_t index, const Batch& batch,
                            const std::vector<RopeAngles>& angles, Ops& ops, const TapScope& at) const {
    const DecoderLayer& layer = layers_[index];
    const Heads& h = layer.heads;
    Matrix q, k, v;  // [tokens, heads · head_dim], [tokens, kv_heads · head_dim] twice
    project(y, layer, ops, q, k, v);
    Matrix gate;  // as wide as the heads, or none
    if (q.columns() == 2 * h.heads * h.head_dim) {
      gate = ops.of_each(q, 2 * h.head_dim, h.head_dim, h.head_dim);
      q = ops.of_each(q, 2 * h.head_dim, 0, h.head_dim);
      at("attn_gate", gate);
    }
    at("q_proj", q);
    at("k_proj", k);
    q = norm(q, layer.q_norm, ops);
    k = norm(k, layer.k_norm, ops);
    if (const auto rope = h_.rope_of.at(index)) {
      rotate(q, h.heads, h, angles.at(*rope), ops);
      rotate(k, h.kv_heads, h, angles.at(*rope), ops);
    }
    at("q", q);
    at("k", k);
    at("v", v);
    Matrix context = attend(q, k, v, index, batch, ops);  // [tokens, heads · head_dim]
    at("attn_context", context);
    if (!gate.empty()) at("attn_gated", context = ops.output_gate(context, gate));
    return ops.linear(context, layer.o.weight, layer.o.bias);  // [tokens, hidden]
  }

  static void project(const Matrix& x, const DecoderLayer& layer, Ops& ops, Matrix& q, Matrix& k, Matrix& v) {
    if (!layer.qkv) {
      q = ops.linear(x, layer.q.weight, layer.q.bias);
      k = ops.linear(x, layer.k.weight, layer.k.bias);
      v = ops.linear(x, layer.v.weight, layer.v.bias);
      return;
    }
    const std::size_t q_width = layer.heads.heads * layer.heads.head_dim;
    const std::size_t kv_width = layer.heads.kv_heads * layer.heads.head_dim;
    const Matrix qkv = ops.linear(x, layer.qkv.weight, layer.qkv.bias);
    q = qkv.part(0, q_width);
    k = qkv.part(q_width, kv_width);
    v = qkv.part(q_width + kv_width, kv_width);
  }

  void rotate(Matrix& x, std::size_t heads, const Heads& h, const RopeAngles& angles, Ops& ops) const {
    ops.rope(x, {.heads = heads,
                 .head_dim = h.head_dim,
                 .cos = angles.cos,
                 .sin = angles.sin,
                 .layout = rope_layout()});
  }

  Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v, std::size_t index, const Batch& batch,
                Ops& ops) const {
    const Heads& h = layers_[index].heads;
    AttentionCall call = {.q = q,
                          .sequences = {},
                          .heads = h.heads,
                          .kv_heads = h.kv_heads,
                          .qk_dim = h.head_dim,
                          .v_dim = h.head_dim,
                          .scale = h_.attention_scale,
                          .window = h.window,
                          .soft_cap = h_.attention_cap,
                          .sinks = layers_[index].sinks};
    if (call.scale == 0) call.scale = 1 / std::sqrt(static_cast<double>(h.head_dim));
    for (const Batch::Sequence& s : batch.sequences) {
      s.cache->put(index, k.row_range(s.first, s.count), v.row_range(s.first, s.count));
      call.sequences.push_back(
          {s.first, s.count, s.cache->length() + s.count, s.cache->keys(index), s.cache->values(index)});
    }
    return ops.attention(call);
  }

  Matrix feed_forward(const Matrix& x, const DecoderLayer& layer, Ops& ops, const TapScope& at) const {
    const Matrix y = norm(x, layer.mlp_norm, ops);  // [tokens, hidden]
    if (layer.mlp_norm) at("mlp_norm", y);
    Matrix out = layer.mixture ? layer.mixture->forward(y, ops, at) : layer.mlp.forward(y, ops);
    at("mlp_out", out);
    if (layer.mlp_post_norm) at("mlp_post_norm", out = norm(out, layer.mlp_post_norm, ops));
    return out;
  }

  Hyperparameters h_;
  NormForm norm_;
  std::size_t context_;
  WeightView embedding_, final_norm_, head_, head_bias_;
  std::vector<DecoderLayer> layers_;
};

}  // namespace

std::unique_ptr<LanguageModel> make_decoder(const Weights& weights, const DecoderForm& form) {
  return std::make_unique<Decoder>(weights, form);
}

}  // namespace assay
