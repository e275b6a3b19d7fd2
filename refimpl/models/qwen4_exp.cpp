// Qwen4-Exp (Qwen3.8-Flash-Next): Qwen3.5's layers between gated streams (gated_streams.h) in place of norms; attention to the
// blocks of keys that an index of pooled keys picks (block_index.h); in front of some layers n-grams (ngram_block.h).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/gated_streams.h"
#include "refimpl/models/head_attention.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/ngram_block.h"

namespace assay {
namespace {

struct Qwen4Layer {
  std::optional<HeadAttention> attention;
  std::unique_ptr<RecurrentMixer> recurrent;  // in its place
  GatedStreams around_mixer, around_mlp;
  Mixture mixture;
  std::optional<NgramBlock> ngrams;
};

// No stages: norms of streams and filters of n-grams are decoded where a block is made, and a stage has its own layers' alone.
class Qwen4 final : public LanguageModel {
 public:
  Qwen4(const Weights& weights, const ModelOptions& options);

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return stretched_context(rope_); }
  std::vector<CacheWidth> cache_widths() const override {
    std::vector<CacheWidth> widths;
    for (const Qwen4Layer& layer : layers_) {
      widths.push_back(layer.attention ? layer.attention->cache_width()
                                       : CacheWidth{.states = layer.recurrent->states()});
      if (!layer.ngrams) continue;
      for (const StateShape& shape : layer.ngrams->states()) widths.back().states.push_back(shape);
    }
    return widths;
  }
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return same_frequencies(rope_, length, other);
  }

  Matrix hidden(const Batch& batch, Ops& ops, const Taps& taps) const override {
    Matrix x = GatedStreams::in_each(ops.embed(batch.tokens, embedding_), streams_, ops);
    taps("embed", x);  // [tokens, streams · hidden]
    const RopeAngles angles = rope_angles(rope_, batch, ops);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      batch.go_on();
      x = run_layer(i, x, batch, angles, ops, TapScope(taps, "layers", i));
    }
    x = to_head_(x, ops).x;  // [tokens, hidden]
    taps("final_norm", x);
    return x;
  }
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    const Matrix y = ops.linear(hidden, head_);
    taps("logits", y);
    return y;
  }

 private:
  Matrix run_layer(std::size_t index, Matrix x, const Batch& batch, const RopeAngles& angles, Ops& ops,
                   const TapScope& at) const;
  Qwen4Layer read_layer(const Weights& weights, std::size_t index, const ModelOptions& options) const;
  void read_ngrams(const Weights& weights);

  std::size_t streams_ = 1;
  std::string stem_;  // "model.", or what stands there within a model that sees
  NormRule norm_;
  RopeRule rope_;
  WeightView embedding_, head_;
  GatedStreams to_head_;
  std::vector<Qwen4Layer> layers_;
};

Matrix Qwen4::run_layer(std::size_t index, Matrix x, const Batch& batch, const RopeAngles& angles, Ops& ops,
                        const TapScope& at) const {
  const Qwen4Layer& layer = layers_[index];
  if (layer.ngrams)
    x = layer.ngrams->forward(x, index, layer.recurrent ? layer.recurrent->states().size() : 0, batch, ops,
                              at);
  const GatedStreams::Reading seen = layer.around_mixer(x, ops);
  at("attn_in", seen.x);
  const Matrix a = layer.attention ? layer.attention->forward(seen.x, batch, &angles, ops, at)
                                   : layer.recurrent->forward(seen.x, index, batch, ops, at);
  at("attn_out", a);
  x = GatedStreams::written(x, a, seen.shares, ops);
  at("attn_residual", x);
  const GatedStreams::Reading fed = layer.around_mlp(x, ops);
  at("mlp_in", fed.x);
  const Matrix f = layer.mixture.forward(fed.x, ops, at);
  at("mlp_out", f);
  x = GatedStreams::written(x, f, fed.shares, ops);
  at("out", x);
  return x;  // [tokens, streams · hidden]
}

GateForm gate_form(ConfigReader& config, const Hyperparameters& h) {
  const std::string name = config.text("output_gate_type", h.activation);
  config.require(name == "silu" || name == "sigmoid", "output_gate_type is neither silu nor sigmoid");
  return name == "silu" ? GateForm::silu : GateForm::sigmoid;
}

Qwen4Layer Qwen4::read_layer(const Weights& weights, std::size_t index, const ModelOptions& options) const {
  const ModuleTree& tree = weights.tree();
  const Hyperparameters& h = hyperparameters(tree);
  ConfigReader config(weights.config(), tree.family);
  Qwen4Layer layer;
  layer.recurrent = read_recurrent_mixer(weights, index,
                                         {.epsilon = norm_.epsilon,
                                          .scan = options.scan,
                                          .norm_gate = gate_form(config, h),
                                          .activation = activation_of(h, weights.config())});
  for (const AttentionGeometry& g : tree.attention) {
    if (std::find(g.layers.begin(), g.layers.end(), index) == g.layers.end()) continue;
    const BlockIndexForm form = {.block = config.size("indexer_compress_ratio").value(), .pooled = true};
    layer.attention.emplace(weights, index, g, AttentionForm{.index = form}, norm_);
  }
  const std::string path = fmt::format("{}layers.{}.", stem_, index);
  layer.around_mixer = GatedStreams::read(weights, path + "attn_hyper_connection", streams_, norm_);
  layer.around_mlp = GatedStreams::read(weights, path + "mlp_hyper_connection", streams_, norm_);
  layer.mixture =
      Mixture::read(weights, index, {.activation = activation_of(h, weights.config())}, options.moe);
  layer.mixture.rule.top_k = tree.experts_per_token;
  layer.mixture.rule.renormalize = h.routing.renormalize;
  layer.mixture.rule.rounding = ResultRounding::as_arithmetic;
  return layer;
}

