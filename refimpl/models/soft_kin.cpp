// Decoders that make_decoder() computes with a part of their own: xIELU (Apertus), Phi-3.5-MoE's choice of experts, Step's
// gates and limits; Ling 1 and 2. Sources: the classes of transformers 5.23; Ling, which it has no class for: its own
// modeling code.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr double kLargestLimit = 1e6;

constexpr GateRule kSigmoidGate = {.score = GateRule::Score::sigmoid,
                                   .epsilon = 1e-20,
                                   .group_score = GateRule::GroupScore::sum_of_two,
                                   .rounding = ResultRounding::float32};

constexpr std::string_view kApertus[] = {"apertus"};
constexpr DecoderForm kApertusForm = {.mlp = GatedActivation{}};  // xIELU's weights take its place
constexpr auto kApertusUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias"});
constexpr FixedKey kApertusFixed[] = {{"hidden_act", "\"xielu\""}};
constexpr std::string_view kApertusIdle[] = {"post_norm", "qk_norm", "mlp_bias"};

constexpr DecoderForm kExaoneMoeForm = {
    .gate = kSigmoidGate, .router_rounding = ResultRounding::float32, .prediction = {.layers = 1}};
// HY3 and Ling 2.
constexpr DecoderForm kSigmoidForm = {
    .gate = kSigmoidGate, .router_rounding = ResultRounding::float32, .prediction = kLayerModules};

constexpr std::string_view kExaoneMoe[] = {"exaone_moe"};
constexpr auto kExaoneMoeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "sliding_window", "layer_types",
              "mlp_layer_types", "first_k_dense_replace", "num_experts", "num_local_experts",
              "num_experts_per_tok", "moe_intermediate_size", "num_shared_experts", "n_group", "topk_group",
              "norm_topk_prob", "routed_scaling_factor", "num_nextn_predict_layers", "mtp_layer_types"});
constexpr std::string_view kExaoneMoeIdle[] = {"sliding_window_pattern", "is_moe_layer",
                                               "mtp_loss_scaling_factor"};
constexpr FixedKey kExaoneMoeFixed[] = {{"scoring_func", "\"sigmoid\""}, {"topk_method", "\"noaux_tc\""}};

constexpr std::string_view kHy3[] = {"hy_v3"};
constexpr auto kHy3Used = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
                                    "mlp_bias", "mlp_layer_types", "num_experts", "num_local_experts",
                                    "num_experts_per_tok", "num_shared_experts", "moe_intermediate_size",
                                    "router_scaling_factor", "num_nextn_predict_layers"});
// Two bfloat16 numbers added in float32 and rounded are added in bfloat16.
constexpr std::string_view kHy3Idle[] = {"enable_moe_fp32_combine"};

constexpr std::string_view kMellum[] = {"mellum"};
constexpr DecoderForm kMellumForm = {.gate = {.rounding = ResultRounding::as_arithmetic}};
constexpr auto kMellumUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "sliding_window",
              "layer_types", "mlp_layer_types", "num_experts", "num_local_experts", "num_experts_per_tok",
              "moe_intermediate_size", "norm_topk_prob"});
constexpr std::string_view kMellumIdle[] = {"num_mtp_layers", "num_nextn_predict_layers", "mtp_layer_types",
                                            "mtp_mlp_layer_types"};

constexpr std::string_view kLing[] = {"bailing_moe"}, kLing2[] = {"bailing_moe_v2"};
constexpr DecoderForm kLingForm = {.gate = {.epsilon = 1e-20, .rounding = ResultRounding::float32},
                                   .router_rounding = ResultRounding::float32};
constexpr auto kLingUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "use_qkv_bias", "use_bias", "num_experts",
              "num_local_experts", "num_experts_per_tok", "num_shared_experts", "moe_intermediate_size",
              "first_k_dense_replace", "norm_topk_prob", "num_nextn_predict_layers", "num_mtp_layers"});
