// DeepSeek V2, V2-Lite, V3, R1, V3.1, Kimi K2; and MiniCPM3, which has their attention.
//
//   V2  arXiv 2405.04434: multi-head latent attention (§2.1), DeepSeekMoE (§2.2)
//   V3  arXiv 2412.19437: sigmoid gating with a correction bias (§2.1.2), multi-token prediction (§2.2)
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
#include <cmath>
#include <memory>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/rope_table.h"
#include "refimpl/models/rules.h"

namespace assay {
namespace {

constexpr std::string_view kTransformers = "transformers", kTransformers4 = "transformers-4",
                           kDeepseek = "deepseek";

struct Settings {
  std::size_t heads = 0, kv_rank = 0, nope_dim = 0, rope_dim = 0, v_dim = 0;
  double epsilon = 1e-6;         // of a block's norms
  double latent_epsilon = 1e-6;  // of the norms on queries' and keys' latents
  double scale = 1;              // of attention scores
  RopeRule rope;
  RopeLayout layout = RopeLayout::interleaved;
  GatedActivation activation;
  GateRule gate;
  ResultRounding router = ResultRounding::float32;
  // MiniCPM3 scales what enters the first layer, what a layer adds, and what the head sees.
  double embedding_factor = 1, residual_factor = 1, head_factor = 1;
  MlaForm mla = MlaForm::absorbed;
};

// Attention over a shared latent: what a token keeps is c = norm(W_DKV x) and one rotary key part.
struct LatentAttention {
  WeightView q;                             // V2-Lite: queries straight from x
  WeightView q_a, q_a_bias, q_a_norm, q_b;  // else through a latent of their own
  WeightView kv_a, kv_a_bias, kv_a_norm;
  WeightView kv_b, k_b, v_b;  // one matrix, or GGUF's two halves
  WeightView output, output_bias;

  Matrix forward(const Matrix& x, std::size_t layer, const Batch& batch, const RopeAngles& angles,
                 const Settings& s, Ops& ops, const TapScope& at) const;

 private:
  Matrix queries(const Matrix& x, const Settings& s, Ops& ops) const;
};

struct Layer {
  WeightView input_norm, post_attention_norm;
  LatentAttention attention;
  GatedMlp mlp;                    // the first layers
  std::optional<Mixture> mixture;  // the others
};

// h' = layer(W [norm(embedding of the next token) | norm(h)]). The embedding comes first in W's input, though
// the paper writes h first; h is what the main model's head sees, after its final norm.
struct PredictionModule {
  Layer layer;
  WeightView embedding_norm, hidden_norm, projection, final_norm;
};

class Deepseek final : public LanguageModel {
 public:
  Deepseek(const Weights& weights, const ModelOptions& options);

  std::size_t vocabulary() const override { return vocabulary_; }
  std::size_t context() const override { return context_; }
  std::vector<CacheWidth> cache_widths() const override {
    const std::size_t width = s_.kv_rank + s_.rope_dim;
    return std::vector<CacheWidth>(layers_.size() + draft_layers(), {width, 0});
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return same_frequencies(s_.rope, length, other);
  }

  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override;
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override;
  std::size_t draft_layers() const override { return module_ ? 1 : 0; }
  Matrix draft(const Batch& batch, const Matrix& hidden, Ops& ops, const Taps& taps) const override;
  Matrix draft_logits(const Matrix& draft, Ops& ops, const Taps& taps) const override;

 private:
  Matrix run_layer(const Layer& layer, std::size_t index, Matrix x, const Batch& batch,
                   const RopeAngles& angles, Ops& ops, const TapScope& at) const;

