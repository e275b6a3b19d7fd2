// DeepSeek V2, V2-Lite, V3, R1, V3.1, V3.2, Kimi K2; and those that have their attention: MiniCPM3, GLM-5, GLM-4.7
// Flash, Youtu, A.X K1. deepseek_rules.cpp says who they are.
//
//   V2    arXiv 2405.04434: multi-head latent attention (§2.1), DeepSeekMoE (§2.2)
//   V3    arXiv 2412.19437: sigmoid gating with a correction bias (§2.1.2), multi-token prediction (§2.2)
//   V3.2  arXiv 2512.02556: attention to the keys that an indexer chooses (latent_attention.h)
//
// Where the references disagree (--variant):
//
//   transformers    release 5; of expert groups not chosen no expert is; cos and sin of YaRN are scaled by
//   (default)       m(mscale) / m(mscale_all_dim), scores by m(mscale_all_dim)², m(s) = 0.1 s ln(factor) + 1
//   transformers-4  as the default, but experts outside the chosen groups count 0 in the choice: where
//                   corrections make all others negative, they are chosen
//   deepseek        inference/model.py: YaRN only if the context is longer than the original one; scores
//                   scaled by m(mscale)², cos and sin not at all; ε is 1e-6 in every norm; weights of
//                   sigmoid gating always renormalized, without an ε; a router computes as other layers do
#include "refimpl/models/deepseek.h"

#include <algorithm>
#include <cmath>

#include "core/model/layer_geometry.h"
#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/carried_choice.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/latent_attention.h"
#include "refimpl/models/prediction.h"
#include "refimpl/models/staged_model.h"

namespace assay {
namespace {

struct Settings {
  LatentSettings attention;
  double epsilon = 1e-6;        // of a block's norms
  std::vector<RopeRule> ropes;  // one, or those that layers name
  GatedActivation activation;
  GateRule gate;
  ResultRounding router = ResultRounding::float32;
  // MiniCPM3 scales what enters the first layer, what a layer adds, and what the head sees.
  double embedding_factor = 1, residual_factor = 1, head_factor = 1;
  double final_cap = 0;              // of logits; 0: none
  std::vector<double> stretch = {};  // Mistral Large 4: what frequencies are multiplied by, a pair each
};

// y = norm(x), and in A.X K2 y · σ(up(silu(down(y)))).
struct BlockNorm {
  WeightView weight, down, up;

  static BlockNorm get(const Weights& weights, Role role, std::size_t layer) {
    const auto number = [&](int i) { return weights.find({.role = role, .layer = layer, .half = i}); };
    return {weights.get({.role = role, .layer = layer}), number(1), number(2)};
  }
  Matrix operator()(const Matrix& x, double epsilon, Ops& ops) const {
    const Matrix y = ops.rms_norm(x, weight, epsilon, NormForm::weight_last);
    if (!down) return y;
    return ops.output_gate(y, ops.linear(ops.activation(ops.linear(y, down), Activation::silu), up));
  }
};

struct Layer {
  BlockNorm input_norm, post_attention_norm;
  WeightView mlp_post_norm;  // A.X K1, of mixtures
  LatentAttention attention;
  LatentSettings sizes;            // of attention: the model's, but for what is the layer's own
  std::size_t rope = 0;            // of Settings::ropes
  GatedMlp mlp;                    // the first layers
  std::optional<Mixture> mixture;  // the others
};

struct PredictionModule {
  Layer layer;
  PredictionFrame frame;
};

class Deepseek final : public StagedModel {
 public:
  Deepseek(const Weights& weights, const ModelOptions& options, const DeepseekForm& form);

  std::size_t vocabulary() const override { return vocabulary_; }
  std::size_t context() const override { return context_; }
  std::vector<CacheWidth> cache_widths() const override {
    std::vector<CacheWidth> widths;
    const auto add = [&](const Layer& layer, bool drafts) {
      const std::size_t index = layer.attention.indexer ? layer.attention.indexer->width(layer.sizes) : 0;
      if (layer.attention.keeps_latents()) {
        widths.push_back(layer.sizes.cache_row());
        widths.back().value_width = index;
      } else {
        widths.push_back({.key_width = index});
      }
      widths.back().drafts = drafts;
    };
    for (const Layer& layer : layers_) add(layer, false);
    for (const PredictionModule& module : modules_) add(module.layer, true);
    return widths;
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return std::all_of(s_.ropes.begin(), s_.ropes.end(),
                       [&](const RopeRule& rule) { return same_frequencies(rule, length, other); });
  }

