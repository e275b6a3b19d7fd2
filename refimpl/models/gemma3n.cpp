// Gemma 3n's text: streams of which each layer computes one and corrects the others (altup.h), a branch of low rank
// beside attention (Laurel), sparse gates in the first layers, an embedding of each layer's own, and last layers that read
// the cache of earlier ones. Source: transformers 5.23 (gemma3n).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/altup.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/gaussian_top.h"
#include "refimpl/models/head_attention.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/per_layer_input.h"
#include "refimpl/models/staged_model.h"

namespace assay {
namespace {

// What it has of its own in the config.
struct Gemma3nKeys {
  std::size_t active = 0;        // altup_active_idx
  bool scales_corrected = true;  // altup_correct_scale
  std::vector<double> sparsity;  // activation_sparsity_pattern, by layer
};

std::vector<double> read_sparsity(const ModelConfig& config, std::size_t layers) {
  const auto found = config.text().find("activation_sparsity_pattern");
  std::vector<double> pattern(layers, 0.0);
  if (found == config.text().end() || found->is_null()) {  // as the class has it
    if (layers > 10) std::fill_n(pattern.begin(), 10, 0.95);
    return pattern;
  }
  const auto wrong = [&] {
    return Error::input("activation_sparsity_pattern is no list of a share from 0 up to 1 for each layer")
        .in(config.source());
  };
  if (!found->is_array() || found->size() != layers) throw wrong();
  for (std::size_t i = 0; i < layers; ++i) {
    const ParsedJson& share = (*found)[i];
    if (!share.is_number() || !(share.get<double>() >= 0 && share.get<double>() < 1)) throw wrong();
    pattern[i] = share.get<double>();
  }
  return pattern;
}

Gemma3nKeys read_keys(const ModelConfig& config, std::size_t layers, std::size_t streams) {
  ConfigReader reader(config, "gemma3n");
  Gemma3nKeys keys = {reader.number("altup_active_idx", 0), reader.flag("altup_correct_scale", true),
                      read_sparsity(config, layers)};
  reader.require(keys.active < streams, "altup_active_idx names a stream that there is not");
  return keys;
}

struct Gemma3nLayer {
  std::size_t index = 0;
  Norm attention_norm, attention_post_norm, mlp_norm, mlp_post_norm, laurel_norm;
  WeightView laurel_down, laurel_up;
  std::optional<HeadAttention> attention;
  GatedMlp mlp;
  double sparsity = 0;  // of the MLP's gates
  AltUp altup;
  PerLayerStep own_input;
};

class Gemma3n final : public StagedModel {
 public:
  explicit Gemma3n(const Weights& weights)
      : h_(hyperparameters(weights.tree())),
        rule_{NormKind::rms, NormForm::weight_inside, h_.epsilon},
        activation_(activation_of(h_, weights.config())),
        embedding_(weights.get({.role = Role::token_embedding})),
        head_(weights.get({.role = Role::output_head})),
        final_norm_(weights.get({.role = Role::final_norm}), {}, rule_) {
    const std::string stem = embedding_.name->substr(0, embedding_.name->rfind("embed_tokens"));
    spread_ = stream_projections(weights, stem + "altup_projections");
    gather_ = stream_projections(weights, stem + "altup_unembed_projections");
    keys_ = read_keys(weights.config(), weights.tree().layers, spread_.size() + 1);
    own_inputs_ = PerLayerInputs::find(weights, rule_).value();
    own_inputs_.rounded_factors = true;
    for (std::size_t i = 0; i < weights.tree().layers; ++i) layers_.push_back(read_layer(weights, i, stem));
  }

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override {
    std::size_t context = h_.context;
    for (const RopeRule& rule : h_.ropes) context = std::max(context, stretched_context(rule));
    return context;
  }
  std::vector<CacheWidth> cache_widths() const override {
    std::vector<CacheWidth> widths;
    for (const Gemma3nLayer& layer : layers_) widths.push_back(layer.attention->cache_width());
    return widths;
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return std::all_of(h_.ropes.begin(), h_.ropes.end(),
                       [&](const RopeRule& rule) { return same_frequencies(rule, length, other); });
  }

