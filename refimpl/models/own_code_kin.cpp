// Decoders whose checkpoints bring code of their own, as make_decoder() computes them: a DecoderForm each, and the keys of
// config.json that it and the tree use. Sources: that code; vLLM 0.32's classes.
#include <cmath>

#include "refimpl/models/deepseek.h"
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr DecoderForm kOwnPlain = {};

constexpr std::string_view kAquila[] = {"aquila"}, kInternlm1[] = {"internlm"}, kKormo[] = {"kormo"},
                           kXverse[] = {"xverse"};
constexpr auto kAquilaUsed = kin_keys({"rms_norm_eps", "num_key_value_heads"});
constexpr auto kInternlm1Used = kin_keys({"rms_norm_eps", "num_key_value_heads", "bias", "rotary"});
constexpr auto kKormoUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim"});
constexpr FixedKey kKormoFixed[] = {{"attention_bias", "false"}, {"mlp_bias", "false"}};
constexpr std::string_view kXverseIdle[] = {"initializer_weight", "quantization_bit",
                                            "max_tokenizer_truncation"};

constexpr std::string_view kExaone3[] = {"exaone"};
constexpr auto kExaone3Used = kin_keys({"layer_norm_epsilon", "rms_norm_eps", "num_key_value_heads",
                                        "head_dim", "num_layers", "activation_function"});

constexpr std::string_view kInternlm3[] = {"internlm3"};
constexpr auto kInternlm3Used =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "qkv_bias", "bias"});

constexpr std::string_view kIquest[] = {"iquestcoder"};
constexpr auto kIquestUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias",
              "use_sliding_window", "sliding_window", "max_window_layers"});
constexpr FixedKey kIquestFixed[] = {{"clip_qkv", "null"}};  // which vLLM leaves aside

constexpr std::string_view kOrion[] = {"orion"};
constexpr DecoderForm kOrionForm = {.norm_kind = NormKind::layer};
constexpr auto kOrionUsed = kin_keys({"rms_norm_eps", "num_key_value_heads"});
constexpr std::string_view kOrionIdle[] = {"max_sequence_length"};

constexpr std::string_view kPanguDense[] = {"pangu_embedded"};
constexpr auto kPanguDenseUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "bias", "qkv_bias", "mlp_bias",
              "sandwich_norm", "n_routed_experts", "param_sink_number"});
constexpr FixedKey kPanguDenseFixed[] = {{"interleaved_sliding_window", "[]"}};

// Gemma 3's norms, with one rope and no windows.
constexpr std::string_view kRnj1[] = {"rnj1"};
constexpr DecoderForm kRnj1Form = {.norm = NormForm::one_plus_weight, .rounded_embedding_scale = true};
constexpr auto kRnj1Used =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "hidden_activation",
              "query_pre_attn_scalar", "final_logit_softcapping", "layer_types", "sliding_window"});
constexpr FixedKey kRnj1Fixed[] = {{"attn_logit_softcapping", "null"},
                                   {"use_bidirectional_attention", "false"}};
constexpr std::string_view kRnj1Idle[] = {"_sliding_window_pattern", "sliding_window_pattern",
                                          "rope_local_base_freq"};

constexpr std::string_view kSolarPro[] = {"solar"};
constexpr auto kSolarProUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias", "bskcn_1",
              "bskcn_2", "bskcn_3", "bskcn_4", "bskcn_tv", "sliding_window"});

constexpr std::string_view kStep1[] = {"step1"};
constexpr DecoderForm kStep1Form = {.attention = {.slopes = SlopeForm::root}};
constexpr std::string_view kStep1Used[] = {
    "vocab_size",          "hidden_size",         "intermediate_size",
    "num_hidden_layers",   "num_attention_heads", "num_attention_groups",
    "num_key_value_heads", "attention_bias",      "mlp_bias",
    "rms_norm_eps",        "max_seq_len",         "max_position_embeddings",
    "tie_word_embeddings"};
constexpr std::string_view kStep1Idle[] = {"use_cache", "head_dim"};

constexpr std::string_view kTelechat2[] = {"telechat2"};
constexpr auto kTelechat2Used =
    kin_keys({"layer_norm_epsilon", "rms_norm_eps", "num_key_value_heads", "n_layer", "n_head",
              "ffn_hidden_size", "embed_layernorm", "training_seqlen", "base_seqlen"});
