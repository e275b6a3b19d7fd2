// Ling 3 (BailingMoeV3): Kimi Delta Attention with whole gates, whose decay has a floor; in one layer of four or six latent
// attention that rotates pairs and has a gate a head; DeepSeek-V3's experts. Source: vLLM's bailing_moe_v3.py (0.28).
#include <nlohmann/json.hpp>

#include "refimpl/models/activation_name.h"
#include "refimpl/models/deepseek.h"
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr DecoderForm kLing3Form = {.gate = {.score = GateRule::Score::sigmoid,
                                             .epsilon = 1e-20,
                                             .group_score = GateRule::GroupScore::sum_of_two,
                                             .rounding = ResultRounding::float32},
                                    .router_rounding = ResultRounding::float32};

// -5 where nothing is said of it, as long as the gate is a safe one.
double decay_floor(const ModelConfig& config) {
  const ParsedJson& values = config.text();
  if (const auto safe = values.find("kda_safe_gate"); safe != values.end() && !safe->is_null()) {
    if (!safe->is_boolean()) throw Error::input("kda_safe_gate is no flag").in(config.source());
    if (!safe->get<bool>()) return 0;
  }
  const auto bound = values.find("kda_lower_bound");
  if (bound == values.end() || bound->is_null()) return -5;
  if (!bound->is_number() || !(bound->get<double>() < 0))
    throw Error::input("kda_lower_bound is no number below 0").in(config.source());
  return bound->get<double>();
}

// Dense layers have no limit, whatever the list says of shared experts there.
std::vector<double> shared_limits_of(const Weights& weights) {
  std::vector<double> limits = limits_of(weights.config(), "share_expert_swiglu_limit_list");
  for (std::size_t layer = 0; layer < limits.size(); ++layer)
    if (!weights.find({.role = Role::router, .layer = layer})) limits[layer] = 0;
  return limits;
}

