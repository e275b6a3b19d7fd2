// DeepSeek V4 (Flash, Pro): compressed attention, residuals in m streams that are read, written and mixed around each
// block (hyper-connections), experts in every layer. As transformers' class computes it.
//
// Multi-token prediction, which that class leaves out (vLLM 0.32, models/deepseek_v4): of each stream s
//   x_s = E norm(embedding of the next token) + H norm(given_s);   one more layer;   the head sees norm(mix of x), mixed by its own
// Given are the streams behind the last layer, and of a module behind another those that it said.
#include <fmt/format.h>

#include <memory>

#include "core/system/error.h"
#include "refimpl/models/compressed_attention.h"
#include "refimpl/models/deepseek.h"
#include "refimpl/models/hashed_mixture.h"
#include "refimpl/models/staged_model.h"
#include "refimpl/models/stream_matrices.h"
#include "refimpl/ops/stream_calls.h"

namespace assay {
namespace {

struct V4Layer {
  WeightView input_norm, mlp_norm;
  StreamMatrices attention_streams, mlp_streams;
  CompressedAttention attention;
  HashedMixture mlp;
};

struct V4Prediction {
  WeightView embedding_norm, hidden_norm, embedding_projection, hidden_projection, final_norm;
  StreamMatrices head_streams;
  V4Layer layer;
};

class DeepseekV4 final : public StagedModel {
 public:
  explicit DeepseekV4(const Weights& weights);

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return context_; }
  std::vector<CacheWidth> cache_widths() const override {
    std::vector<CacheWidth> widths;
    for (const V4Layer& layer : layers_) widths.push_back(layer.attention.cache_width(s_));
    for (const V4Prediction& module : prediction_) {
      widths.push_back(module.layer.attention.cache_width(s_));
      widths.back().drafts = true;
    }
    return widths;
  }
  RopeLayout rope_layout() const override { return RopeLayout::interleaved; }

  std::size_t layer_count() const override { return layers_.size(); }
  StageStream enter(const Batch& batch, Ops& ops, const Taps& taps) const override;
  StageStream through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch, Ops& ops,
                      const Taps& taps) const override;
  Matrix leave(const StageStream& stream, Ops& ops, const Taps& taps) const override;
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    const Matrix seen = prediction_.empty() ? hidden : head_sees(hidden, head_streams_, final_norm_, ops);
    Matrix y = ops.linear(seen, head_);
    taps("logits", y);
    return y;
  }

  std::size_t draft_layers() const override { return prediction_.size(); }
  std::size_t streams() const override { return prediction_.empty() ? 1 : streams_; }
  Matrix draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
               const Taps& taps) const override;
  Matrix draft_logits(std::size_t module, const Matrix& draft, Ops& ops, const Taps& taps) const override {
    const V4Prediction& m = prediction_.at(module);
    Matrix y = ops.linear(head_sees(draft, m.head_streams, m.final_norm, ops), head_);
    TapScope(taps, "mtp", module)("logits", y);
    return y;
  }

 private:
  V4Layer read_layer(const Weights& weights, std::size_t index, const std::string& path,
                     std::size_t ratio) const;
  void read_prediction(const Weights& weights);
  Matrix norm(const Matrix& x, const WeightView& weight, Ops& ops) const {
    return ops.rms_norm(x, weight, s_.epsilon, NormForm::weight_inside);
  }
  Matrix head_sees(const Matrix& streams, const StreamMatrices& mix, const WeightView& weight,
                   Ops& ops) const {
    return norm(read_streams(ops, streams, weights_of(streams, mix, ops)), weight, ops);
  }
  StreamWeights weights_of(const Matrix& streams, const StreamMatrices& of, Ops& ops) const {
    return stream_weights(ops, {.streams = streams,
                                .fn = of.fn,
                                .base = of.base,
                                .scale = of.scale,
                                .count = streams_,
                                .iterations = iterations_,
                                .epsilon = stream_epsilon_,
                                .norm_epsilon = s_.epsilon});
  }
  Matrix run_layer(const V4Layer& layer, std::size_t index, Matrix x, const Batch& batch, Ops& ops,
                   const TapScope& at) const;

  CompressedSettings s_;
  std::size_t context_ = 0, streams_ = 1, iterations_ = 1;
  double stream_epsilon_ = 0;
  WeightView embedding_, final_norm_, head_;
  StreamMatrices head_streams_;
  std::vector<V4Layer> layers_;
  std::vector<V4Prediction> prediction_;
};

