// Muse Glimmer and Muse Spark: queries and keys of length one before they rotate, where they do; what heads give is gated.
// Source: transformers 5.23 (muse_glimmer, muse_spark).
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

double muse_number(const Weights& weights, std::string_view key, double otherwise, double least) {
  return ConfigReader(weights.config(), weights.tree().title).real(key, otherwise, least, 1e9);
}

DecoderForm muse_form(const Weights& weights, double query_factor) {
  DecoderForm form = {.norm = NormForm::one_plus_weight,
                      .unweighted_embedding_norm = true,
                      .final_norm = NormForm::weight_inside};
  form.post_epsilon = muse_number(weights, "post_norm_eps", 1e-8, 0);
  form.attention.unit_queries = muse_number(weights, "qk_scale_factor", query_factor, -1e9);
  return form;
}

std::unique_ptr<LanguageModel> make_glimmer(const Weights& weights, const ModelOptions& options) {
  return make_kin_as(muse_form(weights, 3.87), weights, options);
}

std::unique_ptr<LanguageModel> make_spark(const Weights& weights, const ModelOptions& options) {
  DecoderForm form = muse_form(weights, 5.4730064863875);
  form.attention.unit_context = true;
  form.gate = {.score = GateRule::Score::sigmoid, .epsilon = 1e-15, .rounding = ResultRounding::float32};
  form.router_rounding = ResultRounding::float32;
  form.spark = {.gate_temperature = muse_number(weights, "residual_gate_temperature", 0.3, 1e-9),
                .router_scale = hyperparameters(weights.tree()).head_scale};
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kGlimmer[] = {"muse_glimmer"}, kSpark[] = {"muse_spark"};
constexpr auto kGlimmerUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "hidden_activation", "attention_bias",
              "sliding_window", "layer_types", "final_logit_softcapping", "qk_scale_factor",
              "output_multiplier", "post_norm_eps", "layer_rope_theta"});
constexpr auto kSparkUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "sliding_window", "layer_types",
     "final_logit_softcapping", "qk_scale_factor", "output_multiplier", "post_norm_eps", "layer_rope_theta",
     "num_local_experts", "num_experts", "num_experts_per_tok", "moe_intermediate_size", "moe_hidden_size",
     "mlp_layer_types", "routed_scaling_factor", "residual_gate_temperature"});

}  // namespace

const ModelRule kMuseGlimmerRule = {kGlimmer, {}, {kGlimmerUsed}, make_glimmer};
const ModelRule kMuseSparkRule = {kSpark, {}, {kSparkUsed}, make_spark};

}  // namespace assay
