// Decoders of 2026 around latent attention, and which keys of config.json their classes read: dots3-note, whose layers with
// a window have sizes of their own (deepseek.cpp computes them); HY4 and GLM-5.3-Flash, whose residual is several streams
// (latent_streams.cpp).
//
// Where the references disagree about HY4 (--variant):
//
//   transformers  release 5.23: elements i and i + d/2 of a rotary part turn together; latents are normed with an ε of 1e-6,
//   (default)     index keys with that of all norms
//   sglang        0.5.23, and llama.cpp: elements 2i and 2i + 1 do; latents have the ε of all norms; SGLang's index keys 1e-6
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "refimpl/models/deepseek.h"
#include "refimpl/models/kin_rules.h"
#include "refimpl/models/latent_streams.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_dots3_note(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  return make_deepseek(weights, options, {.index_layout = RopeLayout::interleaved, .by_layer = true});
}

constexpr std::string_view kDots3Families[] = {"dots3_note"};
constexpr auto kDots3Used = decoder_keys({"hidden_act",
                                          "mlp_layer_types",
                                          "moe_layer_freq",
                                          "num_local_experts",
                                          "shared_experts_intermediate_size",
                                          "moe_shared_expert_intermediate_size",
                                          "norm_topk_prob",
                                          "layer_types",
                                          "use_dsa",
                                          "use_sliding_window",
                                          "sliding_window",
                                          "sliding_window_size",
                                          "per_layer_config",
                                          "swa_rope_theta",
                                          "swa_num_attention_heads",
                                          "swa_q_lora_rank",
                                          "swa_kv_lora_rank",
                                          "swa_head_dim",
                                          "swa_qk_nope_head_dim",
                                          "swa_qk_rope_head_dim",
                                          "swa_v_head_dim",
                                          "num_nextn_predict_layers",
                                          "num_mtp_layers",
                                          "mtp_layer_types"},
                                         kLatentKeys, kDeepseekMixtureKeys, kIndexerKeys);
// Widths that follow from others.
constexpr std::string_view kDots3Idle[] = {"head_dim", "num_key_value_heads", "swa_num_key_value_heads",
                                           "mlp_bias"};
// What the class always does, whatever a published config says of it.
constexpr FixedKey kDots3Fixed[] = {{"topk_method", "\"noaux_tc\""},
                                    {"scoring_func", "\"sigmoid\""},
                                    {"normalization", "\"RMSNorm\""},
                                    {"final_norm", "\"RMSNorm\""},
                                    {"k_rope_only_layernorm", "true"},
                                    {"apply_mla_qkv_lora_rescale", "true"},
                                    {"use_dynamic_rsf", "false"},
                                    {"attention_gate_type", "\"headwise\""},
                                    {"swa_attention_gate_type", "\"headwise\""}};

// hc_mult, hc_eps and, where streams are mixed, hc_sinkhorn_iters.
StreamRule stream_rule(ConfigReader& config) {
  StreamRule rule;
  rule.count = config.size("hc_mult", 4).value();
  rule.iterations = config.size("hc_sinkhorn_iters", 20).value();
  rule.epsilon = config.real("hc_eps", 1e-6, 0, 1);
  return rule;
}

double swiglu_limit(ConfigReader& config) {
  const double limit = config.real("swiglu_limit", 10, -1e9, 1e9);
  config.require(limit > 0, "swiglu_limit is not above 0, and the class cuts off there all the same");
  return limit;
}

constexpr std::string_view kSglang = "sglang";
constexpr std::string_view kHyV4Variants[] = {kTransformers, kSglang};

std::unique_ptr<LanguageModel> make_hy_v4(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  const Hyperparameters& h = hyperparameters(weights.tree());
  ConfigReader config(weights.config(), weights.tree().family);
  const bool as_sglang = options.variant == kSglang;
  LatentStreamsForm form;
  form.streams = stream_rule(config);
  form.streams.magnitude = config.real("hc_magnitude", 2, -1e6, 1e6);
  form.streams.write_epsilon = form.streams.epsilon;
  form.attention_streams = "hc_attn_layer.hc_pre.hc";
  form.mlp_streams = "hc_mlp_layer.hc_pre.hc";
  form.head_streams = "hc_head.hc_head";
  form.attention = latent_settings(weights.tree());
  form.attention.form = options.mla;
  form.attention.layout = form.attention.index_layout =
      as_sglang ? RopeLayout::interleaved : RopeLayout::half_split;
  form.attention.index_rope_last = true;
  (as_sglang ? form.attention.epsilon : form.attention.index_epsilon) = h.epsilon;
  form.attention.scale *= yarn_score_factor(h.ropes.at(0));
  form.expert_limit = swiglu_limit(config);
  form.moe = options.moe;
  return make_latent_streams(weights, form);
}

constexpr std::string_view kHyV4Families[] = {"hy_v4"};
constexpr auto kHyV4Used = decoder_keys(
    {"mlp_layer_types", "moe_layer_freq", "num_local_experts", "norm_topk_prob", "indexer_types", "hc_mult",
     "hc_eps", "hc_magnitude", "swiglu_limit", "num_nextn_predict_layers", "num_mtp_layers"},
    kLatentKeys, kDeepseekMixtureKeys, kIndexerKeys);
