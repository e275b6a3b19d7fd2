#include "refimpl/models/transformer.h"

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/decoder_layer.h"
#include "refimpl/models/name_stem.h"
#include "refimpl/models/rope_table.h"
#include "refimpl/models/staged_model.h"

namespace assay {
namespace {

class Decoder : public StagedModel {
 public:
  Decoder(const Weights& weights, const DecoderForm& form)
      : h_(hyperparameters(weights.tree())),
        form_(form),
        context_(h_.context),
        embedding_(weights.get({.role = Role::token_embedding})),
        added_embedding_(weights.find({.role = Role::token_embedding, .half = 1})),
        positions_(weights.find({.role = Role::position_embedding})),
        head_(weights.get({.role = Role::output_head})),
        head_bias_(weights.find({.role = Role::output_head, .bias = true})) {
    const auto& attention = weights.tree().attention;
    if (!attention.empty() && attention.front().kind == AttentionGeometry::Kind::latent) {
      latent_ = latent_settings(weights.tree());
      latent_.form = form.latent;
      latent_.epsilon = form.latent_epsilon;
      latent_.scale *= form.latent_scale;
    }
    const NormReader norms(weights, form);
    embedding_norm_ = form.unweighted_embedding_norm
                          ? Norm::unweighted(weights.tree().hidden_size, norms.rule())
                          : norms.stored(Role::embedding_norm);
    final_norm_ = norms.of_output();
    own_inputs_ = PerLayerInputs::find(weights, norms.rule());
    if (!h_.ropes.empty()) h_.ropes.front() = with_stored_factors(h_.ropes.front(), weights);
    for (const RopeRule& rule : h_.ropes) context_ = std::max(context_, stretched_context(rule));
    if (form.sines != SineForm::none) {
      sines_ = sine_positions(form.sines, context_ + form.position_offset, weights.tree().hidden_size,
                              form.silent_position);
      positions_ = sines_.view();
    }
    if (positions_) context_ = std::min(context_, positions_.rows - form.position_offset);
    const GatedActivation activation =
        form.mlp ? *form.mlp : GatedActivation{.activation = activation_of(h_, weights.config())};
    for (std::size_t i = 0; i < weights.tree().layers; ++i)
      layers_.push_back(read_decoder_layer(weights, i, activation, form));
    if (form.passes > 1) add_passes(weights, activation, norms.rule());
    prediction_ = read_prediction(weights, activation, form);
    if (form.stream_mixes != nullptr) stream_mixes_ = *form.stream_mixes;
    if (form.inkling && form.inkling->words < head_.rows) head_ = head_.row_range(0, form.inkling->words);
    if (form.residual_block != 0)
      output_mix_ = ResidualMix::read(weights, name_stem(weights) + "output_attn_res");
  }

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return context_; }
  RopeLayout rope_layout() const override {
    return h_.interleaved_pairs ? RopeLayout::interleaved : RopeLayout::half_split;
  }
  bool embeds_positions() const override { return static_cast<bool>(positions_); }
  std::vector<CacheWidth> cache_widths() const override {
    std::vector<CacheWidth> widths(layers_.size());
    for (const DecoderLayer& layer : layers_) widths.at(layer.index) = cache_width_of(layer);
    for (const DecoderPrediction& module : prediction_) {
      for (const DecoderLayer& layer : module.layers) {
        widths.push_back(cache_width_of(layer));
        widths.back().drafts = true;
      }
    }
    return widths;
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    for (const RopeRule& rule : h_.ropes) {
      if (!same_frequencies(rule, length, other)) return false;
    }
    return true;
  }

  std::size_t layer_count() const override { return layers_.size(); }
  std::size_t cache_of(std::size_t layer) const override {
    const std::optional<HeadAttention>& attention = layers_.at(layer).attention;
    return attention ? attention->reads_layer() : layer;
  }
  // Beside the stream: inputs of all layers; or the stream before every residual_block-th layer; or what
  // stream_mixes_ keep.
  StageStream enter(const Batch& batch, Ops& ops, const Taps& taps) const override {
    const Matrix x = embed(batch, ops);  // [tokens, hidden]
    taps("embed", x);
    if (stream_mixes_) return {x, std::vector<Matrix>(StreamMixes::kSlots, x)};
    if (!own_inputs_) return {x, {}};
    const Matrix own = (*own_inputs_)(batch, x, ops);  // [tokens, layers · width]
    taps("layer_inputs", own);
    return {x, {own}};
  }
  StageStream through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch, Ops& ops,
                      const Taps& taps) const override {
    const Matrix own = own_inputs_ ? stream.beside.at(0) : Matrix();
    const std::vector<RopeAngles> angles = angles_of(batch, ops);
    for (std::size_t i = first; i < end; ++i) {
      const DecoderLayer& layer = layers_[i];
      const TapScope at(taps, "layers", i);
      batch.go_on();
      if (form_.residual_block != 0) {
        stream.x = run_on_mixes(layer, stream.x, stream.beside, batch, ops, at);
        continue;
      }
      if (stream_mixes_) stream.x = stream_mixes_->before(layer.index, stream.x, stream.beside, ops);
      stream.x = run(layer, stream.x, own, batch, angles_for(layer, angles), ops, at);
      const bool passed = (i + 1) % h_.rope_of.size() == 0 && i + 1 < layers_.size();
      if (form_.norm_between && passed) stream.x = final_norm_(stream.x, ops);
    }
    return stream;
  }
  Matrix leave(const StageStream& stream, Ops& ops, const Taps& taps) const override {
    Matrix x = stream.x;
    if (output_mix_) taps("mixed", x = output_mix_(stream.beside, x, h_.epsilon, ops));
    if (head_norms() && !taps.listening()) return x;
    const Matrix y = final_norm_(x, ops);
    taps("final_norm", y);
    return head_norms() ? x : y;
  }

