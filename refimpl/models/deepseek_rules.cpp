// Who has latent attention and DeepSeek's experts, and which keys of config.json their classes read.
#include "refimpl/models/deepseek.h"
#include "refimpl/models/rules.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_plain(const Weights& weights, const ModelOptions& options) {
  return make_deepseek(weights, options);
}
std::unique_ptr<LanguageModel> make_with_paired_indexer(const Weights& weights, const ModelOptions& options) {
  return make_deepseek(weights, options, {.index_layout = RopeLayout::interleaved});
}
std::unique_ptr<LanguageModel> make_with_softmax_router(const Weights& weights, const ModelOptions& options) {
  return make_deepseek(weights, options, {.softmax_router = true});
}
constexpr std::string_view kV2Families[] = {"deepseek_v2"};
constexpr auto kV2Used = decoder_keys({"hidden_act",
                                       "attention_bias",
                                       "kv_lora_rank",
                                       "q_lora_rank",
                                       "qk_nope_head_dim",
                                       "qk_rope_head_dim",
                                       "v_head_dim",
                                       "first_k_dense_replace",
                                       "moe_layer_freq",
                                       "n_routed_experts",
                                       "num_experts",
                                       "num_local_experts",
                                       "n_shared_experts",
                                       "num_experts_per_tok",
                                       "moe_intermediate_size",
                                       "n_group",
                                       "topk_group",
                                       "topk_method",
                                       "routed_scaling_factor",
                                       "num_nextn_predict_layers",
                                       "num_mtp_layers"});
constexpr FixedKey kV2Fixed[] = {{"mlp_bias", "false"}, {"scoring_func", "\"softmax\""}};
// The class never renormalizes; the rest are widths that follow from others.
constexpr std::string_view kV2Idle[] = {"norm_topk_prob", "head_dim", "qk_head_dim", "num_key_value_heads"};
constexpr std::string_view kV3Families[] = {"deepseek_v3"};
constexpr auto kV3Used = decoder_keys({"hidden_act",
                                       "attention_bias",
                                       "kv_lora_rank",
                                       "q_lora_rank",
                                       "qk_nope_head_dim",
                                       "qk_rope_head_dim",
                                       "v_head_dim",
                                       "first_k_dense_replace",
                                       "moe_layer_freq",
                                       "n_routed_experts",
                                       "num_local_experts",
                                       "n_shared_experts",
                                       "num_experts_per_tok",
                                       "moe_intermediate_size",
                                       "n_group",
                                       "topk_group",
                                       "norm_topk_prob",
                                       "routed_scaling_factor",
                                       "num_nextn_predict_layers",
                                       "num_mtp_layers",
                                       "rope_interleave"});
constexpr FixedKey kV3Fixed[] = {{"topk_method", "\"noaux_tc\""}, {"scoring_func", "\"sigmoid\""}};
// Widths that follow from others.
constexpr std::string_view kDeepseekIdle[] = {"head_dim", "qk_head_dim", "num_key_value_heads"};
constexpr std::string_view kVariants[] = {kTransformers, kTransformers4, kDeepseek};
// Kimi K2.5 and later: V3 under text_config, and a tower that no text meets.
constexpr std::string_view kK25Families[] = {"kimi_k25"};
constexpr std::string_view kK25Idle[] = {"head_dim",
                                         "qk_head_dim",
                                         "num_key_value_heads",
                                         "vision_config",
                                         "text_config",
                                         "ignore_index",
                                         "media_placeholder_token_id",
                                         "pruned_heads",
                                         "cross_attention_hidden_size",
                                         "use_unified_vision_chunk",
                                         "video_placeholder"};
constexpr std::string_view kV32Families[] = {"deepseek_v32"};
constexpr auto kV32Used = decoder_keys({"hidden_act",
                                        "attention_bias",
                                        "kv_lora_rank",
                                        "q_lora_rank",
                                        "qk_nope_head_dim",
                                        "qk_rope_head_dim",
                                        "v_head_dim",
                                        "first_k_dense_replace",
                                        "mlp_layer_types",
                                        "moe_layer_freq",
                                        "n_routed_experts",
                                        "num_experts",
                                        "num_local_experts",
                                        "n_shared_experts",
                                        "num_experts_per_tok",
                                        "moe_intermediate_size",
                                        "n_group",
                                        "topk_group",
                                        "norm_topk_prob",
                                        "routed_scaling_factor",
                                        "num_nextn_predict_layers",
                                        "num_mtp_layers",
                                        "index_n_heads",
                                        "index_head_dim",
                                        "index_topk"});
