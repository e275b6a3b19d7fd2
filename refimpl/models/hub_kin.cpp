// Decoders of the hub whose code stands beside their weights, as make_decoder() computes them: a DecoderForm each, and the keys
// of config.json that it and the tree use. Source: that code.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

// BAGEL's understanding half: a Qwen2, with norms of queries and keys where qk_norm says so.
constexpr std::string_view kBagel[] = {"bagel"};
constexpr DecoderForm kBagelForm = {};
constexpr auto kBagelUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "qk_norm", "layer_module"});
constexpr std::string_view kBagelIdle[] = {"max_window_layers", "sliding_window", "freeze_und"};
constexpr FixedKey kBagelFixed[] = {{"use_sliding_window", "false"}};

constexpr std::string_view kMinimind[] = {"minimind"};
constexpr DecoderForm kMinimindForm = {.norm = NormForm::weight_inside,
                                       .gate = {.epsilon = 1e-20, .rounding = ResultRounding::as_arithmetic}};
constexpr auto kMinimindUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "use_moe", "num_experts",
              "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob"});
constexpr std::string_view kMinimindIdle[] = {"flash_attn", "dropout", "router_aux_loss_coef"};
constexpr FixedKey kMinimindFixed[] = {{"inference_rope_scaling", "false"}, {"rope_scaling", "null"}};

constexpr std::string_view kOpenelm[] = {"openelm"};
constexpr DecoderForm kOpenelmForm = {};
constexpr std::string_view kOpenelmUsed[] = {"vocab_size",
                                             "model_dim",
                                             "hidden_size",
                                             "num_transformer_layers",
                                             "num_hidden_layers",
                                             "head_dim",
                                             "num_query_heads",
                                             "num_kv_heads",
                                             "ffn_multipliers",
                                             "ffn_dim_divisor",
                                             "ffn_with_glu",
                                             "normalize_qk_projections",
                                             "share_input_output_layers",
                                             "activation_fn_name",
                                             "rope_freq_constant",
                                             "max_context_length"};
constexpr std::string_view kOpenelmIdle[] = {"num_gqa_groups", "qkv_multipliers", "rope_max_length"};
constexpr FixedKey kOpenelmFixed[] = {{"normalization_layer_name", "\"rms_norm\""}};

constexpr ModelRule kHubRules[] = {
    {kBagel, {}, {kBagelUsed, kBagelIdle, kBagelFixed}, make_kin<kBagelForm>},
    {kMinimind, {}, {kMinimindUsed, kMinimindIdle, kMinimindFixed}, make_kin<kMinimindForm>},
    {kOpenelm, {}, {kOpenelmUsed, kOpenelmIdle, kOpenelmFixed}, make_kin<kOpenelmForm>}};

}  // namespace

std::span<const ModelRule> hub_kin_rules() {
  return kHubRules;
}

}  // namespace assay
