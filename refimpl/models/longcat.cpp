// LongCat-Flash (arXiv 2509.01322): every layer attends twice and has two MLPs, and a mixture that reads behind the
// first attention and is added behind the second MLP. Some of its experts return what they are given. Latents are
// scaled by √(hidden / rank). What predicts one more token is one attention and one MLP (vLLM's longcat_flash_mtp.py).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/deepseek.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/latent_attention.h"
#include "refimpl/models/prediction.h"
#include "refimpl/models/staged_model.h"

namespace assay {
namespace {

struct HalfLayer {
  WeightView input_norm, mlp_norm;
  LatentAttention attention;
  GatedMlp mlp;
};
struct TwiceLayer {
  std::array<HalfLayer, 2> halves;
  Mixture mixture;  // routing.experts may be one that holds nothing
};
struct DensePrediction {
  PredictionFrame frame;
  HalfLayer layer;
};

// A half's tensors by name: two bear each role.
HalfLayer read_half(const Weights& weights, std::size_t layer, std::size_t half,
                    const GatedActivation& activation) {
  const auto get = [&](const char* module, const char* name) {
    return weights.find_named(fmt::format("model.layers.{}.{}.{}.{}", layer, module, half, name));
  };
  HalfLayer h;
  h.input_norm = get("input_layernorm", "weight");
  h.mlp_norm = get("post_attention_layernorm", "weight");
  LatentAttention& a = h.attention;
  a.q_a = get("self_attn", "q_a_proj.weight");
  a.q_a_bias = get("self_attn", "q_a_proj.bias");
  a.q_a_norm = get("self_attn", "q_a_layernorm.weight");
  a.q_b = get("self_attn", "q_b_proj.weight");
  a.kv_a = get("self_attn", "kv_a_proj_with_mqa.weight");
  a.kv_a_bias = get("self_attn", "kv_a_proj_with_mqa.bias");
  a.kv_a_norm = get("self_attn", "kv_a_layernorm.weight");
  a.kv_b = get("self_attn", "kv_b_proj.weight");
  a.output = get("self_attn", "o_proj.weight");
  a.output_bias = get("self_attn", "o_proj.bias");
  h.mlp.gate = get("mlps", "gate_proj.weight");
  h.mlp.up = get("mlps", "up_proj.weight");
  h.mlp.down = get("mlps", "down_proj.weight");
  h.mlp.form = activation;
  return h;
}

std::optional<DensePrediction> read_dense_prediction(const Weights& weights, std::size_t layer,
                                                     double epsilon, const GatedActivation& activation) {
  auto frame = PredictionFrame::find(weights, layer, layer,
                                     {.form = NormForm::weight_last, .epsilon = epsilon}, {.layers = 1});
  if (!frame) return std::nullopt;
  return DensePrediction{
      std::move(*frame),
      {weights.get({.role = Role::input_norm, .layer = layer}),
       weights.get({.role = Role::pre_feedforward_norm, .layer = layer}),
       LatentAttention::read(weights, layer), GatedMlp::read(weights, layer, Part::dense_mlp, activation)}};
}

// A routing over experts of which those from `held` on return their input: the experts that hold something, and by
// token the weight of the others, whose places are taken by unused experts that weigh nothing.
struct SplitRouting {
  Routing held;
  std::vector<double> returned;  // [tokens]
};
SplitRouting split(const Routing& routing, std::size_t held, Ops& ops) {
  const std::size_t top_k = routing.top_k, tokens = routing.weights.rows();
  std::vector<double> weights = ops.download(routing.weights);
  SplitRouting s = {routing, std::vector<double>(tokens)};
  for (std::size_t t = 0; t < tokens; ++t) {
    const auto begin = s.held.experts.begin() + static_cast<std::ptrdiff_t>(t * top_k);
    const auto end = begin + static_cast<std::ptrdiff_t>(top_k);
    std::int32_t unused = 0;
    for (auto expert = begin; expert != end; ++expert) {
      if (static_cast<std::size_t>(*expert) < held) continue;
      double& weight = weights[static_cast<std::size_t>(expert - s.held.experts.begin())];
      s.returned[t] += weight;
      weight = 0;
      while (std::find(begin, end, unused) != end) ++unused;
      *expert = unused;
    }
  }
  s.held.weights = ops.upload(weights, tokens, top_k);
  return s;
}

Matrix mix(const Mixture& m, const Matrix& x, Ops& ops, const TapScope& at) {
  const Matrix logits = ops.linear(x, m.router, {}, ResultRounding::float32);
  at("router_logits", logits);  // [tokens, experts, those that hold nothing included]
  const Routing routing = ops.moe_gate(logits, m.correction, m.rule);
  const std::vector<double> chosen = ops.download(routing.weights);
  std::vector<double> dense(logits.rows() * logits.columns());
  for (std::size_t i = 0; i < chosen.size(); ++i)
    dense[i / routing.top_k * logits.columns() + static_cast<std::size_t>(routing.experts[i])] = chosen[i];
  if (at.listening()) at("router_weights", ops.upload(dense, logits.rows(), logits.columns()));
  const SplitRouting s = split(routing, m.experts.down.size(), ops);
  std::vector<double> returned = ops.download(x);
  for (std::size_t i = 0; i < returned.size(); ++i) returned[i] *= s.returned[i / x.columns()];
  const Matrix routed = ops.fused_moe(x, s.held, m.experts, m.mixing);
  return ops.add(routed, ops.upload(returned, x.rows(), x.columns()));
}

class Longcat final : public StagedModel {
 public:
  Longcat(const Weights& weights, const ModelOptions& options);

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return stretched_context(rope_); }
  std::vector<CacheWidth> cache_widths() const override {
    std::vector<CacheWidth> widths(2 * layers_.size(), s_.cache_row());
    if (!prediction_) return widths;
    widths.push_back(s_.cache_row());
    widths.back().drafts = true;
    return widths;
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return same_frequencies(rope_, length, other);
  }
  std::size_t layer_count() const override { return layers_.size(); }
  StageStream enter(const Batch& batch, Ops& ops, const Taps& taps) const override;
  StageStream through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch, Ops& ops,
                      const Taps& taps) const override;
  Matrix leave(const StageStream& stream, Ops& ops, const Taps& taps) const override;
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    const Matrix y = ops.linear(hidden, head_);
    taps("logits", y);
    return y;
  }
  std::size_t draft_layers() const override { return prediction_ ? 1 : 0; }
  Matrix draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
               const Taps& taps) const override;
  Matrix draft_logits(std::size_t module, const Matrix& draft, Ops& ops, const Taps& taps) const override {
    const Matrix y = logits(draft, ops, {});  // the head is the main model's
    TapScope(taps, "mtp", module)("logits", y);
    return y;
  }

 private:
  struct HalfWay {
    Matrix x, fed;  // the stream behind attention, and what the norm behind it made of it
  };
  HalfWay attend(const HalfLayer& half, const Matrix& x, std::size_t cache, const Batch& batch,
                 const RopeAngles& angles, Ops& ops, const TapScope& at) const;
  Matrix norm(const Matrix& x, const WeightView& weight, Ops& ops) const {
    return ops.rms_norm(x, weight, epsilon_, NormForm::weight_last);
  }

  LatentSettings s_;
  RopeRule rope_;
  double epsilon_ = 1e-5;
  WeightView embedding_, final_norm_, head_;
  std::vector<TwiceLayer> layers_;
  std::optional<DensePrediction> prediction_;
};