// Attention rotates pairs whatever the config says; what says otherwise was written for other code.
constexpr FixedKey kV32Fixed[] = {
    {"topk_method", "\"noaux_tc\""}, {"scoring_func", "\"sigmoid\""}, {"rope_interleave", "true"}};
constexpr std::string_view kIndexedIdle[] = {"head_dim", "qk_head_dim", "num_key_value_heads", "layer_types",
                                             "mlp_bias"};
constexpr std::string_view kGlmDsaFamilies[] = {"glm_moe_dsa"};
constexpr auto kGlmDsaUsed = decoder_keys({"hidden_act",
                                           "attention_bias",
                                           "kv_lora_rank",
                                           "q_lora_rank",
                                           "qk_nope_head_dim",
                                           "qk_rope_head_dim",
                                           "v_head_dim",
                                           "first_k_dense_replace",
                                           "mlp_layer_types",
                                           "n_routed_experts",
                                           "num_experts",
                                           "num_local_experts",
                                           "n_shared_experts",
                                           "num_experts_per_tok",
                                           "moe_intermediate_size",
                                           "n_group",
                                           "topk_group",
                                           "norm_topk_prob",
                                           "routed_scaling_factor",
                                           "num_nextn_predict_layers",
                                           "num_mtp_layers",
                                           "index_n_heads",
                                           "index_head_dim",
                                           "index_topk",
                                           "indexer_types",
                                           "index_topk_pattern",
                                           "index_topk_freq",
                                           "index_skip_topk_offset"});
constexpr FixedKey kGlmDsaFixed[] = {{"topk_method", "\"noaux_tc\""},
                                     {"scoring_func", "\"sigmoid\""},
                                     {"rope_interleave", "true"},
                                     {"indexer_rope_interleave", "true"},
                                     {"moe_layer_freq", "1"}};
std::unique_ptr<LanguageModel> make_axk2(const Weights& weights, const ModelOptions& options) {
  return make_deepseek(weights, options, {.masked_is_zero = true});
}
constexpr std::string_view kAxk2Families[] = {"axk2"};
constexpr auto kAxk2Used = decoder_keys({"hidden_act",
                                         "attention_bias",
                                         "kv_lora_rank",
                                         "q_lora_rank",
                                         "qk_nope_head_dim",
                                         "qk_rope_head_dim",
                                         "v_head_dim",
                                         "first_k_dense_replace",
                                         "mlp_layer_types",
                                         "moe_layer_freq",
                                         "n_routed_experts",
                                         "num_local_experts",
                                         "n_shared_experts",
                                         "num_experts_per_tok",
                                         "moe_intermediate_size",
                                         "n_group",
                                         "topk_group",
                                         "norm_topk_prob",
                                         "routed_scaling_factor",
                                         "index_n_heads",
                                         "index_head_dim",
                                         "index_topk",
                                         "gated_norm_rank"});
constexpr std::string_view kKinFamilies[] = {"glm4_moe_lite", "axk1"};
constexpr auto kKinUsed = decoder_keys({"hidden_act",
                                        "attention_bias",
                                        "kv_lora_rank",
                                        "q_lora_rank",
                                        "qk_nope_head_dim",
                                        "qk_rope_head_dim",
                                        "v_head_dim",
                                        "first_k_dense_replace",
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
                                        "num_nextn_predict_layers",
                                        "rope_interleave"});
constexpr FixedKey kKinFixed[] = {{"topk_method", "\"noaux_tc\""},
                                  {"scoring_func", "\"sigmoid\""},
                                  {"moe_layer_freq", "1"},
                                  {"partial_rotary_factor", "1.0"}};
