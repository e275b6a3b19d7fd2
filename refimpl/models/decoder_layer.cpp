#include "refimpl/models/decoder_layer.h"

#include <fmt/format.h>

#include <utility>

#include "core/model/layer_geometry.h"
#include "refimpl/models/name_stem.h"

namespace assay {
namespace {

double limit_of(std::span<const double> limits, std::size_t layer) {
  return layer < limits.size() ? limits[layer] : 0;
}

Mixture read_mixture(const Weights& weights, std::size_t index, const GatedActivation& activation,
                     const DecoderForm& form, const NormReader& norms) {
  const ExpertRouting& routing = hyperparameters(weights.tree()).routing;
  Mixture mixture = Mixture::read(weights, index, activation, form.moe);
  mixture.rule = form.gate;
  mixture.rule.top_k = experts_of(weights.whole_tree(), index).active;
  mixture.rule.renormalize = routing.renormalize;
  mixture.rule.scale = routing.scale;
  mixture.rule.groups = routing.groups;
  mixture.rule.chosen_groups = routing.chosen_groups;
  mixture.router_rounding = form.router_rounding;
  mixture.scaled_inputs = form.scaled_inputs;
  mixture.averaged = form.averaged_shared;
  mixture.jitter = form.jitter;
  mixture.experts.interleaved = form.interleaved_experts;
  mixture.latent_norm = norms.stored(Role::latent_norm, index);
  mixture.limit = limit_of(form.expert_limits, index);
  if (mixture.shared) mixture.shared->limit = limit_of(form.shared_limits, index);
  mixture.router_cap = form.router_cap;
  mixture.by_logits = form.chosen_by_logits;
  if (form.experts_activation) mixture.experts.form.activation = *form.experts_activation;
  mixture.situ = form.situ;
  if (mixture.shared) mixture.shared->situ = form.situ;
  return mixture;
}

void read_token_mixers(const Weights& weights, const DecoderForm& form, const NormRule& norm,
                       DecoderLayer& layer) {
  RecurrentForm recurrent = form.recurrent;
  if (recurrent.epsilon == 0) recurrent.epsilon = norm.epsilon;
  layer.recurrent = read_recurrent_mixer(weights, layer.index, recurrent);
  const AttentionGeometry* geometry = geometry_of(weights.tree(), layer.index);
  if (geometry == nullptr && !layer.recurrent)
    layer.map = find_projection(weights, Role::attention_output, layer.index);
  if (geometry == nullptr) return;
  if (geometry->kind == AttentionGeometry::Kind::latent)
    layer.latent = LatentAttention::read(weights, layer.index);
  else
    layer.attention.emplace(weights, layer.index, *geometry, form.attention, norm);
}

void add_spark_blocks(const Weights& weights, const SparkForm& spark, const NormReader& norms,
                      DecoderLayer& layer) {
  const std::size_t index = layer.index;
  layer.attention_post_norm = Norm::unweighted(weights.tree().hidden_size, norms.post_rule());
  layer.mlp_post_norm =
      Norm::of_scaled(weights.find({.role = Role::post_feedforward_norm, .layer = index}), norms.post_rule());
  layer.attention_gate = ResidualGate::read(weights, index, 0, spark.gate_temperature);
  layer.mlp_gate = ResidualGate::read(weights, index, 1, spark.gate_temperature);
  if (layer.mixture) put_spark_norms(weights, index, spark, norms.rule(), norms.post_rule(), *layer.mixture);
}

}  // namespace

HeadAttention attention_of_pass(const Weights& weights, std::size_t layer, std::size_t pass,
                                const DecoderForm& form, const NormRule& norm) {
  AttentionForm attention = form.attention;
  const std::size_t first = layer * form.passes;
  if (form.attention.gated_passes && pass > 0) attention.first_pass = first;
  HeadAttention made(weights, layer, weights.tree().attention.at(pass), attention, norm);
  made.keep_in(first + pass);
  return made;
}

DecoderLayer read_decoder_layer(const Weights& weights, std::size_t index, const GatedActivation& activation,
                                const DecoderForm& form) {
  const NormReader norms(weights, form);
  DecoderLayer layer;
  layer.index = index;
  const AttentionGeometry* geometry = geometry_of(weights.tree(), index);
  if (form.passes_uncached && geometry != nullptr && !geometry->cached) return layer;
  layer.attention_norm = norms.stored_or_unweighted(Role::input_norm, index);
  layer.attention_post_norm = norms.stored_less(form.attention_post_offset, Role::post_attention_norm, index);
  layer.mlp_norm = norms.stored_or_unweighted(Role::pre_feedforward_norm, index);
  layer.mlp_post_norm = norms.stored_less(form.mlp_post_offset, Role::post_feedforward_norm, index);
  read_token_mixers(weights, form, norms.rule(), layer);
  if (weights.find({.role = Role::mlp_down, .part = Part::dense_mlp, .layer = index}))
    layer.mlp = GatedMlp::read(weights, index, Part::dense_mlp, activation);
  layer.mlp.inner_norm = norms.stored(Role::post_feedforward_norm, index, Part::dense_mlp);
  layer.mlp.limit = limit_of(form.shared_limits, index);
  layer.mlp.up_first = form.up_first;
  layer.mlp.alternating = form.alternating;
  if (form.poly_norm) layer.mlp.poly = PolyNorm::read(weights, index);
  if (is_mixture(weights, index)) {
    Mixture mixture = read_mixture(weights, index, activation, form, norms);
    if (layer.mlp.down)
      layer.beside = ExpertsBeside::read(weights, index, std::move(mixture), norms.rule());
    else
      layer.mixture = std::move(mixture);
  }
  if (form.residual_block != 0) {
    const std::string name = fmt::format("{}layers.{}.", name_stem(weights), index);
    layer.attention_mix = ResidualMix::read(weights, name + "self_attention_res");
    layer.mlp_mix = ResidualMix::read(weights, name + "mlp_res");
  }
  if (form.spark) add_spark_blocks(weights, *form.spark, norms, layer);
  layer.mlp.situ = form.situ;
  layer.mlp.gate_scale = form.scales.mlp_gate;
  layer.mlp.down_scale = form.scales.mlp_down;
  if (form.inkling)
    layer.convolutions = InklingBlocks::read(weights, index, *form.inkling, layer.mlp,
                                             layer.mixture ? &*layer.mixture : nullptr);
  if (!layer.mixes_tokens() && !layer.mlp_norm)
    std::swap(layer.attention_norm, layer.mlp_norm);  // its one norm is the first
  layer.own_input = PerLayerStep::find(weights, index, norms.rule(), activation.activation);
  if (const WeightView scale = weights.find({.role = Role::layer_scale, .part = Part::norm, .layer = index}))
    layer.scale = decode_vector(scale).at(0);
  return layer;
}

std::vector<DecoderPrediction> read_prediction(const Weights& weights, const GatedActivation& activation,
                                               const DecoderForm& form) {
  const PredictionForm& around = form.prediction;
  const NormRule norm = NormReader(weights, form).rule();
  std::vector<DecoderPrediction> modules;
  while (around.layers != 0 && (modules.empty() || around.in_series)) {
    const std::size_t first = weights.tree().layers + modules.size() * around.layers,
                      end = first + around.layers;
    auto frame = PredictionFrame::find(weights, first, end - 1, norm, around);
    if (!frame) break;
    DecoderPrediction& module = modules.emplace_back(DecoderPrediction{std::move(*frame), {}});
    for (std::size_t i = first; i < end; ++i)
      module.layers.push_back(read_decoder_layer(weights, i, activation, form));
  }
  return modules;
}

}  // namespace assay