constexpr auto kLing2Used = kin_keys({"rms_norm_eps",
                                      "num_key_value_heads",
                                      "head_dim",
                                      "use_qkv_bias",
                                      "use_bias",
                                      "use_qk_norm",
                                      "partial_rotary_factor",
                                      "num_experts",
                                      "num_local_experts",
                                      "num_experts_per_tok",
                                      "num_shared_experts",
                                      "moe_intermediate_size",
                                      "first_k_dense_replace",
                                      "norm_topk_prob",
                                      "n_group",
                                      "topk_group",
                                      "routed_scaling_factor",
                                      "moe_router_enable_expert_bias",
                                      "num_nextn_predict_layers",
                                      "num_mtp_layers"});
constexpr std::string_view kLingIdle[] = {
    "embedding_dropout",  "output_dropout",        "max_window_layers", "mtp_loss_scaling_factor",
    "router_dtype",       "use_rmsnorm",           "rotary_dim",        "sliding_window",
    "use_sliding_window", "scale_for_loss_factor", "multi_gate"};
constexpr FixedKey kLingFixed[] = {{"norm_head", "false"}, {"norm_softmax", "false"}};
constexpr FixedKey kLing2Fixed[] = {{"score_function", "\"sigmoid\""}, {"norm_head", "false"}};

constexpr std::string_view kM3[] = {"minimax_m3"};
constexpr auto kM3Used = kin_keys({"rms_norm_eps",
                                   "num_key_value_heads",
                                   "head_dim",
                                   "partial_rotary_factor",
                                   "rotary_dim",
                                   "dense_intermediate_size",
                                   "shared_intermediate_size",
                                   "n_shared_experts",
                                   "num_local_experts",
                                   "num_experts",
                                   "num_experts_per_tok",
                                   "routed_scaling_factor",
                                   "moe_layer_freq",
                                   "sparse_attention_config",
                                   "layer_types",
                                   "mlp_layer_types",
                                   "index_n_heads",
                                   "index_head_dim",
                                   "index_topk_blocks",
                                   "index_block_size",
                                   "index_local_blocks",
                                   "swiglu_limit",
                                   "use_routing_bias"});
constexpr std::string_view kM3Idle[] = {"num_mtp_modules", "use_mtp", "mtp_transformer_layers",
                                        "attn_type_list", "router_jitter_noise"};
constexpr FixedKey kM3Fixed[] = {{"swiglu_alpha", "1.702"},          {"use_gemma_norm", "true"},
                                 {"attention_output_gate", "false"}, {"use_qk_norm", "true"},
                                 {"qk_norm_type", "\"per_head\""},   {"scoring_func", "\"sigmoid\""}};

constexpr std::string_view kPhimoe[] = {"phimoe"};
constexpr auto kPhimoeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "lm_head_bias",
              "sliding_window", "num_local_experts", "num_experts", "num_experts_per_tok",
              "router_jitter_noise", "rope_scaling.short_mscale", "rope_scaling.long_mscale",
              "rope_parameters.short_mscale", "rope_parameters.long_mscale"});

double number_of(const ModelConfig& config, std::string_view key, const ParsedJson& value) {
  return ConfigReader(config, "").to_real(value, key, 0, kLargestLimit);
}

// swigluoai is gpt-oss's, gates and ups one after the other.
std::unique_ptr<LanguageModel> make_minimax_m3(const Weights& weights, const ModelOptions& options) {
  ConfigReader config(weights.config(), "MiniMax-M3");
  DecoderForm form = {.norm = NormForm::one_plus_weight,
                      .mlp = GatedActivation{.activation = Activation::gpt_oss,
                                             .limit = config.real("swiglu_limit", 7, 0, kLargestLimit)},
                      .gate = {.score = GateRule::Score::sigmoid, .rounding = ResultRounding::float32}};
  if (const auto nested = weights.config().text_section("sparse_attention_config")) {
    ConfigReader sparse(*nested, "sparse_attention_config");
    form.attention.index = {.block = sparse.size("sparse_block_size", 128).value(),
                            .local_blocks = sparse.number("sparse_local_block", 1)};
  } else {  // as transformers writes it
    form.attention.index = {.block = config.size("index_block_size", 128).value(),
                            .local_blocks = config.number("index_local_blocks", 1)};
  }
  return make_kin_as(form, weights, options);
}