Matrix DeepseekV4::run_layer(const V4Layer& layer, std::size_t index, Matrix x, const Batch& batch, Ops& ops,
                             const TapScope& at) const {
  const StreamWeights around_attention = weights_of(x, layer.attention_streams, ops);
  const Matrix read = read_streams(ops, x, around_attention);  // [tokens, hidden]
  at("attn_in", read);
  const Matrix attended = norm(read, layer.input_norm, ops);
  at("attn_norm", attended);
  const Matrix a = layer.attention.forward(attended, index, batch, s_, ops, at);
  at("attn_out", a);
  x = write_streams(ops, x, a, around_attention);  // [tokens, streams · hidden]
  at("attn_residual", x);
  const StreamWeights around_mlp = weights_of(x, layer.mlp_streams, ops);
  const Matrix taken = read_streams(ops, x, around_mlp);
  at("mlp_in", taken);
  const Matrix fed = norm(taken, layer.mlp_norm, ops);
  at("mlp_norm", fed);
  const Matrix f = layer.mlp.forward(fed, batch.tokens, ops, at);
  at("mlp_out", f);
  x = write_streams(ops, x, f, around_mlp);
  at("out", x);
  return x;
}

StageStream DeepseekV4::enter(const Batch& batch, Ops& ops, const Taps& taps) const {
  const Matrix embedded = ops.embed(batch.tokens, embedding_);  // [tokens, hidden]
  Matrix x = embedded;
  for (std::size_t i = 1; i < streams_; ++i) x = ops.concatenate(x, embedded);
  taps("embed", x);  // [tokens, streams · hidden]
  return {x, {}};
}

StageStream DeepseekV4::through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch,
                                Ops& ops, const Taps& taps) const {
  for (std::size_t i = first; i < end; ++i) {
    batch.go_on();
    stream.x = run_layer(layers_[i], i, stream.x, batch, ops, TapScope(taps, "layers", i));
  }
  return stream;
}

Matrix DeepseekV4::leave(const StageStream& stream, Ops& ops, const Taps& taps) const {
  if (!prediction_.empty() && !taps.listening()) return stream.x;
  const Matrix x = head_sees(stream.x, head_streams_, final_norm_, ops);  // [tokens, hidden]
  taps("final_norm", x);
  return prediction_.empty() ? x : stream.x;
}

Matrix DeepseekV4::draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
                         const Taps& taps) const {
  if (module >= prediction_.size()) throw Error::internal("a draft of a module that is not there");
  const V4Prediction& m = prediction_[module];
  const TapScope at(taps, "mtp", module);
  const Matrix token = norm(ops.embed(batch.tokens, embedding_), m.embedding_norm, ops);
  const Matrix e = ops.linear(token, m.embedding_projection);  // [tokens, hidden]
  Matrix x;
  for (std::size_t s = 0; s < streams_; ++s) {
    const Matrix given = hidden.part(s * e.columns(), e.columns());
    const Matrix h = ops.linear(norm(given, m.hidden_norm, ops), m.hidden_projection);
    x = s == 0 ? ops.add(h, e) : ops.concatenate(x, ops.add(h, e));
  }
  at("projected", x);  // [tokens, streams · hidden]
  x = run_layer(m.layer, layers_.size() + module, x, batch, ops, at);
  if (taps.listening()) at("final_norm", head_sees(x, m.head_streams, m.final_norm, ops));
  return x;
}

V4Layer DeepseekV4::read_layer(const Weights& weights, std::size_t index, const std::string& path,
                               std::size_t ratio) const {
  return {weights.get({.role = Role::input_norm, .layer = index}),
          weights.get({.role = Role::pre_feedforward_norm, .layer = index}),
          StreamMatrices::read(weights, path + "hc_attn"),
          StreamMatrices::read(weights, path + "hc_ffn"),
          CompressedAttention::read(weights, path + "attn.", ratio),
          HashedMixture::read(weights, index)};
}