  std::size_t layer_count() const override { return layers_.size(); }
  std::size_t cache_of(std::size_t layer) const override {
    return layers_.at(layer).attention->reads_layer();
  }
  // Beside the streams: inputs of all layers, [tokens, layers · width].
  StageStream enter(const Batch& batch, Ops& ops, const Taps& taps) const override {
    const Matrix first = ops.multiply(ops.embed(batch.tokens, embedding_),
                                      ops.arithmetic().round(h_.embedding_scale));  // [tokens, hidden]
    const Matrix own = own_inputs_(batch, first, ops);
    taps("layer_inputs", own);
    const Matrix x = side_by_side(spread(first, spread_, ops), ops);
    taps("embed", x);
    return {x, {own}};
  }
  StageStream through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch, Ops& ops,
                      const Taps& taps) const override {
    const Matrix own = stream.beside.at(0);
    Streams x = apart(stream.x);
    std::vector<RopeAngles> angles;
    for (const RopeRule& rule : h_.ropes) angles.push_back(rope_angles(rule, batch, ops));
    for (std::size_t i = first; i < end; ++i) {
      batch.go_on();
      const TapScope at(taps, "layers", i);
      const std::size_t width = own_inputs_.width;
      x = run(layers_[i], x, own.part(i * width, width), batch, angles.at(*h_.rope_of.at(i)), ops, at);
      if (at.listening()) at("out", side_by_side(x, ops));
    }
    return {side_by_side(x, ops), {own}};
  }
  Matrix leave(const StageStream& stream, Ops& ops, const Taps& taps) const override {
    const Matrix y = final_norm_(gathered(apart(stream.x), gather_, ops), ops);
    taps("final_norm", y);
    return y;
  }

  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    Matrix y = ops.linear(hidden, head_);  // [rows, vocabulary]
    if (h_.final_cap != 0) y = ops.soft_cap(y, h_.final_cap);
    taps("logits", y);
    return y;
  }

 private:
  Gemma3nLayer read_layer(const Weights& weights, std::size_t index, const std::string& stem) const {
    const auto norm = [&](Role role, std::optional<Part> part = {}) {
      return Norm(weights.get({.role = role, .part = part, .layer = index}), {}, rule_);
    };
    Gemma3nLayer layer;
    layer.index = index;
    layer.attention_norm = norm(Role::input_norm);
    layer.attention_post_norm = norm(Role::post_attention_norm);
    layer.mlp_norm = norm(Role::pre_feedforward_norm);
    layer.mlp_post_norm = norm(Role::post_feedforward_norm);
    layer.laurel_norm = norm(Role::latent_norm, Part::attention);
    layer.laurel_down = weights.get({.role = Role::latent_down, .part = Part::attention, .layer = index});
    layer.laurel_up = weights.get({.role = Role::latent_up, .part = Part::attention, .layer = index});
    for (const AttentionGeometry& geometry : weights.tree().attention) {
      if (std::find(geometry.layers.begin(), geometry.layers.end(), index) != geometry.layers.end())
        layer.attention.emplace(weights, index, geometry, AttentionForm{.unit_values = true}, rule_);
    }
    layer.mlp = GatedMlp::read(weights, index, Part::dense_mlp, {.activation = activation_});
    layer.sparsity = keys_.sparsity.at(index);
    layer.altup = AltUp::read(weights, fmt::format("{}layers.{}.altup.", stem, index), keys_.active, rule_);
    layer.own_input = PerLayerStep::find(weights, index, rule_, activation_).value();
    return layer;
  }

  static Matrix side_by_side(const Streams& x, Ops& ops) {  // [tokens, n · hidden]
    Matrix all = x.at(0);
    for (std::size_t i = 1; i < x.size(); ++i) all = ops.concatenate(all, x[i]);
    return all;
  }

  Streams apart(const Matrix& x) const {
    const std::size_t count = spread_.size() + 1, width = x.columns() / count;
    Streams streams;
    for (std::size_t i = 0; i < count; ++i) streams.push_back(x.part(i * width, width));
    return streams;
  }