std::unique_ptr<LanguageModel> make_phimoe(const Weights& weights, const ModelOptions& options) {
  const auto found = weights.config().text().find("router_jitter_noise");
  const bool told = found != weights.config().text().end() && !found->is_null();
  DecoderForm form = {.norm_kind = NormKind::layer};
  form.jitter = told ? number_of(weights.config(), "router_jitter_noise", *found) : 0.01;
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kStep[] = {"step3p5"};
constexpr auto kStepUsed = kin_keys({"rms_norm_eps",
                                     "num_key_value_heads",
                                     "num_attention_groups",
                                     "head_dim",
                                     "attention_other_setting",
                                     "num_sliding_attention_heads",
                                     "layer_types",
                                     "mlp_layer_types",
                                     "moe_layers_enum",
                                     "first_k_dense_replace",
                                     "sliding_window",
                                     "partial_rotary_factors",
                                     "query_pre_attn_scalar",
                                     "moe_num_experts",
                                     "n_routed_experts",
                                     "num_experts",
                                     "num_local_experts",
                                     "moe_top_k",
                                     "num_experts_per_tok",
                                     "moe_intermediate_size",
                                     "share_expert_dim",
                                     "share_expert_dims",
                                     "use_moe_router_bias",
                                     "moe_router_scaling_factor",
                                     "swiglu_limits",
                                     "swiglu_limits_shared",
                                     "num_nextn_predict_layers",
                                     "num_mtp_layers"});
constexpr std::string_view kStepIdle[] = {"need_fp32_gate",         "n_shared_experts", "max_seq_len",
                                          "norm_expert_weight",     "yarn_only_types",  "mtp_layer_types",
                                          "mtp_mlp_layer_types",    "per_layer_config", "moe_layer_freq",
                                          "sparse_attention_config"};
constexpr FixedKey kStepFixed[] = {
    {"attention_bias", "false"},         {"mlp_bias", "false"},
    {"use_head_wise_attn_gate", "true"}, {"use_qk_norm", "true"},
    {"zero_centered", "true"},           {"moe_router_activation", "\"sigmoid\""},
    {"scoring_func", "\"sigmoid\""},     {"use_bidirectional_attention", "false"}};

std::unique_ptr<LanguageModel> make_step(const Weights& weights, const ModelOptions& options) {
  const std::vector<double> of_experts = limits_of(weights.config(), "swiglu_limits"),
                            shared = limits_of(weights.config(), "swiglu_limits_shared");
  DecoderForm form = {.norm = NormForm::one_plus_weight,
                      .gate = {.score = GateRule::Score::sigmoid, .rounding = ResultRounding::float32},
                      .prediction = {.layers = 1, .in_series = true, .before_norms = true, .own_head = true}};
  form.expert_limits = of_experts;
  form.shared_limits = shared;
  return make_kin_as(form, weights, options);
}

constexpr ModelRule kSoftRules[] = {
    {kApertus, {}, {kApertusUsed, kApertusIdle, kApertusFixed}, make_kin<kApertusForm>},
    {kExaoneMoe, {}, {kExaoneMoeUsed, kExaoneMoeIdle, kExaoneMoeFixed}, make_kin<kExaoneMoeForm>},
    {kHy3, {}, {kHy3Used, kHy3Idle}, make_kin<kSigmoidForm>},
    {kLing, {}, {kLingUsed, kLingIdle, kLingFixed}, make_kin<kLingForm>},
    {kLing2, {}, {kLing2Used, kLingIdle, kLing2Fixed}, make_kin<kSigmoidForm>},
    {kM3, {}, {kM3Used, kM3Idle, kM3Fixed}, make_minimax_m3},
    {kMellum, {}, {kMellumUsed, kMellumIdle}, make_kin<kMellumForm>},
    {kPhimoe, {}, {kPhimoeUsed}, make_phimoe},
    {kStep, {}, {kStepUsed, kStepIdle, kStepFixed}, make_step}};

}  // namespace

std::vector<double> limits_of(const ModelConfig& config, std::string_view key) {
  std::vector<double> limits;
  const auto found = config.text().find(key);
  if (found == config.text().end() || found->is_null()) return limits;
  if (!found->is_array()) throw Error::input(fmt::format("{} is no list", key)).in(config.source());
  for (const ParsedJson& value : *found)
    limits.push_back(value.is_null() ? 0 : number_of(config, key, value));
  return limits;
}

std::span<const ModelRule> soft_kin_rules() {
  return kSoftRules;
}

}  // namespace assay
