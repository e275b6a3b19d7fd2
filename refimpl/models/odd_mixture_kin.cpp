// Mixtures that make_decoder() computes with a word more: Trinity, Command A with experts, DBRX. Sources: the classes of
// transformers 5.23.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr std::string_view kAfmoe[] = {"afmoe"};
constexpr DecoderForm kAfmoeForm = {
    .norm = NormForm::weight_inside,
    .gate = {.score = GateRule::Score::sigmoid, .epsilon = 1e-20, .rounding = ResultRounding::float32}};
constexpr auto kAfmoeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "moe_intermediate_size",
              "num_dense_layers", "num_experts", "num_experts_per_tok", "num_shared_experts", "route_scale",
              "sliding_window", "layer_types", "global_attn_every_n_layers", "mup_enabled"});
constexpr std::string_view kAfmoeIdle[] = {"num_expert_groups", "num_limited_groups", "load_balance_coeff",
                                           "use_grouped_mm"};
constexpr FixedKey kAfmoeFixed[] = {
    {"score_func", "\"sigmoid\""}, {"route_norm", "true"}, {"n_group", "1"}, {"topk_group", "1"}};

constexpr std::string_view kCohere2Moe[] = {"cohere2_moe"};
constexpr auto kCohere2MoeUsed = kin_keys(
    {"layer_norm_eps", "rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "logit_scale",
     "sliding_window", "sliding_window_pattern", "layer_types", "mlp_layer_types", "first_k_dense_replace",
     "prefix_dense_intermediate_size", "prefix_dense_sliding_window_pattern", "num_experts",
     "num_experts_per_tok", "num_shared_experts", "shared_expert_combination_strategy", "expert_selection_fn",
     "norm_topk_prob"});
// The chosen logits are scored, by a softmax or each by itself; routed and shared experts may be averaged.
std::unique_ptr<LanguageModel> make_cohere2_moe(const Weights& weights, const ModelOptions& options) {
  ConfigReader config(weights.config(), "Command A with experts");
  DecoderForm form = {.gate = {.top_k_first = true, .rounding = ResultRounding::as_arithmetic}};
  const bool rms = config.has("rms_norm_eps") && !config.is_null("rms_norm_eps");
  form.norm_kind = rms ? NormKind::rms : NormKind::layer;
  const std::string scored = config.text("expert_selection_fn", "softmax"),
                    joined = config.text("shared_expert_combination_strategy", "average");
  config.require(scored == "softmax" || scored == "sigmoid",
                 "expert_selection_fn is neither softmax nor sigmoid");
  config.require(joined == "average" || joined == "sum",
                 "shared_expert_combination_strategy is neither average nor sum");
  if (scored == "sigmoid") form.gate.score = GateRule::Score::sigmoid;
  form.averaged_shared = joined == "average";
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kDbrx[] = {"dbrx"};
constexpr DecoderForm kDbrxForm = {.norm_kind = NormKind::layer,
                                   .gate = {.rounding = ResultRounding::as_arithmetic}};
constexpr std::string_view kDbrxUsed[] = {"vocab_size",
                                          "d_model",
                                          "hidden_size",
                                          "n_layers",
                                          "num_hidden_layers",
                                          "n_heads",
                                          "num_attention_heads",
                                          "max_seq_len",
                                          "max_position_embeddings",
                                          "original_max_position_embeddings",
                                          "rope_theta",
                                          "rope_scaling",
                                          "rope_parameters",
                                          "attn_config",
                                          "ffn_config",
                                          "tie_word_embeddings"};
constexpr std::string_view kDbrxIdle[] = {"head_dim", "resid_pdrop", "emb_pdrop", "num_key_value_heads"};

constexpr ModelRule kOddRules[] = {{kAfmoe, {}, {kAfmoeUsed, kAfmoeIdle, kAfmoeFixed}, make_kin<kAfmoeForm>},
                                   {kCohere2Moe, {}, {kCohere2MoeUsed}, make_cohere2_moe},
                                   {kDbrx, {}, {kDbrxUsed, kDbrxIdle}, make_kin<kDbrxForm>}};

}  // namespace

std::span<const ModelRule> odd_mixture_rules() {
  return kOddRules;
}

}  // namespace assay