  Streams run(const Gemma3nLayer& layer, const Streams& x, const Matrix& own, const Batch& batch,
              const RopeAngles& angles, Ops& ops, const TapScope& at) const {
    const Streams guessed = layer.altup.guess(x, ops);
    const Matrix mixed = mix_tokens(layer, guessed.at(keys_.active), batch, angles, ops, at);
    const Matrix y = layer.mlp_norm(mixed, ops);
    at("mlp_norm", y);
    const Matrix fed = feed_forward(layer, y, ops);
    at("mlp_out", fed);
    const Matrix fed_norm = layer.mlp_post_norm(fed, ops);
    at("mlp_post_norm", fed_norm);
    Streams corrected = layer.altup.correct(guessed, ops.add(mixed, fed_norm), ops);
    const Matrix& made = corrected.at(keys_.active);
    const Matrix more =
        layer.own_input(keys_.scales_corrected ? layer.altup.scaled(made, ops) : made, own, ops);
    at("own_input", more);
    for (std::size_t k = 1; k < corrected.size(); ++k) corrected[k] = ops.add(corrected[k], more);
    return corrected;
  }

  // (x + norm(attention(norm(x))) + laurel(norm(x))) / √2
  Matrix mix_tokens(const Gemma3nLayer& layer, const Matrix& x, const Batch& batch, const RopeAngles& angles,
                    Ops& ops, const TapScope& at) const {
    const Matrix y = layer.attention_norm(x, ops);
    at("attn_norm", y);
    const Matrix low = ops.linear(ops.linear(y, layer.laurel_down), layer.laurel_up);
    const Matrix laurel = ops.add(y, layer.laurel_norm(low, ops));
    at("laurel", laurel);
    const Matrix out = layer.attention->forward(y, batch, &angles, ops, at);
    at("attn_out", out);
    const Matrix attended = layer.attention_post_norm(out, ops);
    at("attn_post_norm", attended);
    const Matrix sum = ops.add(ops.add(x, attended), laurel);
    std::vector<double> values = ops.download(sum);
    for (double& value : values) value /= std::numbers::sqrt2;
    return ops.upload(values, sum.rows(), sum.columns());
  }

  static Matrix feed_forward(const Gemma3nLayer& layer, const Matrix& x, Ops& ops) {
    if (layer.sparsity == 0) return layer.mlp.forward(x, ops);
    const Matrix gate = gaussian_top(ops.linear(x, layer.mlp.gate), layer.sparsity, ops);
    return ops.linear(ops.gated_activation(gate, ops.linear(x, layer.mlp.up), layer.mlp.form),
                      layer.mlp.down);
  }

  Hyperparameters h_;
  NormRule rule_;
  Activation activation_;
  WeightView embedding_, head_;
  Norm final_norm_;
  std::vector<WeightView> spread_, gather_;  // streams of one, and one of them
  Gemma3nKeys keys_;
  PerLayerInputs own_inputs_;
  std::vector<Gemma3nLayer> layers_;
};

std::unique_ptr<LanguageModel> make_gemma3n(const Weights& weights, const ModelOptions&) {
  require_safetensors(weights);
  return std::make_unique<Gemma3n>(weights);
}

constexpr std::string_view kGemma3nFamilies[] = {"gemma3n"};
constexpr std::string_view kGemma3nKeys[] = {"vocab_size_per_layer_input",
                                             "hidden_size_per_layer_input",
                                             "num_key_value_heads",
                                             "num_kv_shared_layers",
                                             "head_dim",
                                             "attention_bias",
                                             "hidden_activation",
                                             "rms_norm_eps",
                                             "rope_local_base_freq",
                                             "sliding_window",
                                             "layer_types",
                                             "final_logit_softcapping",
                                             "altup_num_inputs",
                                             "altup_active_idx",
                                             "altup_correct_scale",
                                             "laurel_rank",
                                             "activation_sparsity_pattern"};
constexpr auto kGemma3nUsed = kin_keys(kGemma3nKeys);
constexpr std::string_view kGemma3nIdle[] = {"altup_coef_clip"};  // while it is trained

}  // namespace

const ModelRule kGemma3nRule = {kGemma3nFamilies, {}, {kGemma3nUsed, kGemma3nIdle}, make_gemma3n};

}  // namespace assay