  std::size_t layer_count() const override { return layers_.size(); }
  std::size_t cache_of(std::size_t layer) const override {
    const LatentAttention& attention = layers_.at(layer).attention;
    return attention.keeps_latents() ? layer : attention.reads_layer;
  }
  StageStream enter(const Batch& batch, Ops& ops, const Taps& taps) const override;
  StageStream through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch, Ops& ops,
                      const Taps& taps) const override;
  Matrix leave(const StageStream& stream, Ops& ops, const Taps& taps) const override;
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override;
  std::size_t draft_layers() const override { return modules_.size(); }
  Matrix draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
               const Taps& taps) const override;
  Matrix draft_logits(std::size_t module, const Matrix& draft, Ops& ops, const Taps& taps) const override;

 private:
  std::vector<RopeAngles> angles_of(const Batch& batch, Ops& ops) const {
    std::vector<RopeAngles> angles;  // each [tokens, rope / 2]
    for (const RopeRule& rule : s_.ropes) angles.push_back(rope_angles(rule, batch, ops, s_.stretch));
    return angles;
  }
  Matrix run_layer(const Layer& layer, std::size_t index, Matrix x, const Batch& batch,
                   const std::vector<RopeAngles>& angles, KeyChoice& chosen, Ops& ops,
                   const TapScope& at) const;

  std::size_t vocabulary_ = 0, context_ = 0;
  Settings s_;
  WeightView embedding_, final_norm_, head_;
  std::vector<Layer> layers_;
  std::vector<PredictionModule> modules_;
};

// -------------------------------------------------------------------------------------------- forward pass

Matrix Deepseek::run_layer(const Layer& layer, std::size_t index, Matrix x, const Batch& batch,
                           const std::vector<RopeAngles>& angles, KeyChoice& chosen, Ops& ops,
                           const TapScope& at) const {
  const auto norm = [&](const Matrix& of, const WeightView& weight) {
    return ops.rms_norm(of, weight, s_.epsilon, NormForm::weight_last);
  };
  const auto add = [&](const Matrix& stream, const Matrix& more) {
    return ops.add(stream, s_.residual_factor == 1 ? more : ops.multiply(more, s_.residual_factor));
  };
  const Matrix attended = layer.input_norm(x, s_.epsilon, ops);  // [tokens, hidden]
  at("attn_norm", attended);
  const Matrix a =
      layer.attention.forward(attended, index, batch, angles.at(layer.rope), layer.sizes, chosen, ops, at);
  at("attn_out", a);
  x = add(x, a);
  at("attn_residual", x);
  const Matrix fed = layer.post_attention_norm(x, s_.epsilon, ops);  // [tokens, hidden]
  at("mlp_norm", fed);
  Matrix f = layer.mixture ? layer.mixture->forward(fed, ops, at) : layer.mlp.forward(fed, ops);
  at("mlp_out", f);
  if (layer.mlp_post_norm) at("mlp_post_norm", f = norm(f, layer.mlp_post_norm));
  x = add(x, f);
  at("out", x);
  return x;  // [tokens, hidden]
}

StageStream Deepseek::enter(const Batch& batch, Ops& ops, const Taps& taps) const {
  Matrix x = ops.embed(batch.tokens, embedding_);  // [tokens, hidden]
  if (s_.embedding_factor != 1) x = ops.multiply(x, ops.arithmetic().round(s_.embedding_factor));
  taps("embed", x);
  return {x, {}};
}

// Beside the stream: what the last indexer chose. GLM-5.2: a layer may take the keys that an earlier one chose.
StageStream Deepseek::through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch,
                              Ops& ops, const Taps& taps) const {
  const std::vector<RopeAngles> angles = angles_of(batch, ops);
  KeyChoice chosen;
  if (!stream.beside.empty()) chosen = choice_at(stream.beside.front(), ops);
  for (std::size_t i = first; i < end; ++i) {
    batch.go_on();
    stream.x = run_layer(layers_[i], i, stream.x, batch, angles, chosen, ops, TapScope(taps, "layers", i));
  }
  const bool is_taken =
      end < layers_.size() && layers_[end].sizes.top_k != 0 && !layers_[end].attention.indexer;
  stream.beside.clear();
  if (is_taken) stream.beside.push_back(positions_of(chosen, layers_[end].sizes.top_k, ops));
  return stream;
}

Matrix Deepseek::leave(const StageStream& stream, Ops& ops, const Taps& taps) const {
  const Matrix x = ops.rms_norm(stream.x, final_norm_, s_.epsilon, NormForm::weight_last);
  taps("final_norm", x);
  return x;
}