void DeepseekV4::read_prediction(const Weights& weights) {
  for (const AttentionGeometry& each : weights.tree().mtp_attention) {
    for (const std::uint64_t index : each.layers) {
      const std::size_t module = prediction_.size();
      if (index != layers_.size() + module) return;  // in their order
      const auto find = [&](Role role, int half = 0) {
        return weights.find({.role = role, .part = Part::mtp, .layer = index, .half = half});
      };
      const WeightView first = find(Role::mtp_projection), second = find(Role::mtp_projection, 1);
      if (!first || !second) return;
      const std::string path = fmt::format("mtp.{}.", module);
      prediction_.push_back({find(Role::mtp_embedding_norm), find(Role::mtp_hidden_norm), first, second,
                             find(Role::final_norm), StreamMatrices::read(weights, path + "hc_head"),
                             read_layer(weights, index, path, each.compressed)});
    }
  }
}

DeepseekV4::DeepseekV4(const Weights& weights) {
  const ModuleTree& tree = weights.tree();
  const Hyperparameters& h = hyperparameters(tree);
  ConfigReader config(weights.config(), tree.family);
  const AttentionGeometry& g = tree.attention.at(0);
  s_.heads = g.heads;
  s_.head_dim = g.qk_head_dim;
  s_.rope = h.ropes.at(0);
  s_.compressed_rope = h.ropes.at(1);
  s_.rope_dim = s_.rope.rotary_dim;
  s_.window = g.window;
  s_.epsilon = h.epsilon;
  streams_ = config.size("hc_mult", 4).value();
  iterations_ = config.size("hc_sinkhorn_iters", 20).value();
  stream_epsilon_ = config.real("hc_eps", 1e-6, 0, 1);
  context_ = std::max(stretched_context(s_.rope), stretched_context(s_.compressed_rope));
  embedding_ = weights.get({.role = Role::token_embedding});
  final_norm_ = weights.find_named("norm.weight");
  head_ = weights.get({.role = Role::output_head});
  head_streams_ = StreamMatrices::read(weights, "hc_head");
  std::vector<std::size_t> ratios(tree.layers);
  for (const AttentionGeometry& each : tree.attention) {
    for (const std::uint64_t layer : each.layers) ratios.at(layer) = each.compressed;
    if (each.indexer_heads == 0) continue;
    s_.index_heads = each.indexer_heads;
    s_.index_dim = each.indexer_head_dim;
    s_.top_k = each.indexer_top_k;
  }
  for (std::size_t i = 0; i < tree.layers; ++i) {
    const std::string path = fmt::format("layers.{}.", i);
    layers_.push_back(read_layer(weights, i, path, ratios[i]));
  }
  read_prediction(weights);
}

std::unique_ptr<LanguageModel> make_v4(const Weights& weights, const ModelOptions&) {
  return std::make_unique<DeepseekV4>(weights);
}

constexpr std::string_view kV4Families[] = {"deepseek_v4"};
constexpr auto kV4Used = decoder_keys({"compress_ratios",
                                       "compress_rope_theta",
                                       "layer_types",
                                       "compress_rates",
                                       "mlp_layer_types",
                                       "num_hash_layers",
                                       "hc_mult",
                                       "hc_eps",
                                       "hc_sinkhorn_iters",
                                       "head_dim",
                                       "qk_rope_head_dim",
                                       "partial_rotary_factor",
                                       "q_lora_rank",
                                       "o_groups",
                                       "o_lora_rank",
                                       "sliding_window",
                                       "moe_intermediate_size",
                                       "n_routed_experts",
                                       "num_local_experts",
                                       "n_shared_experts",
                                       "num_experts_per_tok",
                                       "num_nextn_predict_layers",
                                       "routed_scaling_factor",
                                       "swiglu_limit"},
                                      kIndexerKeys);
constexpr FixedKey kV4Fixed[] = {{"scoring_func", "\"sqrtsoftplus\""},
                                 {"topk_method", "\"noaux_tc\""},
                                 {"num_key_value_heads", "1"},
                                 {"norm_topk_prob", "true"},
                                 {"hidden_act", "\"silu\""},
                                 {"attention_bias", "false"},
                                 {"mlp_bias", "false"},
                                 {"compress_rate_csa", "4"},
                                 {"compress_rate_hca", "128"}};
constexpr std::string_view kV4Idle[] = {"scale_fmt", "expert_dtype"};

}  // namespace

const ModelRule kDeepseekV4Rule = {kV4Families, {}, {kV4Used, kV4Idle, kV4Fixed}, make_v4};

}  // namespace assay
