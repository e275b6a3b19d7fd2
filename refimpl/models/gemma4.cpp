// Gemma 4's text: norms before and after attention and MLP, scores as they are, values normed as well; layers that see
// all have wider heads of which a quarter of the pairs turns, take keys for values in 31B and 26B-A4B, and at the end
// of E2B and E4B read the cache of earlier ones. E2B and E4B add an embedding of each layer's own, 26B-A4B has experts
// beside every dense MLP. Source: transformers 5.23.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr DecoderForm kGemma4Form = {.norm = NormForm::weight_inside,
                                     .rounded_embedding_scale = true,
                                     .attention = {.unit_values = true},
                                     .gate = {.rounding = ResultRounding::float32}};
constexpr std::string_view kGemma4Families[] = {"gemma4", "gemma4_unified"};
constexpr std::string_view kGemma4Used[] = {"vocab_size",
                                            "vocab_size_per_layer_input",
                                            "hidden_size",
                                            "hidden_size_per_layer_input",
                                            "intermediate_size",
                                            "moe_intermediate_size",
                                            "use_double_wide_mlp",
                                            "num_hidden_layers",
                                            "num_attention_heads",
                                            "num_key_value_heads",
                                            "num_global_key_value_heads",
                                            "num_kv_shared_layers",
                                            "head_dim",
                                            "global_head_dim",
                                            "attention_k_eq_v",
                                            "attention_bias",
                                            "hidden_activation",
                                            "rms_norm_eps",
                                            "max_position_embeddings",
                                            "rope_parameters",
                                            "tie_word_embeddings",
                                            "sliding_window",
                                            "layer_types",
                                            "final_logit_softcapping",
                                            "use_bidirectional_attention",
                                            "enable_moe_block",
                                            "num_experts",
                                            "top_k_experts",
                                            "num_experts_per_tok"};

// What other classes make rope_parameters of.
constexpr std::string_view kGemma4Idle[] = {"rope_theta", "original_max_position_embeddings"};
constexpr FixedKey kGemma4Fixed[] = {{"rope_scaling", "null"}};

}  // namespace

const ModelRule kGemma4Rule = {
    kGemma4Families, {}, {kGemma4Used, kGemma4Idle, kGemma4Fixed}, make_kin<kGemma4Form>};

}  // namespace assay