Matrix Deepseek::logits(const Matrix& hidden, Ops& ops, const Taps& taps) const {
  const Matrix seen = s_.head_factor == 1 ? hidden : ops.multiply(hidden, s_.head_factor);
  Matrix y = ops.linear(seen, head_);  // [rows, vocabulary]
  if (s_.final_cap != 0) y = ops.soft_cap(y, s_.final_cap);
  taps("logits", y);
  return y;
}

Matrix Deepseek::draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
                       const Taps& taps) const {
  if (module >= modules_.size()) throw Error::internal("a draft of a prediction module that is not there");
  const PredictionModule& m = modules_[module];
  const TapScope at(taps, "mtp", module);
  const Matrix token = ops.embed(batch.tokens, m.frame.embedding ? m.frame.embedding : embedding_);
  Matrix x = m.frame.enter(token, hidden, ops);
  at("projected", x);
  const std::vector<RopeAngles> angles = angles_of(batch, ops);
  KeyChoice chosen;
  x = run_layer(m.layer, layers_.size() + module, x, batch, angles, chosen, ops, at);
  x = m.frame.final_norm(x, ops);
  at("final_norm", x);
  return x;  // [tokens, hidden]
}

Matrix Deepseek::draft_logits(std::size_t module, const Matrix& draft, Ops& ops, const Taps& taps) const {
  const Matrix y = logits(draft, ops, {});  // the head is the main model's
  TapScope(taps, "mtp", module)("logits", y);
  return y;
}

// ----------------------------------------------------------------------------- reading the checkpoint

double yarn_m(double s, double factor) {
  return factor <= 1 ? 1 : 0.1 * s * std::log(factor) + 1;
}
double yarn_m(const RopeRule& rope) {
  return rope.type == RopeRule::Type::standard || rope.mscale_all_dim == 0
             ? 1
             : yarn_m(rope.mscale_all_dim, rope.factor);
}

void read_rope_and_scale(const Weights& weights, bool as_deepseek, Settings& s) {
  RopeRule& rope =
      s.ropes.emplace_back(with_stored_factors(hyperparameters(weights.tree()).ropes.front(), weights));
  double m = 1;
  if (!as_deepseek) {
    m = yarn_m(rope);
  } else if (rope.type == RopeRule::Type::yarn) {
    if (rope.context > rope.original_context)
      m = yarn_m(rope.mscale == 0 ? 1 : rope.mscale, rope.factor);
    else
      rope.type = RopeRule::Type::standard;
    rope.attention_factor = 1;
  }
  s.attention.scale *= m * m;
}

}  // namespace

double yarn_score_factor(const RopeRule& rope) {
  return yarn_m(rope) * yarn_m(rope);
}

GateRule deepseek_gate(const ModuleTree& tree, std::string_view variant, bool softmax_router) {
  const ExpertRouting& routing = hyperparameters(tree).routing;
  const bool sigmoid = routing.method == ExpertRouting::Method::noaux_tc;
  GateRule rule;
  rule.score = sigmoid ? GateRule::Score::sigmoid : GateRule::Score::softmax;
  rule.group_score = sigmoid ? GateRule::GroupScore::sum_of_two : GateRule::GroupScore::largest;
  rule.top_k = tree.experts_per_token;
  rule.groups = routing.groups;
  rule.chosen_groups = routing.chosen_groups;
  rule.scale = routing.scale;
  rule.renormalize = sigmoid && (variant == kDeepseek || routing.renormalize);
  rule.epsilon = variant == kDeepseek ? 0 : 1e-20;
  rule.masked_is_zero = variant == kTransformers4;
  if (softmax_router) {
    rule.group_score = GateRule::GroupScore::sum_of_two;
    rule.renormalize = routing.renormalize;
    rule.masked_is_zero = true;
    rule.rounding = ResultRounding::as_arithmetic;
  }
  return rule;
}