constexpr std::string_view kYoutuFamilies[] = {"youtu"};
constexpr auto kYoutuUsed =
    decoder_keys({"hidden_act", "attention_bias", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim",
                  "qk_rope_head_dim", "v_head_dim", "rope_interleave"});
constexpr std::string_view kYoutuIdle[] = {"head_dim", "qk_head_dim", "num_key_value_heads", "mlp_bias",
                                           "embedding_initializer_range"};
constexpr std::string_view kMinicpm3Families[] = {"minicpm3"};
constexpr auto kMinicpm3Used = decoder_keys({"hidden_act", "attention_bias", "mlp_bias", "kv_lora_rank",
                                             "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                                             "v_head_dim", "scale_emb", "scale_depth", "dim_model_base"});

constexpr std::string_view kMistral4Families[] = {"mistral4"};
constexpr auto kMistral4Used = decoder_keys({"hidden_act",
                                             "attention_bias",
                                             "kv_lora_rank",
                                             "q_lora_rank",
                                             "qk_nope_head_dim",
                                             "qk_rope_head_dim",
                                             "v_head_dim",
                                             "first_k_dense_replace",
                                             "n_routed_experts",
                                             "num_local_experts",
                                             "n_shared_experts",
                                             "num_experts_per_tok",
                                             "moe_intermediate_size",
                                             "n_group",
                                             "topk_group",
                                             "norm_topk_prob",
                                             "routed_scaling_factor",
                                             "rope_interleave",
                                             "rope_scaling.llama_4_scaling_beta",
                                             "rope_parameters.llama_4_scaling_beta",
                                             "rope_parameters.max_position_embeddings"});

std::unique_ptr<LanguageModel> make_mistral_large3(const Weights& weights, const ModelOptions& options) {
  return make_deepseek(weights, options, {.softmax_router = true, .latents_as_others = true});
}
constexpr std::string_view kLarge3Families[] = {"mistral_large3"};
constexpr auto kLarge3Used = decoder_keys(
    {"attention_bias", "kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
     "first_k_dense_replace", "moe_layer_freq", "n_routed_experts", "n_shared_experts", "num_experts_per_tok",
     "moe_intermediate_size", "n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor",
     "rope_parameters.llama_4_scaling_beta", "rope_parameters.llama_4_scaling_floor"});
constexpr std::string_view kLarge3Idle[] = {"num_key_value_heads", "vision_config"};
constexpr FixedKey kLarge3Fixed[] = {{"hidden_act", "\"silu\""}};

}  // namespace

const ModelRule kMistralLarge3Rule = {
    kLarge3Families, {}, {kLarge3Used, kLarge3Idle, kLarge3Fixed}, make_mistral_large3};
const ModelRule kDeepseekV2Rule = {kV2Families, kVariants, {kV2Used, kV2Idle, kV2Fixed}, make_plain};
const ModelRule kDeepseekV3Rule = {kV3Families, kVariants, {kV3Used, kDeepseekIdle, kV3Fixed}, make_plain};
const ModelRule kDeepseekV32Rule = {kV32Families, {}, {kV32Used, kIndexedIdle, kV32Fixed}, make_plain};
const ModelRule kAxk2Rule = {kAxk2Families, {}, {kAxk2Used, kIndexedIdle, kV32Fixed}, make_axk2};
const ModelRule kGlmMoeDsaRule = {
    kGlmDsaFamilies, {}, {kGlmDsaUsed, kIndexedIdle, kGlmDsaFixed}, make_with_paired_indexer};
const ModelRule kKimiK25Rule = {kK25Families, kVariants, {kV3Used, kK25Idle, kV3Fixed}, make_plain};
const ModelRule kLatentKinRule = {kKinFamilies, {}, {kKinUsed, kDeepseekIdle, kKinFixed}, make_plain};
const ModelRule kYoutuRule = {kYoutuFamilies, {}, {kYoutuUsed, kYoutuIdle}, make_plain};
const ModelRule kMistral4Rule = {
    kMistral4Families, {}, {kMistral4Used, kDeepseekIdle}, make_with_softmax_router};
const ModelRule kMinicpm3Rule = {kMinicpm3Families, {}, {kMinicpm3Used, kDeepseekIdle}, make_plain};

}  // namespace assay