Longcat::HalfWay Longcat::attend(const HalfLayer& half, const Matrix& x, std::size_t cache,
                                 const Batch& batch, const RopeAngles& angles, Ops& ops,
                                 const TapScope& at) const {
  KeyChoice chosen;  // there is no indexer
  const Matrix attended = norm(x, half.input_norm, ops);
  at("attn_norm", attended);
  const Matrix a = half.attention.forward(attended, cache, batch, angles, s_, chosen, ops, at);
  at("attn_out", a);
  const Matrix sum = ops.add(x, a);
  at("attn_residual", sum);
  const Matrix fed = norm(sum, half.mlp_norm, ops);
  at("mlp_norm", fed);
  return {sum, fed};
}

StageStream Longcat::enter(const Batch& batch, Ops& ops, const Taps& taps) const {
  const Matrix x = ops.embed(batch.tokens, embedding_);  // [tokens, hidden]
  taps("embed", x);
  return {x, {}};
}

StageStream Longcat::through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch,
                             Ops& ops, const Taps& taps) const {
  Matrix& x = stream.x;
  const RopeAngles angles = rope_angles(rope_, batch, ops);
  for (std::size_t i = first; i < end; ++i) {
    batch.go_on();
    const TapScope at(taps, "layers", i);
    const std::string halves = fmt::format("layers.{}.half", i);  // TapScope looks at it
    Matrix shortcut;
    for (std::size_t h = 0; h < 2; ++h) {
      const HalfLayer& half = layers_[i].halves[h];
      const TapScope of_half(taps, halves, h);
      const HalfWay of = attend(half, x, 2 * i + h, batch, angles, ops, of_half);
      if (h == 0) at("mlp_out", shortcut = mix(layers_[i].mixture, of.fed, ops, at));
      const Matrix f = half.mlp.forward(of.fed, ops);
      of_half("mlp_out", f);
      x = ops.add(of.x, f);
    }
    x = ops.add(x, shortcut);
    at("out", x);
  }
  return stream;
}

