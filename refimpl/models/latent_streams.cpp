#include "refimpl/models/latent_streams.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/system/error.h"
#include "refimpl/models/activation_name.h"
#include "refimpl/models/carried_choice.h"
#include "refimpl/models/deepseek.h"
#include "refimpl/models/feed_forward.h"
#include "refimpl/models/name_stem.h"
#include "refimpl/models/prediction.h"
#include "refimpl/models/staged_model.h"
#include "refimpl/models/stream_matrices.h"
#include "refimpl/ops/stream_calls.h"

namespace assay {
namespace {

struct StreamedLayer {
  WeightView input_norm, mlp_norm;
  StreamMatrices attention_streams, mlp_streams;  // none: the residual is one stream
  std::optional<LatentAttention> attention;
  std::unique_ptr<RecurrentMixer> recurrent;  // in its place
  GatedMlp mlp;
  std::optional<Mixture> mixture;  // in its place
};

struct StreamedModule {
  StreamedLayer layer;  // of one stream
  PredictionFrame frame;
};

class LatentStreams final : public StagedModel {
 public:
  LatentStreams(const Weights& weights, const LatentStreamsForm& form);

  std::size_t vocabulary() const override { return head_.outputs(); }
  std::size_t context() const override { return context_; }
  std::vector<CacheWidth> cache_widths() const override;
  bool cache_serves(std::size_t length, std::size_t other) const override {
    return !rope_ || same_frequencies(*rope_, length, other);
  }

  std::size_t layer_count() const override { return layers_.size(); }
  StageStream enter(const Batch& batch, Ops& ops, const Taps& taps) const override;
  StageStream through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch, Ops& ops,
                      const Taps& taps) const override;
  Matrix leave(const StageStream& stream, Ops& ops, const Taps& taps) const override;
  Matrix logits(const Matrix& hidden, Ops& ops, const Taps& taps) const override {
    Matrix y = ops.linear(hidden, head_);
    taps("logits", y);
    return y;
  }
  std::size_t draft_layers() const override { return modules_.size(); }
  Matrix draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
               const Taps& taps) const override;
  Matrix draft_logits(std::size_t module, const Matrix& draft, Ops& ops, const Taps& taps) const override {
    Matrix y = ops.linear(draft, head_);
    TapScope(taps, "mtp", module)("logits", y);
    return y;
  }

 private:
  CacheWidth cache_width_of(const StreamedLayer& layer) const;
  StreamedLayer read_layer(const Weights& weights, std::size_t index, const LatentStreamsForm& form) const;
  Matrix norm(const Matrix& x, const WeightView& weight, Ops& ops) const {
    return ops.rms_norm(x, weight, epsilon_, NormForm::weight_last);
  }
  StreamWeights weights_of(const Matrix& streams, const StreamMatrices& of, Ops& ops) const;
  // What attention, or what is in its place, and the MLP make of what they read, behind their norms.
  Matrix attended(const StreamedLayer& layer, std::size_t index, const Matrix& read, const Batch& batch,
                  const RopeAngles& angles, KeyChoice& chosen, Ops& ops, const TapScope& at) const;
  Matrix fed(const StreamedLayer& layer, const Matrix& read, Ops& ops, const TapScope& at) const;
  Matrix run_layer(const StreamedLayer& layer, std::size_t index, Matrix x, const Batch& batch,
                   const RopeAngles& angles, KeyChoice& chosen, Ops& ops, const TapScope& at) const;

  double epsilon_ = 0;
  std::size_t context_ = 0;
  StreamRule rule_;
  LatentSettings attention_;
  std::optional<RopeRule> rope_;  // none: nothing rotates
  WeightView embedding_, final_norm_, head_;
  StreamMatrices head_streams_;
  std::vector<StreamedLayer> layers_;
  std::vector<StreamedModule> modules_;
};

CacheWidth LatentStreams::cache_width_of(const StreamedLayer& layer) const {
  CacheWidth width;
  if (layer.recurrent) {
    width.states = layer.recurrent->states();
    return width;
  }
  width = attention_.cache_row();
  if (layer.attention->indexer) width.value_width = layer.attention->indexer->width(attention_);
  return width;
}

std::vector<CacheWidth> LatentStreams::cache_widths() const {
  std::vector<CacheWidth> widths;
  for (const StreamedLayer& layer : layers_) widths.push_back(cache_width_of(layer));
  for (const StreamedModule& module : modules_) {
    widths.push_back(cache_width_of(module.layer));
    widths.back().drafts = true;
  }
  return widths;
}