constexpr std::string_view kTelechat2Idle[] = {"logn",    "seq_length", "n_embed",
                                               "n_inner", "flash_attn", "relative_encoding"};
constexpr FixedKey kTelechat2Fixed[] = {{"apply_residual_connection_post_layernorm", "false"}};

constexpr std::string_view kTelechat3[] = {"telechat3"};
constexpr auto kTelechat3Used =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias"});
constexpr std::string_view kTelechat3Idle[] = {"embedding_size", "share_attention", "share_ffn"};

constexpr std::string_view kTeleflm[] = {"teleflm"};
constexpr auto kTeleflmUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "use_mup",
                                        "input_mult", "output_mult", "mup_scale_factor"});

// What its norms are stored less: 1, but behind attention 1/5, and behind MLPs 1/√125.
constexpr std::string_view kPlamo3[] = {"plamo3"};
constexpr auto kPlamo3Used = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
                                       "window_size", "sliding_window_pattern", "layer_types",
                                       "rope_local_theta", "rope_scaling_factor", "initial_context_length"});
constexpr FixedKey kPlamo3Fixed[] = {{"hidden_activation", "\"swiglu\""}, {"scale_embedding", "false"}};
std::unique_ptr<LanguageModel> make_plamo3(const Weights& weights, const ModelOptions& options) {
  return make_kin_as({.norm = NormForm::one_plus_weight,
                      .attention_post_offset = 1.0 / 5,
                      .mlp_post_offset = 1 / std::pow(5.0, 1.5)},
                     weights, options);
}

// Layers of a config's list; what its class has where it is silent.
std::vector<std::size_t> listed_layers(ConfigReader& config, std::string_view key,
                                       std::vector<std::size_t> otherwise) {
  if (!config.has(key)) return otherwise;
  const std::vector<std::uint64_t> given = config.numbers(key).value_or(std::vector<std::uint64_t>{});
  return {given.begin(), given.end()};
}
StreamMixes mixes_of_solar(const ModelConfig& source) {
  ConfigReader config(source, "Solar Pro");
  StreamMixes mixes;
  mixes.keep = {listed_layers(config, "bskcn_1", {12, 20, 32, 44}),
                listed_layers(config, "bskcn_2", {20, 32})};
  mixes.mix = {listed_layers(config, "bskcn_3", {16, 24, 36, 48}),
               listed_layers(config, "bskcn_4", {28, 40})};
  for (std::size_t slot = 0; slot < StreamMixes::kSlots; ++slot)
    for (const std::size_t layer : mixes.mix[slot])
      config.require(std::any_of(mixes.keep[slot].begin(), mixes.keep[slot].end(),
                                 [&](std::size_t kept) { return kept <= layer; }),
                     "bskcn_3 or bskcn_4 has a layer before the first that is kept");
  // The first is for training.
  const std::vector<double> weights = limits_of(source, "bskcn_tv");
  config.require(weights.empty() || weights.size() == 2, "bskcn_tv is no list of two numbers");
  mixes.weight = weights.empty() ? 0.8 : weights[1];
  return mixes;
}
std::unique_ptr<LanguageModel> make_solar(const Weights& weights, const ModelOptions& options) {
  const StreamMixes mixes = mixes_of_solar(weights.config());
  return make_kin_as({.stream_mixes = &mixes}, weights, options);
}

// --- With experts --------------------------------------------------------------------------------------------------

constexpr std::string_view kDeepseekMoe[] = {"deepseek_v1"};
constexpr DecoderForm kDeepseekMoeForm = {.gate = {.rounding = ResultRounding::as_arithmetic}};
constexpr auto kDeepseekMoeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "n_routed_experts",
              "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts", "first_k_dense_replace",
              "moe_layer_freq", "norm_topk_prob"});
constexpr FixedKey kDeepseekMoeFixed[] = {{"scoring_func", "\"softmax\""}, {"rswa_window", "null"}};

constexpr GateRule kOwnSigmoidGate = {.score = GateRule::Score::sigmoid,
                                      .epsilon = 1e-20,
                                      .group_score = GateRule::GroupScore::sum_of_two,
                                      .rounding = ResultRounding::float32};
constexpr DecoderForm kOwnSigmoidForm = {.gate = kOwnSigmoidGate, .router_rounding = ResultRounding::float32};