  std::size_t vocabulary_ = 0, context_ = 0;
  Settings s_;
  WeightView embedding_, final_norm_, head_;
  std::vector<Layer> layers_;
  std::optional<PredictionModule> module_;
};

// -------------------------------------------------------------------------------------------- forward pass

Matrix LatentAttention::queries(const Matrix& x, const Settings& s, Ops& ops) const {
  if (q) return ops.linear(x, q);                    // [tokens, heads · (nope + rope)]
  const Matrix down = ops.linear(x, q_a, q_a_bias);  // [tokens, q_rank]
  const Matrix latent = ops.rms_norm(down, q_a_norm, s.latent_epsilon, NormForm::weight_last);
  return ops.linear(latent, q_b);  // [tokens, heads · (nope + rope)]
}

Matrix LatentAttention::forward(const Matrix& x, std::size_t layer, const Batch& batch,
                                const RopeAngles& angles, const Settings& s, Ops& ops,
                                const TapScope& at) const {
  Matrix q_all = queries(x, s, ops);  // [tokens, heads · (nope + rope)]
  ops.rope(q_all, {.heads = s.heads,
                   .head_dim = s.nope_dim + s.rope_dim,
                   .offset = s.nope_dim,
                   .cos = angles.cos,
                   .sin = angles.sin,
                   .layout = s.layout});
  at("q", q_all);

  const Matrix down = ops.linear(x, kv_a, kv_a_bias);  // [tokens, kv_rank + rope]
  const Matrix latent =
      ops.rms_norm(down.part(0, s.kv_rank), kv_a_norm, s.latent_epsilon, NormForm::weight_last);
  at("latent", latent);                                // [tokens, kv_rank]
  Matrix key_part = down.part(s.kv_rank, s.rope_dim);  // [tokens, rope]
  ops.rope(key_part,
           {.heads = 1, .head_dim = s.rope_dim, .cos = angles.cos, .sin = angles.sin, .layout = s.layout});
  at("k_rope", key_part);
  const Matrix kept = ops.concatenate(latent, key_part);  // [tokens, kv_rank + rope]

  MlaCall call{.q = q_all,
               .sequences = {},
               .kv_b = kv_b,
               .k_b = k_b,
               .v_b = v_b,
               .heads = s.heads,
               .kv_rank = s.kv_rank,
               .nope_dim = s.nope_dim,
               .rope_dim = s.rope_dim,
               .v_dim = s.v_dim,
               .scale = s.scale,
               .form = s.mla};
  for (const Batch::Sequence& sequence : batch.sequences) {
    sequence.cache->put(layer, kept.row_range(sequence.first, sequence.count));
    call.sequences.push_back({.first = sequence.first,
                              .queries = sequence.count,
                              .keys = sequence.cache->length() + sequence.count,
                              .key_rows = sequence.cache->keys(layer),
                              .value_rows = {}});
  }
  const Matrix mixed = ops.mla(call);  // [tokens, heads · v]
  at("attn_context", mixed);
  return ops.linear(mixed, output, output_bias);  // [tokens, hidden]
}

Matrix Deepseek::run_layer(const Layer& layer, std::size_t index, Matrix x, const Batch& batch,
                           const RopeAngles& angles, Ops& ops, const TapScope& at) const {
  const auto norm = [&](const Matrix& of, const WeightView& weight) {
    return ops.rms_norm(of, weight, s_.epsilon, NormForm::weight_last);
  };
  const auto add = [&](const Matrix& stream, const Matrix& more) {
    return ops.add(stream, s_.residual_factor == 1 ? more : ops.multiply(more, s_.residual_factor));
  };
  const Matrix attended = norm(x, layer.input_norm);  // [tokens, hidden]
  at("attn_norm", attended);
  const Matrix a = layer.attention.forward(attended, index, batch, angles, s_, ops, at);
  at("attn_out", a);
  x = add(x, a);
  at("attn_residual", x);
  const Matrix fed = norm(x, layer.post_attention_norm);  // [tokens, hidden]
  at("mlp_norm", fed);
  const Matrix f = layer.mixture ? layer.mixture->forward(fed, ops, at) : layer.mlp.forward(fed, ops);
  at("mlp_out", f);
  x = add(x, f);
  at("out", x);
  return x;  // [tokens, hidden]
}

Matrix Deepseek::hidden(const Batch& batch, Ops& ops, const Taps& taps) const {
  Matrix x = ops.embed(batch.tokens, embedding_);  // [tokens, hidden]
  if (s_.embedding_factor != 1) x = ops.multiply(x, ops.arithmetic().round(s_.embedding_factor));
  taps("embed", x);
  const RopeAngles angles = rope_angles(s_.rope, batch, ops);  // [tokens, rope / 2]
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    batch.go_on();
    x = run_layer(layers_[i], i, x, batch, angles, ops, TapScope(taps, "layers", i));
  }
  x = ops.rms_norm(x, final_norm_, s_.epsilon, NormForm::weight_last);
  taps("final_norm", x);
  return x;
}

Matrix Deepseek::logits(const Matrix& hidden, Ops& ops, const Taps& taps) const {
  const Matrix seen = s_.head_factor == 1 ? hidden : ops.multiply(hidden, s_.head_factor);
  const Matrix y = ops.linear(seen, head_);  // [rows, vocabulary]
  taps("logits", y);
  return y;
}

Matrix Deepseek::draft(const Batch& batch, const Matrix& hidden, Ops& ops, const Taps& taps) const {
  if (!module_) throw Error::internal("a draft of a model without a prediction module");
  const PredictionModule& m = *module_;
  const TapScope at(taps, "mtp", 0);
  const Matrix token = ops.embed(batch.tokens, embedding_);  // [tokens, hidden]
  const Matrix e = ops.rms_norm(token, m.embedding_norm, s_.epsilon, NormForm::weight_last);
  const Matrix h = ops.rms_norm(hidden, m.hidden_norm, s_.epsilon, NormForm::weight_last);
  Matrix x = ops.linear(ops.concatenate(e, h), m.projection);  // [tokens, 2 hidden] → [.., hidden]
  at("projected", x);
  const RopeAngles angles = rope_angles(s_.rope, batch, ops);
  x = run_layer(m.layer, layers_.size(), x, batch, angles, ops, at);
  x = ops.rms_norm(x, m.final_norm, s_.epsilon, NormForm::weight_last);
  at("final_norm", x);
  return x;  // [tokens, hidden]
}

Matrix Deepseek::draft_logits(const Matrix& draft, Ops& ops, const Taps& taps) const {
  const Matrix y = logits(draft, ops, {});  // the head is the main model's
  TapScope(taps, "mtp", 0)("logits", y);
  return y;
}

// ----------------------------------------------------------------------------- reading the checkpoint

double yarn_m(double s, double factor) {
  return factor <= 1 ? 1 : 0.1 * s * std::log(factor) + 1;
}

void read_rope_and_scale(const Weights& weights, bool as_deepseek, Settings& s) {
  s.rope = with_stored_factors(hyperparameters(weights.tree()).ropes.front(), weights);
  s.scale = 1 / std::sqrt(static_cast<double>(s.nope_dim + s.rope_dim));
  double m = 1;
  if (!as_deepseek) {
    if (s.rope.type != RopeRule::Type::standard && s.rope.mscale_all_dim != 0)
      m = yarn_m(s.rope.mscale_all_dim, s.rope.factor);
  } else if (s.rope.type == RopeRule::Type::yarn) {
    if (s.rope.context > s.rope.original_context)
      m = yarn_m(s.rope.mscale == 0 ? 1 : s.rope.mscale, s.rope.factor);
    else
      s.rope.type = RopeRule::Type::standard;
    s.rope.attention_factor = 1;
  }
  s.scale *= m * m;
}

GateRule gate_of(const ModuleTree& tree, std::string_view variant) {
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
  return rule;
}

Settings read_settings(const Weights& weights, const ModelOptions& options) {
  const ModuleTree& tree = weights.tree();
  const Hyperparameters& h = hyperparameters(tree);
  const AttentionGeometry& g = tree.attention.at(0);
  const bool as_deepseek = options.variant == kDeepseek;
  Settings s;
  s.heads = g.heads;
  s.kv_rank = g.kv_lora_rank;
  s.rope_dim = g.rope_head_dim;
  s.nope_dim = g.qk_head_dim - g.rope_head_dim;
  s.v_dim = g.v_head_dim;
  if (!as_deepseek) s.epsilon = h.epsilon;
  read_rope_and_scale(weights, as_deepseek, s);
  if (!h.interleaved_pairs) s.layout = RopeLayout::half_split;
  if (tree.experts > 0) s.gate = gate_of(tree, options.variant);
  if (as_deepseek) s.router = ResultRounding::as_arithmetic;
  s.embedding_factor = h.embedding_scale;
  s.residual_factor = h.residual_scale;
  s.head_factor = h.head_scale;
  s.activation.activation = activation_of(h, weights.config());
  s.mla = options.mla;
  return s;
}

LatentAttention read_attention(const Weights& weights, std::size_t layer) {
  const auto get = [&](Role role) { return weights.get({.role = role, .layer = layer}); };
  const auto bias = [&](Role role) { return weights.find({.role = role, .layer = layer, .bias = true}); };
  LatentAttention a;
  a.q = weights.find({.role = Role::q, .layer = layer});
  if (!a.q) {
    a.q_a = get(Role::q_a);
    a.q_a_bias = bias(Role::q_a);
    a.q_a_norm = get(Role::q_a_norm);
    a.q_b = get(Role::q_b);
  }
  a.kv_a = get(Role::kv_a);
  a.kv_a_bias = bias(Role::kv_a);
  a.kv_a_norm = get(Role::kv_a_norm);
  a.k_b = weights.find({.role = Role::kv_b, .layer = layer, .half = 1});
  a.v_b = weights.find({.role = Role::kv_b, .layer = layer, .half = 2});
  if (!a.k_b || !a.v_b) a.kv_b = get(Role::kv_b);
  a.output = get(Role::attention_output);
  a.output_bias = bias(Role::attention_output);
  return a;
}

Layer read_layer(const Weights& weights, std::size_t index, const Settings& s, MoeForm mixing) {
  Layer layer;
  layer.input_norm = weights.get({.role = Role::input_norm, .layer = index});
  layer.post_attention_norm = weights.get({.role = Role::pre_feedforward_norm, .layer = index});
  layer.attention = read_attention(weights, index);
  if (is_mixture(weights, index)) {
    layer.mixture = Mixture::read(weights, index, s.activation, mixing);
    layer.mixture->rule = s.gate;
    layer.mixture->router_rounding = s.router;
  } else {
    layer.mlp = GatedMlp::read(weights, index, Part::dense_mlp, s.activation);
  }
  return layer;
}

Deepseek::Deepseek(const Weights& weights, const ModelOptions& options)
    : vocabulary_(weights.tree().vocabulary), s_(read_settings(weights, options)) {
  context_ = stretched_context(s_.rope);
  embedding_ = weights.get({.role = Role::token_embedding});
  final_norm_ = weights.get({.role = Role::final_norm});
  head_ = weights.get({.role = Role::output_head});
  const std::size_t count = weights.tree().layers;
  for (std::size_t i = 0; i < count; ++i) layers_.push_back(read_layer(weights, i, s_, options.moe));
  const WeightView projection = weights.find({.role = Role::mtp_projection, .layer = count});
  if (!projection) return;
  module_ = PredictionModule{read_layer(weights, count, s_, options.moe),
                             weights.get({.role = Role::mtp_embedding_norm, .layer = count}),
                             weights.get({.role = Role::mtp_hidden_norm, .layer = count}), projection,
                             weights.get({.role = Role::final_norm, .part = Part::mtp, .layer = count})};
}

std::unique_ptr<LanguageModel> make_deepseek(const Weights& weights, const ModelOptions& options) {
  return std::make_unique<Deepseek>(weights, options);
}

constexpr std::string_view kV2Families[] = {"deepseek_v2"};
constexpr auto kV2Used = decoder_keys({"hidden_act",
                                       "attention_bias",
                                       "kv_lora_rank",
                                       "q_lora_rank",
                                       "qk_nope_head_dim",
                                       "qk_rope_head_dim",
                                       "v_head_dim",
                                       "first_k_dense_replace",
                                       "moe_layer_freq",
                                       "n_routed_experts",
                                       "num_experts",
                                       "num_local_experts",
                                       "n_shared_experts",
                                       "num_experts_per_tok",
                                       "moe_intermediate_size",
                                       "n_group",
                                       "topk_group",
                                       "topk_method",
                                       "routed_scaling_factor",
                                       "num_nextn_predict_layers",
                                       "num_mtp_layers"});
constexpr FixedKey kV2Fixed[] = {{"mlp_bias", "false"}, {"scoring_func", "\"softmax\""}};
// The class never renormalizes; the rest are widths that follow from others.
constexpr std::string_view kV2Idle[] = {"norm_topk_prob", "head_dim", "qk_head_dim", "num_key_value_heads"};
constexpr std::string_view kV3Families[] = {"deepseek_v3"};
constexpr auto kV3Used = decoder_keys({"hidden_act",
                                       "attention_bias",
                                       "kv_lora_rank",
                                       "q_lora_rank",
                                       "qk_nope_head_dim",
                                       "qk_rope_head_dim",
                                       "v_head_dim",
                                       "first_k_dense_replace",
                                       "moe_layer_freq",
                                       "n_routed_experts",
                                       "num_local_experts",
                                       "n_shared_experts",
                                       "num_experts_per_tok",
                                       "moe_intermediate_size",
                                       "n_group",
                                       "topk_group",
                                       "norm_topk_prob",
                                       "routed_scaling_factor",
                                       "num_nextn_predict_layers",
                                       "num_mtp_layers",
                                       "rope_interleave"});
constexpr FixedKey kV3Fixed[] = {{"topk_method", "\"noaux_tc\""}, {"scoring_func", "\"sigmoid\""}};
// Widths that follow from others.
constexpr std::string_view kDeepseekIdle[] = {"head_dim", "qk_head_dim", "num_key_value_heads"};
constexpr std::string_view kVariants[] = {kTransformers, kTransformers4, kDeepseek};
constexpr std::string_view kMinicpm3Families[] = {"minicpm3"};
constexpr auto kMinicpm3Used = decoder_keys({"hidden_act", "attention_bias", "mlp_bias", "kv_lora_rank",
                                             "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                                             "v_head_dim", "scale_emb", "scale_depth", "dim_model_base"});

}  // namespace

const ModelRule kDeepseekV2Rule = {kV2Families, kVariants, {kV2Used, kV2Idle, kV2Fixed}, make_deepseek};
const ModelRule kDeepseekV3Rule = {kV3Families, kVariants, {kV3Used, kDeepseekIdle, kV3Fixed}, make_deepseek};
const ModelRule kMinicpm3Rule = {kMinicpm3Families, {}, {kMinicpm3Used, kDeepseekIdle}, make_deepseek};

}  // namespace assay