// ------------------------------------------------------------------------------------------------ forward pass

StreamWeights LatentStreams::weights_of(const Matrix& streams, const StreamMatrices& of, Ops& ops) const {
  return stream_weights(ops, {.streams = streams,
                              .fn = of.fn,
                              .base = of.base,
                              .scale = of.scale,
                              .count = rule_.count,
                              .iterations = rule_.iterations,
                              .epsilon = rule_.epsilon,
                              .magnitude = rule_.magnitude,
                              .write_epsilon = rule_.write_epsilon,
                              .norm_epsilon = epsilon_});
}

Matrix LatentStreams::attended(const StreamedLayer& layer, std::size_t index, const Matrix& read,
                               const Batch& batch, const RopeAngles& angles, KeyChoice& chosen, Ops& ops,
                               const TapScope& at) const {
  const Matrix x = norm(read, layer.input_norm, ops);  // [tokens, hidden]
  at("attn_norm", x);
  Matrix y = layer.recurrent ? layer.recurrent->forward(x, index, batch, ops, at)
                             : layer.attention->forward(x, index, batch, angles, attention_, chosen, ops, at);
  at("attn_out", y);
  return y;
}

Matrix LatentStreams::fed(const StreamedLayer& layer, const Matrix& read, Ops& ops,
                          const TapScope& at) const {
  const Matrix x = norm(read, layer.mlp_norm, ops);
  at("mlp_norm", x);
  Matrix y = layer.mixture ? layer.mixture->forward(x, ops, at) : layer.mlp.forward(x, ops);
  at("mlp_out", y);
  return y;
}

Matrix LatentStreams::run_layer(const StreamedLayer& layer, std::size_t index, Matrix x, const Batch& batch,
                                const RopeAngles& angles, KeyChoice& chosen, Ops& ops,
                                const TapScope& at) const {
  const StreamWeights around_attention = weights_of(x, layer.attention_streams, ops);
  const Matrix read = read_streams(ops, x, around_attention);  // [tokens, hidden]
  at("attn_in", read);
  const Matrix a = attended(layer, index, read, batch, angles, chosen, ops, at);
  x = write_streams(ops, x, a, around_attention);  // [tokens, streams · hidden]
  at("attn_residual", x);
  const StreamWeights around_mlp = weights_of(x, layer.mlp_streams, ops);
  const Matrix taken = read_streams(ops, x, around_mlp);
  at("mlp_in", taken);
  x = write_streams(ops, x, fed(layer, taken, ops, at), around_mlp);
  at("out", x);
  return x;
}

StageStream LatentStreams::enter(const Batch& batch, Ops& ops, const Taps& taps) const {
  const Matrix embedded = ops.embed(batch.tokens, embedding_);  // [tokens, hidden]
  Matrix x = embedded;
  for (std::size_t i = 1; i < rule_.count; ++i) x = ops.concatenate(x, embedded);
  taps("embed", x);  // [tokens, streams · hidden]
  return {x, {}};
}

StageStream LatentStreams::through(StageStream stream, std::size_t first, std::size_t end, const Batch& batch,
                                   Ops& ops, const Taps& taps) const {
  const RopeAngles angles = rope_ ? rope_angles(*rope_, batch, ops) : RopeAngles{};
  KeyChoice chosen;
  if (!stream.beside.empty()) chosen = choice_at(stream.beside.front(), ops);
  for (std::size_t i = first; i < end; ++i) {
    batch.go_on();
    stream.x = run_layer(layers_[i], i, stream.x, batch, angles, chosen, ops, TapScope(taps, "layers", i));
  }
  const auto follows = [](const StreamedLayer& layer) {
    return layer.attention && !layer.attention->indexer;
  };
  const auto rest = layers_.begin() + static_cast<std::ptrdiff_t>(end);
  const bool is_taken = attention_.top_k != 0 && std::any_of(rest, layers_.end(), follows);
  stream.beside.clear();
  if (is_taken && !chosen.keys.empty())
    stream.beside.push_back(positions_of(chosen, chosen.positions.columns(), ops));
  return stream;
}

Matrix LatentStreams::leave(const StageStream& stream, Ops& ops, const Taps& taps) const {
  const StreamWeights seen = head_streams_.fn
                                 ? weights_of(stream.x, head_streams_, ops)
                                 : StreamWeights{std::vector<double>(stream.x.rows() * rule_.count,
                                                                     1.0 / static_cast<double>(rule_.count)),
                                                 {},
                                                 {}};
  Matrix x = norm(read_streams(ops, stream.x, seen), final_norm_, ops);  // [tokens, hidden]
  taps("final_norm", x);
  return x;
}