constexpr std::string_view kParam2[] = {"param2moe"}, kSarvam[] = {"sarvam_moe"};
constexpr auto kParam2Used = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "use_qkv_bias", "use_bias", "use_qk_norm",
     "partial_rotary_factor", "num_experts", "num_local_experts", "num_experts_per_tok", "num_shared_experts",
     "moe_intermediate_size", "moe_shared_expert_intermediate_size", "first_k_dense_replace",
     "norm_topk_prob", "n_group", "topk_group", "routed_scaling_factor", "moe_router_enable_expert_bias"});
constexpr std::string_view kParam2Idle[] = {
    "embedding_dropout",        "output_dropout", "max_window_layers", "mtp_loss_scaling_factor",
    "num_nextn_predict_layers", "router_dtype",   "num_mtp_layers",    "topk_method"};
constexpr FixedKey kParam2Fixed[] = {{"score_function", "\"sigmoid\""}, {"scoring_func", "\"sigmoid\""}};

constexpr std::string_view kSarvamMla[] = {"sarvam_mla"};
constexpr auto kSarvamMlaUsed = kin_keys({"rms_norm_eps",
                                          "kv_lora_rank",
                                          "q_lora_rank",
                                          "qk_nope_head_dim",
                                          "qk_rope_head_dim",
                                          "v_head_dim",
                                          "num_experts",
                                          "n_routed_experts",
                                          "num_local_experts",
                                          "num_experts_per_tok",
                                          "num_shared_experts",
                                          "moe_intermediate_size",
                                          "moe_shared_expert_intermediate_size",
                                          "first_k_dense_replace",
                                          "moe_layer_freq",
                                          "norm_topk_prob",
                                          "n_group",
                                          "topk_group",
                                          "routed_scaling_factor",
                                          "moe_router_enable_expert_bias"});
// Widths that follow from others, and what no code of it reads.
constexpr std::string_view kSarvamMlaIdle[] = {
    "head_dim",     "q_head_dim",     "qk_head_dim",       "num_key_value_heads", "use_qk_norm",
    "router_dtype", "output_dropout", "embedding_dropout", "default_theta"};
std::unique_ptr<LanguageModel> make_sarvam_mla(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  return make_deepseek(weights, options, {.latents_as_others = true});
}

// Norms before and behind attention and MLPs, where sandwich_norm says so. Prediction layers are not computed.
constexpr std::string_view kPanguUltra[] = {"pangu_ultra_moe"};
constexpr auto kPanguUltraUsed = kin_keys({"rms_norm_eps",
                                           "sandwich_norm",
                                           "q_lora_rank",
                                           "attention_q_lora_dim",
                                           "kv_lora_rank",
                                           "attention_kv_lora_dim",
                                           "qk_nope_head_dim",
                                           "attention_qk_dim",
                                           "qk_rope_head_dim",
                                           "attention_qk_rope_dim",
                                           "v_head_dim",
                                           "attention_v_dim",
                                           "n_routed_experts",
                                           "num_routed_experts",
                                           "num_experts_per_tok",
                                           "n_shared_experts",
                                           "num_shared_experts",
                                           "moe_intermediate_size",
                                           "first_k_dense_replace",
                                           "num_dense_layers",
                                           "router_enable_expert_bias",
                                           "norm_topk_prob",
                                           "routed_scaling_factor",
                                           "n_group",
                                           "topk_group"});
constexpr std::string_view kPanguUltraIdle[] = {"num_key_value_heads", "num_nextn_predict_layers",
                                                "num_mtp_layers"};
std::unique_ptr<LanguageModel> make_pangu_ultra(const Weights& weights, const ModelOptions& options) {
  DecoderForm form = kOwnSigmoidForm;
  form.latent = options.mla;
  form.latent_epsilon = hyperparameters(weights.tree()).epsilon;
  return make_kin_as(form, weights, options);
}

// Dense, or with experts, and in those layers experts of values.
constexpr std::string_view kK2Horizon[] = {"k2_horizon"};
constexpr auto kK2HorizonUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "rope_head_dim", "attention_bias", "query_key_norm",
     "attention_gate_func", "num_experts", "num_experts_per_tok", "moe_intermediate_size",
     "num_shared_experts", "moe_gate_bias", "decoder_sparse_step", "mlp_only_layers", "mova_num_experts",
     "mova_num_experts_per_tok", "norm_topk_prob", "router_score_func", "router_scaling_factor"});
