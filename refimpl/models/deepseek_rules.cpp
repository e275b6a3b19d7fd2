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
constexpr auto kV2Used = decoder_keys({"hidden_act", "moe_layer_freq", "num_experts", "num_local_experts",
                                       "topk_method", "num_nextn_predict_layers", "num_mtp_layers"},
                                      kLatentKeys, kDeepseekMixtureKeys);
constexpr FixedKey kV2Fixed[] = {{"mlp_bias", "false"}, {"scoring_func", "\"softmax\""}};
// The class never renormalizes; the rest are widths that follow from others.
constexpr std::string_view kV2Idle[] = {"norm_topk_prob", "head_dim", "qk_head_dim", "num_key_value_heads"};
constexpr std::string_view kV3Families[] = {"deepseek_v3"};
constexpr auto kV3Used = decoder_keys({"hidden_act", "moe_layer_freq", "num_local_experts", "norm_topk_prob",
                                       "num_nextn_predict_layers", "num_mtp_layers", "rope_interleave"},
                                      kLatentKeys, kDeepseekMixtureKeys);
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
constexpr auto kV32Used =
    decoder_keys({"hidden_act", "mlp_layer_types", "moe_layer_freq", "num_experts", "num_local_experts",
                  "norm_topk_prob", "num_nextn_predict_layers", "num_mtp_layers"},
                 kLatentKeys, kDeepseekMixtureKeys, kIndexerKeys);
// Attention rotates pairs whatever the config says; what says otherwise was written for other code.
constexpr FixedKey kV32Fixed[] = {
    {"topk_method", "\"noaux_tc\""}, {"scoring_func", "\"sigmoid\""}, {"rope_interleave", "true"}};
constexpr std::string_view kIndexedIdle[] = {"head_dim", "qk_head_dim", "num_key_value_heads", "layer_types",
                                             "mlp_bias"};
constexpr std::string_view kGlmDsaFamilies[] = {"glm_moe_dsa"};
constexpr auto kGlmDsaUsed =
    decoder_keys({"hidden_act", "mlp_layer_types", "num_experts", "num_local_experts", "norm_topk_prob",
                  "num_nextn_predict_layers", "num_mtp_layers", "indexer_types", "index_topk_pattern",
                  "index_topk_freq", "index_skip_topk_offset"},
                 kLatentKeys, kDeepseekMixtureKeys, kIndexerKeys);
constexpr FixedKey kGlmDsaFixed[] = {{"topk_method", "\"noaux_tc\""},
                                     {"scoring_func", "\"sigmoid\""},
                                     {"rope_interleave", "true"},
                                     {"indexer_rope_interleave", "true"},
                                     {"moe_layer_freq", "1"}};
std::unique_ptr<LanguageModel> make_axk2(const Weights& weights, const ModelOptions& options) {
  return make_deepseek(weights, options, {.masked_is_zero = true});
}
constexpr std::string_view kAxk2Families[] = {"axk2"};
constexpr auto kAxk2Used = decoder_keys({"hidden_act", "mlp_layer_types", "moe_layer_freq",
                                         "num_local_experts", "norm_topk_prob", "gated_norm_rank"},
                                        kLatentKeys, kDeepseekMixtureKeys, kIndexerKeys);
constexpr std::string_view kKinFamilies[] = {"glm4_moe_lite", "axk1"};
constexpr auto kKinUsed = decoder_keys({"hidden_act", "mlp_layer_types", "num_local_experts",
                                        "norm_topk_prob", "num_nextn_predict_layers", "rope_interleave"},
                                       kLatentKeys, kDeepseekMixtureKeys);
constexpr FixedKey kKinFixed[] = {{"topk_method", "\"noaux_tc\""},
                                  {"scoring_func", "\"sigmoid\""},
                                  {"moe_layer_freq", "1"},
                                  {"partial_rotary_factor", "1.0"}};
constexpr std::string_view kYoutuFamilies[] = {"youtu"};
constexpr auto kYoutuUsed = decoder_keys({"hidden_act", "rope_interleave"}, kLatentKeys);
constexpr std::string_view kYoutuIdle[] = {"head_dim", "qk_head_dim", "num_key_value_heads", "mlp_bias",
                                           "embedding_initializer_range"};
constexpr std::string_view kMinicpm3Families[] = {"minicpm3"};
constexpr auto kMinicpm3Used =
    decoder_keys({"hidden_act", "mlp_bias", "scale_emb", "scale_depth", "dim_model_base"}, kLatentKeys);

constexpr std::string_view kMistral4Families[] = {"mistral4"};
constexpr auto kMistral4Used =
    decoder_keys({"hidden_act", "num_local_experts", "norm_topk_prob", "rope_interleave",
                  "rope_scaling.llama_4_scaling_beta", "rope_parameters.llama_4_scaling_beta",
                  "rope_parameters.max_position_embeddings"},
                 kLatentKeys, kDeepseekMixtureKeys);

std::unique_ptr<LanguageModel> make_mistral_large3(const Weights& weights, const ModelOptions& options) {
  return make_deepseek(weights, options, {.softmax_router = true, .latents_as_others = true});
}
constexpr std::string_view kLarge3Families[] = {"mistral_large3"};
constexpr auto kLarge3Used =
    decoder_keys({"moe_layer_freq", "norm_topk_prob", "rope_parameters.llama_4_scaling_beta",
                  "rope_parameters.llama_4_scaling_floor"},
                 kLatentKeys, kDeepseekMixtureKeys);
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