  std::size_t draft_layers() const override { return prediction_.size(); }
  Matrix draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
               const Taps& taps) const override {
    if (module >= prediction_.size()) throw Error::internal("a draft of a module that is not there");
    const DecoderPrediction& m = prediction_[module];
    const Matrix token = form_.prediction.normed_embedding ? embed(batch, ops)  // [tokens, hidden]
                                                           : ops.embed(batch.tokens, embedding_);
    Matrix x = m.frame.enter(token, hidden, ops);
    const std::vector<RopeAngles> angles = angles_of(batch, ops);
    const std::size_t first = module * m.layers.size();
    for (std::size_t i = 0; i < m.layers.size(); ++i) {
      const TapScope at(taps, "mtp", first + i);
      if (i == 0) at("projected", x);
      x = run(m.layers[i], x, Matrix(), batch, angles_for(m.layers[i], angles), ops, at);
    }
    if (head_norms() && !taps.listening()) return x;
    const Matrix y = m.frame.final_norm(x, ops);
    TapScope(taps, "mtp", first + m.layers.size() - 1)("final_norm", y);
    return head_norms() ? x : y;
  }
  Matrix draft_logits(std::size_t module, const Matrix& draft, Ops& ops, const Taps& taps) const override {
    const DecoderPrediction& m = prediction_.at(module);
    const Matrix seen = head_norms() ? m.frame.final_norm(draft, ops) : draft;
    Matrix y = m.frame.head ? scored(seen, m.frame.head, {}, ops) : scored(seen, head_, head_bias_, ops);
    TapScope(taps, "mtp", (module + 1) * m.layers.size() - 1)("logits", y);
    return y;
  }

  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    const Matrix normed = head_norms() ? final_norm_(hidden, ops) : hidden;
    Matrix y = scored(form_.head_block ? form_.head_block(normed, ops) : normed, head_, head_bias_, ops);
    taps("logits", y);
    return y;
  }

 private:
  // The layers once more for each pass behind the first, with caches of their own.
  void add_passes(const Weights& weights, const GatedActivation& activation, const NormRule& norm) {
    const std::size_t count = layers_.size();
    for (std::size_t pass = 0; pass < form_.passes; ++pass) {
      for (std::size_t i = 0; i < count; ++i) {
        if (pass > 0) layers_.push_back(read_decoder_layer(weights, i, activation, form_));
        DecoderLayer& layer = layers_.at(pass * count + i);
        layer.index = i * form_.passes + pass;
        layer.attention.emplace(attention_of_pass(weights, i, pass, form_, norm));
      }
    }
  }

  CacheWidth cache_width_of(const DecoderLayer& layer) const {
    CacheWidth width = layer.attention ? layer.attention->cache_width()
                       : layer.latent  ? latent_.cache_row()
                                       : CacheWidth{};
    if (layer.recurrent) width.states = layer.recurrent->states();
    for (const ResidualConvolution* one : {&layer.convolutions.attention, &layer.convolutions.mlp})
      if (*one) width.states.push_back(one->state());
    return width;
  }

  // Modules of prediction are given what stands before the final norm: then it is the head's.
  bool head_norms() const { return form_.prediction.before_norms && !prediction_.empty(); }

  Matrix scored(const Matrix& x, const WeightView& head, const WeightView& bias, Ops& ops) const {
    Matrix y = ops.linear(x, head, bias);  // [rows, vocabulary]
    if (h_.head_scale != 1) y = ops.multiply(y, h_.head_scale);
    if (h_.final_cap != 0) y = ops.soft_cap(y, h_.final_cap);
    return y;
  }

  Matrix embed(const Batch& batch, Ops& ops) const {
    Matrix x = ops.embed(batch.tokens, embedding_);
    if (form_.into_stream) x = form_.into_stream(x, ops);
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

  std::vector<RopeAngles> angles_of(const Batch& batch, Ops& ops) const {
    std::vector<RopeAngles> angles;
    for (const RopeRule& rule : h_.ropes) {
      angles.push_back(rope_angles(rule, batch, ops));
      if (form_.turns_back) angles.back() = turned_back(std::move(angles.back()), ops);
    }
    return angles;
  }

  // Null: the layer rotates nothing. Layers of prediction rotate as the first rope has it, unless rope_of tells of them.
  const RopeAngles* angles_for(const DecoderLayer& layer, const std::vector<RopeAngles>& angles) const {
    const std::size_t place = layer.index / form_.passes;
    if (place >= h_.rope_of.size()) return angles.empty() ? nullptr : &angles.front();
    const std::optional<std::size_t> rope = h_.rope_of[place];
    return rope ? &angles.at(*rope) : nullptr;
  }

  // `own`: inputs of all layers, where they have any.
  Matrix run(const DecoderLayer& layer, const Matrix& x, const Matrix& own, const Batch& batch,
             const RopeAngles* angles, Ops& ops, const TapScope& at) const {
    Matrix y = form_.norms_behind_sums ? summed_and_normed(x, layer, batch, angles, ops, at)
               : form_.normed_stream   ? from_norms(x, layer, batch, angles, ops, at)
               : h_.parallel_branches  ? branches(x, layer, batch, angles, ops, at)
                                       : one_by_one(x, layer, batch, angles, ops, at);
    if (layer.own_input) {
      const std::size_t width = own_inputs_->width;
      const Matrix more = (*layer.own_input)(y, own.part(layer.index * width, width), ops);
      at("own_input", more);
      y = ops.add(y, more);
    }
    if (layer.scale != 1) y = ops.multiply(y, layer.scale);
    at("out", y);
    return y;
  }

  // Nothing rotates.
  Matrix run_on_mixes(const DecoderLayer& layer, Matrix x, std::vector<Matrix>& kept, const Batch& batch,
                      Ops& ops, const TapScope& at) const {
    const Matrix seen = layer.attention_mix(kept, x, h_.epsilon, ops);
    at("attn_in", seen);
    const bool keeps = layer.index % form_.residual_block == 0;
    if (keeps) kept.push_back(x);
    const Matrix mixed =
        mix_tokens(normed(seen, layer.attention_norm, "attn_norm", ops, at), layer, batch, nullptr, ops, at);
    x = keeps ? mixed : ops.add(x, mixed);
    at("attn_residual", x);
    const Matrix fed = layer.mlp_mix(kept, x, h_.epsilon, ops);
    at("mlp_in", fed);
    x = ops.add(x, feed_forward(x, normed(fed, layer.mlp_norm, "mlp_norm", ops, at), layer, ops, at));
    at("out", x);
    return x;
  }

  Matrix one_by_one(Matrix x, const DecoderLayer& layer, const Batch& batch, const RopeAngles* angles,
                    Ops& ops, const TapScope& at) const {
    if (layer.mixes_tokens()) {
      x = layer.attention_gate(
          x, mix_tokens(normed(x, layer.attention_norm, "attn_norm", ops, at), layer, batch, angles, ops, at),
          ops);
      at("attn_residual", x);
    }
    if (!layer.has_mlp()) return x;  // one mixer a layer
    Matrix given = feed_forward(x, normed(x, layer.mlp_norm, "mlp_norm", ops, at), layer, ops, at);
    if (layer.convolutions.mlp)
      at("mlp_conv", given = layer.convolutions.mlp(given, layer.index, batch, ops));
    return layer.mlp_gate(x, given, ops);
  }

  Matrix summed_and_normed(Matrix x, const DecoderLayer& layer, const Batch& batch, const RopeAngles* angles,
                           Ops& ops, const TapScope& at) const {
    const Matrix attended = attention(x, layer, batch, angles, ops, at);
    at("attn_out", attended);
    x = normed(ops.add(x, attended), layer.attention_post_norm, "attn_post_norm", ops, at);
    const Matrix given = layer.mlp.forward(x, ops);
    at("mlp_out", given);
    return normed(ops.add(x, given), layer.mlp_post_norm, "mlp_post_norm", ops, at);
  }

  // The stream goes on from what norms made of it.
  Matrix from_norms(Matrix x, const DecoderLayer& layer, const Batch& batch, const RopeAngles* angles,
                    Ops& ops, const TapScope& at) const {
    const NormedStream& form = *form_.normed_stream;
    const StreamShares& mixer = layer.recurrent ? form.recurrent : form.attention;
    const auto sum = [&](const Matrix& stream, const Matrix& block, const StreamShares& shares) {
      return ops.add(scaled(stream, shares.stream, ops), scaled(block, shares.block, ops));
    };
    Matrix y = normed(x, layer.attention_norm, "attn_norm", ops, at);
    x = sum(y, mix_tokens(y, layer, batch, angles, ops, at), mixer);
    at("attn_residual", x);
    y = normed(x, layer.mlp_norm, "mlp_norm", ops, at);
    return sum(y, feed_forward(x, y, layer, ops, at), form.mlp);
  }

  Matrix branches(const Matrix& x, const DecoderLayer& layer, const Batch& batch, const RopeAngles* angles,
                  Ops& ops, const TapScope& at) const {
    const Matrix y = normed(x, layer.attention_norm, "attn_norm", ops, at);
    const Matrix attended = mix_tokens(y, layer, batch, angles, ops, at);
    const Matrix mixed =
        feed_forward(x, layer.mlp_norm ? normed(x, layer.mlp_norm, "mlp_norm", ops, at) : y, layer, ops, at);
    if (form_.branches_first) return ops.add(ops.add(attended, mixed), x);
    return ops.add(ops.add(x, attended), mixed);
  }

  static Matrix normed(const Matrix& x, const Norm& norm, std::string_view tap, Ops& ops,
                       const TapScope& at) {
    Matrix y = norm(x, ops);  // [tokens, hidden]
    if (norm) at(tap, y);
    return y;
  }

  Matrix mix_tokens(const Matrix& x, const DecoderLayer& layer, const Batch& batch, const RopeAngles* angles,
                    Ops& ops, const TapScope& at) const {
    const bool both = layer.recurrent && layer.attention;
    const Matrix mixed =
        layer.recurrent ? layer.recurrent->forward(x, layer.index, batch, ops, at) : Matrix();
    if (both) at("mixer_out", mixed);
    const Matrix out = layer.recurrent && !both ? mixed : attention(x, layer, batch, angles, ops, at);
    at("attn_out", out);
    if (layer.convolutions.attention) {
      Matrix convolved = layer.convolutions.attention(out, layer.index, batch, ops);
      at("attn_conv", convolved);
      return convolved;
    }
    const Matrix all = both ? ops.add(scaled(mixed, form_.scales.recurrent_out, ops),
                                      scaled(out, form_.scales.attention_out, ops))
                            : out;
    return for_stream(normed(all, layer.attention_post_norm, "attn_post_norm", ops, at), ops);
  }

  Matrix attention(const Matrix& x, const DecoderLayer& layer, const Batch& batch, const RopeAngles* angles,
                   Ops& ops, const TapScope& at) const {
    if (layer.map) return layer.map(x, ops);
    if (layer.attention)
      return layer.attention->forward(scaled(x, form_.scales.attention_in, ops), batch, angles, ops, at);
    KeyChoice chosen;
    return layer.latent->forward(x, layer.index, batch, angles != nullptr ? *angles : RopeAngles{}, latent_,
                                 chosen, ops, at);
  }

  // x: the residual, y: what the layer's norm made of it.
  Matrix feed_forward(const Matrix& x, const Matrix& y, const DecoderLayer& layer, Ops& ops,
                      const TapScope& at) const {
    Matrix out = layer.mixture ? layer.mixture->forward(y, ops, at) : layer.mlp.forward(y, ops);
    at("mlp_out", out);
    if (layer.beside) out = layer.beside->joined(x, out, ops, at);
    return for_stream(normed(out, layer.mlp_post_norm, "mlp_post_norm", ops, at), ops);
  }

  Matrix for_stream(const Matrix& x, Ops& ops) const { return scaled(x, h_.residual_scale, ops); }

  static Matrix scaled(const Matrix& x, double factor, Ops& ops) {
    return factor == 1 ? x : ops.multiply(x, factor);
  }

  Hyperparameters h_;
  DecoderForm form_;
  LatentSettings latent_;  // of layers with latent attention
  std::size_t context_;
  OwnWeight sines_;  // or none
  // Molmo2's rows of tokens that stand for images are held, as a plan counts them, and text has none of these.
  WeightView embedding_, added_embedding_, positions_, head_, head_bias_;
  Norm embedding_norm_, final_norm_;
  std::optional<PerLayerInputs> own_inputs_;
  std::vector<DecoderLayer> layers_;
  std::vector<DecoderPrediction> prediction_;
  ResidualMix output_mix_;  // or none
  std::optional<StreamMixes> stream_mixes_;
};

}  // namespace

std::unique_ptr<LanguageModel> make_decoder(const Weights& weights, const DecoderForm& form) {
  return std::make_unique<Decoder>(weights, form);
}

}  // namespace assay