constexpr FixedKey kK2HorizonFixed[] = {{"dual_chunk_attention_config", "null"},
                                        {"use_sliding_window", "false"}};
GateRule gate_of_horizon(ConfigReader& config) {
  const std::string scored = config.text("router_score_func", "sigmoid");
  config.require(scored == "softmax" || scored == "sigmoid",
                 "router_score_func is neither softmax nor sigmoid");
  return {.score = scored == "softmax" ? GateRule::Score::softmax : GateRule::Score::sigmoid,
          .rounding = ResultRounding::as_arithmetic};
}
std::unique_ptr<LanguageModel> make_k2_horizon(const Weights& weights, const ModelOptions& options) {
  require_all_heads(weights);
  ConfigReader config(weights.config(), "K2 Horizon");
  DecoderForm form = {.attention = {.norms_in_row = true}};
  const std::string gate = config.text("attention_gate_func", "");
  config.require(gate.empty() || gate == "silu" || gate == "softplus",
                 "attention_gate_func is neither silu nor softplus");
  form.attention.gate = gate == "silu" ? HeadGate::silu : HeadGate::softplus_of_2;
  form.gate = gate_of_horizon(config);
  form.attention.value_rule = form.gate;
  form.attention.value_rule.top_k = config.number("mova_num_experts_per_tok", 0);
  form.attention.value_rule.renormalize = form.attention.value_rule.top_k > 1;
  form.attention.value_rule.scale = hyperparameters(weights.tree()).routing.scale;
  return make_kin_as(form, weights, options);
}

// Lightning attention in most layers, latent attention in the others. Prediction layers are not computed.
constexpr std::string_view kLing25[] = {"bailing_moe_v2_5"};
constexpr auto kLing25Used = kin_keys({"rms_norm_eps",
                                       "head_dim",
                                       "kv_lora_rank",
                                       "q_lora_rank",
                                       "qk_nope_head_dim",
                                       "qk_rope_head_dim",
                                       "v_head_dim",
                                       "partial_rotary_factor",
                                       "layer_group_size",
                                       "layer_types",
                                       "group_norm_size",
                                       "first_k_dense_replace",
                                       "use_bias",
                                       "use_qkv_bias",
                                       "use_qk_norm",
                                       "num_kv_heads_for_linear_attn",
                                       "linear_key_value_heads",
                                       "num_experts",
                                       "num_local_experts",
                                       "num_experts_per_tok",
                                       "num_shared_experts",
                                       "moe_intermediate_size",
                                       "moe_shared_expert_intermediate_size",
                                       "moe_router_enable_expert_bias",
                                       "n_group",
                                       "topk_group",
                                       "norm_topk_prob",
                                       "routed_scaling_factor"});
constexpr std::string_view kLing25Idle[] = {"num_key_value_heads",
                                            "qk_head_dim",
                                            "rotary_dim",
                                            "num_nextn_predict_layers",
                                            "embedding_dropout",
                                            "output_dropout",
                                            "max_window_layers",
                                            "router_dtype",
                                            "seq_aux",
                                            "topk_method",
                                            "linear_backend",
                                            "mtp_loss_scaling_factor"};
constexpr FixedKey kLing25Fixed[] = {{"score_function", "\"sigmoid\""}, {"scoring_func", "\"sigmoid\""},
                                     {"linear_silu", "false"},          {"use_linear_silu", "false"},
                                     {"linear_rope", "true"},           {"rope_interleave", "true"},
                                     {"use_mla_nope", "false"}};
// … or grouped attention in the others.
constexpr std::string_view kRingLinear[] = {"bailing_moe_linear"};
constexpr auto kRingLinearUsed = kin_keys({"rms_norm_eps",
                                           "num_key_value_heads",
                                           "head_dim",
                                           "partial_rotary_factor",
                                           "rotary_dim",
                                           "layer_group_size",
                                           "layer_types",
                                           "group_norm_size",
                                           "first_k_dense_replace",
                                           "use_bias",
                                           "use_qkv_bias",
                                           "use_qk_norm",
                                           "num_kv_heads_for_linear_attn",
                                           "linear_key_value_heads",
                                           "num_experts",
                                           "num_local_experts",
                                           "num_experts_per_tok",
                                           "num_shared_experts",
                                           "moe_intermediate_size",
                                           "moe_shared_expert_intermediate_size",
                                           "moe_router_enable_expert_bias",
                                           "n_group",
                                           "topk_group",
                                           "norm_topk_prob",
                                           "routed_scaling_factor",
                                           "num_nextn_predict_layers"});