std::unique_ptr<LanguageModel> make_ling3(const Weights& weights, const ModelOptions& options) {
  const std::vector<double> of_experts = limits_of(weights.config(), "expert_swiglu_limit_list"),
                            shared = shared_limits_of(weights);
  DecoderForm form = kLing3Form;
  form.latent = options.mla;
  form.recurrent.scan = options.scan;
  form.recurrent.decay_floor = decay_floor(weights.config());
  form.latent_epsilon = hyperparameters(weights.tree()).epsilon;
  form.expert_limits = of_experts;
  form.shared_limits = shared;
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kLing3Families[] = {"bailing_moe_v3"};
constexpr auto kLing3Used = kin_keys({"rms_norm_eps",
                                      "head_dim",
                                      "kv_lora_rank",
                                      "q_lora_rank",
                                      "qk_nope_head_dim",
                                      "qk_rope_head_dim",
                                      "v_head_dim",
                                      "short_conv_kernel_size",
                                      "layer_group_size",
                                      "first_k_dense_replace",
                                      "num_experts",
                                      "num_experts_per_tok",
                                      "num_shared_experts",
                                      "moe_intermediate_size",
                                      "moe_shared_expert_intermediate_size",
                                      "n_group",
                                      "topk_group",
                                      "norm_topk_prob",
                                      "routed_scaling_factor",
                                      "expert_swiglu_limit_list",
                                      "share_expert_swiglu_limit_list",
                                      "gated_attention_proj_granularity_type",
                                      "no_kda_lora",
                                      "kda_safe_gate",
                                      "kda_lower_bound"});
// Widths that follow from others, what no code of Ling 3 reads, and prediction layers, which are left out.
constexpr std::string_view kLing3Idle[] = {"num_key_value_heads",
                                           "qk_head_dim",
                                           "rotary_dim",
                                           "partial_rotary_factor",
                                           "num_nextn_predict_layers",
                                           "mtp_use_kda",
                                           "group_norm_size",
                                           "linear_silu",
                                           "max_window_layers",
                                           "num_kv_heads_for_linear_attn",
                                           "use_qk_norm",
                                           "router_dtype",
                                           "seq_aux",
                                           "mtp_loss_scaling_factor"};
constexpr FixedKey kLing3Fixed[] = {
    {"score_function", "\"sigmoid\""}, {"scoring_func", "\"sigmoid\""},
    {"topk_method", "\"noaux_tc\""},   {"moe_router_enable_expert_bias", "true"},
    {"rope_interleave", "true"},       {"use_bias", "false"},
    {"use_qkv_bias", "false"},         {"use_kda_lora", "false"},
    {"use_mla_nope", "false"},         {"use_nGPT", "false"},
    {"up_proj_norm", "false"},         {"value_norm", "false"},
    {"scale_router_input", "false"}};

// Behind an image encoder, which no text meets: the same.
constexpr std::string_view kLing3VlFamilies[] = {"bailing_moe_v3_vl"};
constexpr std::string_view kLing3VlIdle[] = {"num_key_value_heads",
                                             "qk_head_dim",
                                             "rotary_dim",
                                             "partial_rotary_factor",
                                             "num_nextn_predict_layers",
                                             "mtp_use_kda",
                                             "group_norm_size",
                                             "linear_silu",
                                             "max_window_layers",
                                             "num_kv_heads_for_linear_attn",
                                             "use_qk_norm",
                                             "router_dtype",
                                             "seq_aux",
                                             "mtp_loss_scaling_factor",
                                             "text_config",
                                             "vision_config"};

// As transformers has it: gates of heads always, no limits, and its latents' norms with an ε of their own.
std::unique_ptr<LanguageModel> make_bailing_hybrid(const Weights& weights, const ModelOptions& options) {
  DecoderForm form = kLing3Form;
  form.latent = options.mla;
  form.latent_scale = yarn_score_factor(hyperparameters(weights.tree()).ropes.at(0));
  form.recurrent.scan = options.scan;
  form.recurrent.decay_floor = decay_floor(weights.config());
  form.recurrent.activation = activation_of(weights);
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kHybridFamilies[] = {"bailing_hybrid"};
constexpr auto kHybridUsed = kin_keys({"rms_norm_eps",
                                       "model_max_length",
                                       "kv_lora_rank",
                                       "qk_nope_head_dim",
                                       "qk_rope_head_dim",
                                       "v_head_dim",
                                       "head_dim",
                                       "linear_num_heads",
                                       "linear_head_dim",
                                       "linear_conv_kernel_dim",
                                       "short_conv_kernel_size",
                                       "layer_group_size",
                                       "layer_types",
                                       "mlp_layer_types",
                                       "first_k_dense_replace",
                                       "num_experts",
                                       "num_local_experts",
                                       "num_experts_per_tok",
                                       "num_experts_per_token",
                                       "num_shared_experts",
                                       "n_shared_experts",
                                       "moe_intermediate_size",
                                       "n_group",
                                       "num_expert_group",
                                       "topk_group",
                                       "norm_topk_prob",
                                       "moe_renormalize",
                                       "routed_scaling_factor",
                                       "kda_safe_gate",
                                       "kda_lower_bound"});
constexpr std::string_view kHybridIdle[] = {"num_key_value_heads",     "qk_head_dim",
                                            "num_mtp_layers",          "num_nextn_predict_layers",
                                            "mtp_loss_scaling_factor", "q_lora_rank"};
constexpr FixedKey kHybridFixed[] = {{"attention_bias", "false"}};

}  // namespace

const ModelRule kBailingHybridRule = {
    kHybridFamilies, {}, {kHybridUsed, kHybridIdle, kHybridFixed}, make_bailing_hybrid};
const ModelRule kLing3Rule = {kLing3Families, {}, {kLing3Used, kLing3Idle, kLing3Fixed}, make_ling3};
const ModelRule kLing3VlRule = {kLing3VlFamilies, {}, {kLing3Used, kLing3VlIdle, kLing3Fixed}, make_ling3};

}  // namespace assay