// vLLM 0.32 (models/hy_v4/nvidia/mtp.py, models/glm5next/common/mtp.py): the residual of a module's layer is one stream.
Matrix LatentStreams::draft(std::size_t module, const Batch& batch, const Matrix& hidden, Ops& ops,
                            const Taps& taps) const {
  if (module >= modules_.size()) throw Error::internal("a draft of a prediction module that is not there");
  const auto& [layer, frame] = modules_[module];
  const TapScope at(taps, "mtp", module);
  Matrix x = frame.enter(ops.embed(batch.tokens, embedding_), hidden, ops);  // [tokens, hidden]
  at("projected", x);
  const RopeAngles angles = rope_ ? rope_angles(*rope_, batch, ops) : RopeAngles{};
  KeyChoice chosen;
  x = ops.add(x, attended(layer, layers_.size() + module, x, batch, angles, chosen, ops, at));
  at("attn_residual", x);
  x = ops.add(x, fed(layer, x, ops, at));
  at("out", x);
  x = frame.final_norm(x, ops);
  at("final_norm", x);
  return x;
}

// --------------------------------------------------------------------------------------- reading the checkpoint

StreamedLayer LatentStreams::read_layer(const Weights& weights, std::size_t index,
                                        const LatentStreamsForm& form) const {
  const std::string path = fmt::format("{}layers.{}.", name_stem(weights), index);
  const GatedActivation activation = {.activation = activation_of(weights)};
  StreamedLayer layer;
  layer.input_norm = weights.get({.role = Role::input_norm, .layer = index});
  layer.mlp_norm = weights.get({.role = Role::pre_feedforward_norm, .layer = index});
  layer.attention_streams = StreamMatrices::read(weights, path + form.attention_streams);
  layer.mlp_streams = StreamMatrices::read(weights, path + form.mlp_streams);
  RecurrentForm recurrent = form.recurrent;
  recurrent.epsilon = epsilon_;
  layer.recurrent = read_recurrent_mixer(weights, index, recurrent);
  if (!layer.recurrent) layer.attention = LatentAttention::read(weights, index);
  const auto limit = [](auto& mlp, double most) { mlp.limit = most, mlp.limit_first = true; };
  if (!is_mixture(weights, index)) {
    layer.mlp = GatedMlp::read(weights, index, Part::dense_mlp, activation);
    limit(layer.mlp, form.shared_limit);
    return layer;
  }
  layer.mixture = Mixture::read(weights, index, activation, form.moe);
  layer.mixture->rule = deepseek_gate(weights.tree());
  layer.mixture->router_rounding = ResultRounding::float32;
  limit(*layer.mixture, form.expert_limit);
  if (layer.mixture->shared) limit(*layer.mixture->shared, form.shared_limit);
  return layer;
}

LatentStreams::LatentStreams(const Weights& weights, const LatentStreamsForm& form)
    : rule_(form.streams), attention_(form.attention) {
  const Hyperparameters& h = hyperparameters(weights.tree());
  epsilon_ = h.epsilon;
  context_ = h.context;
  if (!h.ropes.empty()) rope_ = h.ropes.front(), context_ = stretched_context(*rope_);
  embedding_ = weights.get({.role = Role::token_embedding});
  final_norm_ = weights.get({.role = Role::final_norm});
  head_ = weights.get({.role = Role::output_head});
  if (!form.head_streams.empty())
    head_streams_ = StreamMatrices::read(weights, name_stem(weights) + form.head_streams);
  for (std::size_t i = 0; i < weights.tree().layers; ++i) layers_.push_back(read_layer(weights, i, form));
  const auto attends = std::find_if(layers_.begin(), layers_.end(),
                                    [](const StreamedLayer& layer) { return layer.attention.has_value(); });
  if (attends != layers_.end() && attention_.top_k != 0 && !attends->attention->indexer)
    throw Error::input(
        "the first layer that attends has no indexer, and none before it whose choice it could take")
        .in(weights.config().source());
  for (std::size_t i = layers_.size();; ++i) {
    auto frame = PredictionFrame::find(weights, i, i, {.form = NormForm::weight_last, .epsilon = epsilon_},
                                       kLayerModules);
    if (!frame) return;
    modules_.push_back({read_layer(weights, i, form), std::move(*frame)});
  }
}

}  // namespace

std::unique_ptr<LanguageModel> make_latent_streams(const Weights& weights, const LatentStreamsForm& form) {
  return std::make_unique<LatentStreams>(weights, form);
}

}  // namespace assay