constexpr std::string_view kRingLinearIdle[] = {
    "embedding_dropout", "output_dropout", "max_window_layers", "router_dtype",
    "seq_aux",           "topk_method",    "linear_backend",    "mtp_loss_scaling_factor"};
constexpr FixedKey kRingLinearFixed[] = {{"score_function", "\"sigmoid\""}, {"scoring_func", "\"sigmoid\""},
                                         {"linear_silu", "false"},          {"use_linear_silu", "false"},
                                         {"linear_rope", "true"},           {"norm_head", "false"},
                                         {"use_sliding_window", "false"}};
std::unique_ptr<LanguageModel> make_lightning_kin(const Weights& weights, const ModelOptions& options) {
  require_all_heads(weights);
  ConfigReader config(weights.config(), "lightning attention");
  DecoderForm form = kOwnSigmoidForm;
  form.latent = options.mla;
  form.latent_epsilon = hyperparameters(weights.tree()).epsilon;
  form.recurrent.scan = options.scan;
  form.recurrent.norm_groups = config.number("group_norm_size", 1);
  config.require(form.recurrent.norm_groups > 0, "group_norm_size is 0");
  return make_kin_as(form, weights, options);
}

constexpr ModelRule kOwnCodeRules[] = {
    {kAquila, {}, {kAquilaUsed}, make_kin<kOwnPlain>},
    {kInternlm1, {}, {kInternlm1Used}, make_kin<kOwnPlain>},
    {kKormo, {}, {kKormoUsed, {}, kKormoFixed}, make_kin<kOwnPlain>},
    {kXverse, {}, {kAquilaUsed, kXverseIdle}, make_kin<kOwnPlain>},
    {kDeepseekMoe, {}, {kDeepseekMoeUsed, {}, kDeepseekMoeFixed}, make_kin<kDeepseekMoeForm>},
    {kExaone3, {}, {kExaone3Used}, make_kin<kOwnPlain>},
    {kInternlm3, {}, {kInternlm3Used}, make_kin<kOwnPlain>},
    {kIquest, {}, {kIquestUsed, {}, kIquestFixed}, make_kin<kOwnPlain>},
    {kLing25, {}, {kLing25Used, kLing25Idle, kLing25Fixed}, make_lightning_kin},
    {kRingLinear, {}, {kRingLinearUsed, kRingLinearIdle, kRingLinearFixed}, make_lightning_kin},
    {kK2Horizon, {}, {kK2HorizonUsed, {}, kK2HorizonFixed}, make_k2_horizon},
    {kOrion, {}, {kOrionUsed, kOrionIdle}, make_kin<kOrionForm>},
    {kPanguDense, {}, {kPanguDenseUsed, {}, kPanguDenseFixed}, make_kin<kOwnPlain>},
    {kPanguUltra, {}, {kPanguUltraUsed, kPanguUltraIdle}, make_pangu_ultra},
    {kParam2, {}, {kParam2Used, kParam2Idle, kParam2Fixed}, make_kin<kOwnSigmoidForm>},
    {kPlamo3, {}, {kPlamo3Used, {}, kPlamo3Fixed}, make_plamo3},
    {kRnj1, {}, {kRnj1Used, kRnj1Idle, kRnj1Fixed}, make_kin<kRnj1Form>},
    {kSarvam, {}, {kParam2Used, kParam2Idle, kParam2Fixed}, make_kin<kOwnSigmoidForm>},
    {kSarvamMla, {}, {kSarvamMlaUsed, kSarvamMlaIdle, kParam2Fixed}, make_sarvam_mla},
    {kSolarPro, {}, {kSolarProUsed}, make_solar},
    {kStep1, {}, {kStep1Used, kStep1Idle}, make_whole_kin<kStep1Form>},
    {kTelechat2, {}, {kTelechat2Used, kTelechat2Idle, kTelechat2Fixed}, make_kin<kOwnPlain>},
    {kTelechat3, {}, {kTelechat3Used, kTelechat3Idle}, make_kin<kOwnPlain>},
    {kTeleflm, {}, {kTeleflmUsed}, make_kin<kOwnPlain>}};

}  // namespace

std::span<const ModelRule> own_code_rules() {
  return kOwnCodeRules;
}

}  // namespace assay