namespace {

Settings read_settings(const Weights& weights, const ModelOptions& options, const DeepseekForm& form) {
  const ModuleTree& tree = weights.tree();
  const Hyperparameters& h = hyperparameters(tree);
  const bool as_deepseek = options.variant == kDeepseek;
  Settings s;
  s.attention = latent_settings(tree);
  s.attention.index_layout = form.index_layout;
  s.attention.form = options.mla;
  if (!h.interleaved_pairs) s.attention.layout = RopeLayout::half_split;
  if (!as_deepseek) s.epsilon = h.epsilon;
  if (form.latents_as_others || form.by_layer) s.attention.epsilon = h.epsilon;
  if (form.by_layer)
    s.ropes = h.ropes;
  else
    read_rope_and_scale(weights, as_deepseek, s);
  if (tree.experts > 0) s.gate = deepseek_gate(tree, options.variant, form.softmax_router);
  if (form.masked_is_zero) s.gate.masked_is_zero = true;
  if (as_deepseek || form.softmax_router) s.router = ResultRounding::as_arithmetic;
  if (form.router_in_float32) s.router = s.gate.rounding = ResultRounding::float32;
  s.attention.temperature = h.temperature;
  s.embedding_factor = h.embedding_scale;
  s.residual_factor = h.residual_scale;
  s.head_factor = h.head_scale;
  s.final_cap = h.final_cap;
  if (const WeightView alpha = weights.find({.role = Role::position_embedding})) {
    for (const double a : decode_vector(alpha)) s.stretch.push_back(std::exp(a));
  }
  s.activation.activation = activation_of(h, weights.config());
  return s;
}

// Those of all layers, but for what the layer has of its own.
LatentSettings sizes_of(const Weights& weights, std::size_t index, const LatentSettings& of_all) {
  const AttentionGeometry* g = geometry_of(weights.tree(), index);
  if (g == nullptr) throw Error::internal("a layer that attends to nothing");
  LatentSettings s = latent_settings(*g);
  s.epsilon = of_all.epsilon;
  s.layout = of_all.layout;
  s.index_layout = of_all.index_layout;
  s.form = of_all.form;
  const auto hidden = static_cast<double>(weights.tree().hidden_size);
  s.q_latent_factor = std::sqrt(hidden / static_cast<double>(g->q_lora_rank));
  s.latent_factor = std::sqrt(hidden / static_cast<double>(g->kv_lora_rank));
  return s;
}

Layer read_layer(const Weights& weights, std::size_t index, const Settings& s, MoeForm mixing,
                 bool by_layer) {
  Layer layer;
  layer.sizes = by_layer ? sizes_of(weights, index, s.attention) : s.attention;
  layer.input_norm = BlockNorm::get(weights, Role::input_norm, index);
  layer.post_attention_norm = BlockNorm::get(weights, Role::pre_feedforward_norm, index);
  layer.mlp_post_norm = weights.find({.role = Role::post_feedforward_norm, .layer = index});
  layer.attention = LatentAttention::read(weights, index);
  const auto& rope_of = hyperparameters(weights.tree()).rope_of;
  if (by_layer) {
    layer.rope = rope_of.at(index).value_or(0);
  } else if (index < rope_of.size() &&
             !rope_of[index]) {  // all of a head is as what does not rotate elsewhere
    layer.sizes.nope_dim += layer.sizes.rope_dim;
    layer.sizes.rope_dim = 0;
  }
  if (is_mixture(weights, index)) {
    layer.mixture = Mixture::read(weights, index, s.activation, mixing);
    layer.mixture->rule = s.gate;
    layer.mixture->router_rounding = s.router;
  } else {
    layer.mlp = GatedMlp::read(weights, index, Part::dense_mlp, s.activation);
  }
  return layer;
}

Deepseek::Deepseek(const Weights& weights, const ModelOptions& options, const DeepseekForm& form)
    : vocabulary_(weights.tree().vocabulary), s_(read_settings(weights, options, form)) {
  for (const RopeRule& rule : s_.ropes) context_ = std::max(context_, stretched_context(rule));
  embedding_ = weights.get({.role = Role::token_embedding});
  final_norm_ = weights.get({.role = Role::final_norm});
  head_ = weights.get({.role = Role::output_head});
  const std::size_t count = weights.tree().layers;
  for (std::size_t i = 0; i < count; ++i)
    layers_.push_back(read_layer(weights, i, s_, options.moe, form.by_layer));
  for (std::size_t i = 0; i < form.kv_sources.size(); ++i)
    layers_.at(i).attention.reads_layer = form.kv_sources[i];
  for (std::size_t i = count;; ++i) {
    auto frame = PredictionFrame::find(weights, i, i, {.form = NormForm::weight_last, .epsilon = s_.epsilon},
                                       kLayerModules);
    if (!frame) return;
    modules_.push_back({read_layer(weights, i, s_, options.moe, form.by_layer), std::move(*frame)});
  }
}

}  // namespace

std::unique_ptr<LanguageModel> make_deepseek(const Weights& weights, const ModelOptions& options,
                                             const DeepseekForm& form) {
  return std::make_unique<Deepseek>(weights, options, form);
}

}  // namespace assay
