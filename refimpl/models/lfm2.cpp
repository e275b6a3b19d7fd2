// LFM2 (Liquid AI): gated short convolutions in most layers, in the others attention with normed heads.
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_lfm2(const Weights& weights, const ModelOptions&) {
  return make_decoder(weights, {});
}

// The router: sigmoids, a bias for the choice alone.
std::unique_ptr<LanguageModel> make_lfm2_moe(const Weights& weights, const ModelOptions& options) {
  return make_decoder(weights, {.gate = {.score = GateRule::Score::sigmoid,
                                         .epsilon = 1e-6,
                                         .scale = hyperparameters(weights.tree()).routing.scale,
                                         .rounding = ResultRounding::as_arithmetic},
                                .moe = options.moe});
}

constexpr std::string_view kLfm2Families[] = {"lfm2"};
constexpr std::string_view kLfm2Used[] = {"vocab_size",
                                          "hidden_size",
                                          "intermediate_size",
                                          "num_hidden_layers",
                                          "num_attention_heads",
                                          "num_key_value_heads",
                                          "head_dim",
                                          "norm_eps",
                                          "max_position_embeddings",
                                          "original_max_position_embeddings",
                                          "rope_theta",
                                          "rope_scaling",
                                          "rope_parameters",
                                          "tie_word_embeddings",
                                          "tie_embedding",
                                          "conv_bias",
                                          "conv_L_cache",
                                          "block_ff_dim",
                                          "block_multiple_of",
                                          "block_ffn_dim_multiplier",
                                          "block_auto_adjust_ff_dim",
                                          "full_attn_idxs",
                                          "layer_types"};
// Published beside the keys that count; the class does not know them.
constexpr std::string_view kLfm2Idle[] = {"block_dim",      "block_mlp_init_scale", "block_out_init_scale",
                                          "block_norm_eps", "block_use_swiglu",     "block_use_xavier_init",
                                          "conv_dim",       "conv_dim_out",         "conv_use_xavier_init",
                                          "num_heads",      "use_pos_enc",          "eos_token_ids",
                                          "theta",          "initializer_range"};

constexpr std::string_view kLfm2MoeFamilies[] = {"lfm2_moe"};
constexpr std::string_view kLfm2MoeUsed[] = {"vocab_size",
                                             "hidden_size",
                                             "intermediate_size",
                                             "moe_intermediate_size",
                                             "num_hidden_layers",
                                             "num_attention_heads",
                                             "num_key_value_heads",
                                             "head_dim",
                                             "norm_eps",
                                             "max_position_embeddings",
                                             "original_max_position_embeddings",
                                             "rope_theta",
                                             "rope_scaling",
                                             "rope_parameters",
                                             "tie_word_embeddings",
                                             "tie_embedding",
                                             "conv_bias",
                                             "conv_L_cache",
                                             "num_dense_layers",
                                             "num_experts",
                                             "num_experts_per_tok",
                                             "use_expert_bias",
                                             "norm_topk_prob",
                                             "routed_scaling_factor",
                                             "layer_types"};

}  // namespace

const ModelRule kLfm2MoeRule = {kLfm2MoeFamilies, {}, {kLfm2MoeUsed, kLfm2Idle}, make_lfm2_moe};
const ModelRule kLfm2Rule = {kLfm2Families, {}, {kLfm2Used, kLfm2Idle}, make_lfm2};

}  // namespace assay