// Widths that follow from others; what sinks are before they are trained; what only training reads.
constexpr std::string_view kHyV4Idle[] = {"head_dim",
                                          "qk_head_dim",
                                          "num_key_value_heads",
                                          "layer_types",
                                          "learnable_sink_init",
                                          "rope_interleave",
                                          "indexer_rope_interleave",
                                          "router_fp32",
                                          "enable_lm_head_fp32",
                                          "mtp_loss_factor"};
constexpr FixedKey kHyV4Fixed[] = {{"hidden_act", "\"silu\""},      {"topk_method", "\"noaux_tc\""},
                                   {"scoring_func", "\"sigmoid\""}, {"enable_ihc", "true"},
                                   {"gated_mla", "true"},           {"gating_type", "\"elementwise\""},
                                   {"learnable_sink", "true"}};

// linear_lower_bound, which linear_attn_config may say as gate_lower_bound; null: decays have no floor, unless safe_gate is
// left as it is.
double decay_floor_of(ConfigReader& config) {
  const auto bound = [](const ConfigReader& reader, const char* key, double otherwise) {
    return reader.is_null(key) ? 0 : reader.real(key, otherwise, -1e6, 0);
  };
  double floor = bound(config, "linear_lower_bound", -5);
  if (const auto nested = config.config().text_section("linear_attn_config")) {
    ConfigReader linear(*nested, "linear_attn_config");
    floor = bound(linear, "gate_lower_bound", floor);
    if (floor == 0 && linear.flag("safe_gate", true)) floor = -5;
  }
  return floor;
}

std::unique_ptr<LanguageModel> make_glm5_next(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  ConfigReader config(weights.config(), weights.tree().family);
  LatentStreamsForm form;
  form.streams = stream_rule(config);
  form.attention_streams = "hc_attn";
  form.mlp_streams = "hc_ffn";
  if (!weights.tree().attention.empty()) form.attention = latent_settings(weights.tree());
  form.attention.form = options.mla;
  form.attention.epsilon = hyperparameters(weights.tree()).epsilon;
  form.recurrent.scan = options.scan;
  form.recurrent.decay_floor = decay_floor_of(config);
  form.expert_limit = form.shared_limit = swiglu_limit(config);
  form.moe = options.moe;
  const std::size_t pool = config.size("index_kpool", 16).value();
  config.require(form.attention.top_k % pool == 0, "index_topk is no number of whole pools (index_kpool)");
  return make_latent_streams(weights, form);
}

constexpr std::string_view kGlm5NextFamilies[] = {"glm5_next"};
constexpr std::string_view kGlm5NextUsed[] = {"vocab_size",
                                              "hidden_size",
                                              "intermediate_size",
                                              "num_hidden_layers",
                                              "num_attention_heads",
                                              "rms_norm_eps",
                                              "max_position_embeddings",
                                              "tie_word_embeddings",
                                              "attention_bias",
                                              "kv_lora_rank",
                                              "q_lora_rank",
                                              "qk_nope_head_dim",
                                              "qk_rope_head_dim",
                                              "v_head_dim",
                                              "mlp_layer_types",
                                              "n_routed_experts",
                                              "num_local_experts",
                                              "n_shared_experts",
                                              "num_experts_per_tok",
                                              "moe_intermediate_size",
                                              "n_group",
                                              "topk_group",
                                              "norm_topk_prob",
                                              "routed_scaling_factor",
                                              "layer_types",
                                              "linear_num_heads",
                                              "linear_head_dim",
                                              "linear_conv_kernel_dim",
                                              "linear_lower_bound",
                                              "linear_attn_config",
                                              "index_n_heads",
                                              "index_head_dim",
                                              "index_topk",
                                              "index_kpool",
                                              "indexer_types",
                                              "index_topk_pattern",
                                              "index_topk_freq",
                                              "index_skip_topk_offset",
                                              "hc_mult",
                                              "hc_eps",
                                              "hc_sinkhorn_iters",
                                              "swiglu_limit",
                                              "num_nextn_predict_layers",
                                              "num_mtp_layers",
                                              "text_config",
                                              "vision_config"};
// Widths that follow from others; rotation, of which there is none; which tokens stand for pictures; what mlp_layer_types
// says as well.
constexpr std::string_view kGlm5NextIdle[] = {"head_dim",
                                              "rope_theta",
                                              "rope_scaling",
                                              "rope_parameters",
                                              "qk_head_dim",
                                              "num_key_value_heads",
                                              "first_k_dense_replace",
                                              "router_aux_loss_coef",
                                              "image_token_id",
                                              "video_token_id",
                                              "image_start_token_id",
                                              "image_end_token_id",
                                              "video_start_token_id",
                                              "video_end_token_id"};
constexpr FixedKey kGlm5NextFixed[] = {{"hidden_act", "\"silu\""},
                                       {"topk_method", "\"noaux_tc\""},
                                       {"scoring_func", "\"sigmoid\""},
                                       {"mla_use_nope", "true"},
                                       {"mhc", "true"},
                                       {"index_kpool_always_select_tail", "true"}};

constexpr ModelRule kRules[] = {
    {kDots3Families, {}, {kDots3Used, kDots3Idle, kDots3Fixed}, make_dots3_note},
    {kHyV4Families, kHyV4Variants, {kHyV4Used, kHyV4Idle, kHyV4Fixed}, make_hy_v4},
    {kGlm5NextFamilies, {}, {kGlm5NextUsed, kGlm5NextIdle, kGlm5NextFixed}, make_glm5_next}};

}  // namespace

std::span<const ModelRule> latent_2026_rules() {
  return kRules;
}

}  // namespace assay