Matrix Longcat::leave(const StageStream& stream, Ops& ops, const Taps& taps) const {
  const Matrix x = norm(stream.x, final_norm_, ops);
  taps("final_norm", x);
  return x;
}

Matrix Longcat::draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
                      const Taps& taps) const {
  if (!prediction_ || module != 0) throw Error::internal("a draft of a module that is not there");
  const TapScope at(taps, "mtp", 0);
  const Matrix token = ops.embed(batch.tokens, embedding_);  // [tokens, hidden]
  const Matrix entered = prediction_->frame.enter(token, hidden, ops);
  at("projected", entered);
  const RopeAngles angles = rope_angles(rope_, batch, ops);
  const HalfWay of = attend(prediction_->layer, entered, 2 * layers_.size(), batch, angles, ops, at);
  const Matrix f = prediction_->layer.mlp.forward(of.fed, ops);
  at("mlp_out", f);
  const Matrix x = ops.add(of.x, f);
  at("out", x);
  const Matrix y = prediction_->frame.final_norm(x, ops);
  at("final_norm", y);
  return y;  // [tokens, hidden]
}

Longcat::Longcat(const Weights& weights, const ModelOptions& options) {
  const ModuleTree& tree = weights.tree();
  const Hyperparameters& h = hyperparameters(tree);
  epsilon_ = h.epsilon;
  rope_ = h.ropes.front();
  s_ = latent_settings(tree);
  s_.form = options.mla;
  const double hidden = static_cast<double>(tree.hidden_size);
  s_.q_factor = std::sqrt(hidden / static_cast<double>(tree.attention.at(0).q_lora_rank));
  s_.latent_factor = std::sqrt(hidden / static_cast<double>(s_.kv_rank));
  if (rope_.type != RopeRule::Type::standard && rope_.mscale_all_dim != 0 && rope_.factor > 1) {
    const double m = 0.1 * rope_.mscale_all_dim * std::log(rope_.factor) + 1;
    s_.scale *= m * m;
  }
  const GatedActivation activation = {.activation = activation_of(h, weights.config())};
  embedding_ = weights.get({.role = Role::token_embedding});
  final_norm_ = weights.get({.role = Role::final_norm});
  head_ = weights.get({.role = Role::output_head});
  for (std::size_t i = 0; i < tree.layers; ++i) {
    TwiceLayer layer = {{read_half(weights, i, 0, activation), read_half(weights, i, 1, activation)},
                        Mixture::read(weights, i, activation, options.moe)};
    layer.mixture.rule.top_k = tree.experts_per_token;
    layer.mixture.rule.scale = h.routing.scale;
    if (layer.mixture.experts.down.size() < tree.experts_per_token)
      throw Error::input("a token is sent to more experts than hold anything").in(weights.config().source());
    layers_.push_back(std::move(layer));
  }
  prediction_ = read_dense_prediction(weights, tree.layers, epsilon_, activation);
}

std::unique_ptr<LanguageModel> make_longcat(const Weights& weights, const ModelOptions& options) {
  return std::make_unique<Longcat>(weights, options);
}

constexpr std::string_view kLongcatFamilies[] = {"longcat_flash"};
constexpr auto kLongcatUsed =
    decoder_keys({"num_layers", "ffn_hidden_size", "expert_ffn_hidden_size", "moe_intermediate_size",
                  "hidden_act", "n_routed_experts", "num_local_experts", "zero_expert_num", "moe_topk",
                  "num_experts_per_tok", "num_nextn_predict_layers", "routed_scaling_factor"},
                 kLatentKeys);
// Latents are always scaled, and routers compute without their bias, whatever the config says.
constexpr FixedKey kLongcatFixed[] = {
    {"router_bias", "false"},    {"mla_scale_q_lora", "true"},         {"mla_scale_kv_lora", "true"},
    {"norm_topk_prob", "false"}, {"zero_expert_type", "\"identity\""}, {"attention_method", "\"MLA\""}};
constexpr std::string_view kLongcatIdle[] = {"head_dim", "qk_head_dim", "num_key_value_heads"};

}  // namespace

const ModelRule kLongcatRule = {
    kLongcatFamilies, {}, {kLongcatUsed, kLongcatIdle, kLongcatFixed}, make_longcat};

}  // namespace assay