TokenId end_of_text(const Weights& weights) {
  const ParsedJson& config = weights.config().text();
  const auto found = config.find("eos_token_id");
  const ParsedJson* id = found == config.end() ? nullptr : &*found;
  if (id != nullptr && id->is_array() && !id->empty()) id = &id->front();
  if (id == nullptr || !id->is_number_unsigned() || id->get<std::uint64_t>() >= weights.tree().vocabulary)
    throw Error::input("eos_token_id is no token, and n-grams end there").in(weights.config().source());
  return id->get<TokenId>();
}

// Layers that have n-grams are numbered in their order.
void Qwen4::read_ngrams(const Weights& weights) {
  ConfigReader config(weights.config(), weights.tree().family);
  NgramForm form = {.size = config.size("ngram_size", 3).value(),
                    .heads_each = config.size("heads_per_ngram", 8).value(),
                    .base = config.size("ngram_vocab_size_base", 20'000'000).value(),
                    .seed = config.number("seed", 1234)};
  std::size_t number = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!weights.find({.role = Role::position_embedding, .part = Part::embedding, .layer = i})) continue;
    if (!layers_[i].recurrent)
      throw Error::input(fmt::format("ple_layer_ids names layer {}, which attends", i + 1))
          .in(weights.config().source());
    form.end = end_of_text(weights);
    layers_[i].ngrams = NgramBlock::find(weights, i, number++, streams_, form, norm_);
  }
}

Qwen4::Qwen4(const Weights& weights, const ModelOptions& options) {
  const Hyperparameters& h = hyperparameters(weights.tree());
  ConfigReader config(weights.config(), weights.tree().family);
  streams_ = config.size("hc_count", 4).value();
  norm_ = {.form = NormForm::one_plus_weight, .epsilon = h.epsilon};
  rope_ = h.ropes.empty() ? RopeRule{} : h.ropes.front();
  embedding_ = weights.get({.role = Role::token_embedding});
  head_ = weights.get({.role = Role::output_head});
  const std::string& table = *embedding_.name;
  stem_ = table.substr(0, table.rfind("embed_tokens"));
  to_head_ = GatedStreams::read(weights, stem_ + "hyper_connection_mixer", streams_, norm_);
  for (std::size_t i = 0; i < weights.tree().layers; ++i) layers_.push_back(read_layer(weights, i, options));
  read_ngrams(weights);
}

std::unique_ptr<LanguageModel> make_qwen4_exp(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  if (&weights.tree() != &weights.whole_tree())  // a rank's
    throw Error::input("Qwen4-Exp is not computed over ranks: a rank has not all that its blocks are made of")
        .in(weights.config().source());
  return std::make_unique<Qwen4>(weights, options);
}

constexpr std::string_view kQwen4Families[] = {"qwen4_exp"};
constexpr auto kQwen4Used = decoder_keys({"num_key_value_heads",
                                          "head_dim",
                                          "hidden_act",
                                          "attention_bias",
                                          "partial_rotary_factor",
                                          "layer_types",
                                          "full_attention_interval",
                                          "linear_num_key_heads",
                                          "linear_num_value_heads",
                                          "linear_key_head_dim",
                                          "linear_value_head_dim",
                                          "linear_conv_kernel_dim",
                                          "moe_intermediate_size",
                                          "shared_expert_intermediate_size",
                                          "num_experts",
                                          "num_experts_per_tok",
                                          "norm_topk_prob",
                                          "output_gate_type",
                                          "hc_count",
                                          "hc_lowrank",
                                          "indexer_n_heads",
                                          "indexer_kv_heads",
                                          "indexer_head_dim",
                                          "indexer_budget",
                                          "indexer_compress_ratio",
                                          "ple_layer_ids",
                                          "ple_embed_dim",
                                          "ple_conv_kernel_size",
                                          "ngram_size",
                                          "heads_per_ngram",
                                          "ngram_vocab_size_base",
                                          "make_ngram_vocab_size_divisible_by",
                                          "split_ngram_parts",
                                          "seed",
                                          "eos_token_id"});
// The type of states, which are float32 here as there.
constexpr std::string_view kQwen4Idle[] = {"mamba_ssm_dtype", "number_of_conv_states"};
constexpr FixedKey kQwen4Fixed[] = {{"attn_output_gate", "true"}};

}  // namespace

const ModelRule kQwen4ExpRule = {kQwen4Families, {}, {kQwen4Used, kQwen4Idle, kQwen4Fixed}, make_qwen4_exp};

}  // namespace assay
