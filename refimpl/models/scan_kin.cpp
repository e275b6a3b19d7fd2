// Decoders some of whose layers keep a state: MiniMax-01 and M1 (lightning attention), RecurrentGemma. Sources: their
// classes of transformers 5.19, and the keys of MiniMax's published configs.
#include "refimpl/models/activation_name.h"
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr std::string_view kMinimax[] = {"minimax"};
constexpr auto kMinimaxUsed = kin_keys({"rms_norm_eps",
                                        "num_key_value_heads",
                                        "head_dim",
                                        "rotary_dim",
                                        "layer_types",
                                        "attn_type_list",
                                        "block_size",
                                        "sliding_window",
                                        "num_local_experts",
                                        "num_experts",
                                        "num_experts_per_tok",
                                        "full_attn_alpha_factor",
                                        "full_attn_beta_factor",
                                        "linear_attn_alpha_factor",
                                        "linear_attn_beta_factor",
                                        "mlp_alpha_factor",
                                        "mlp_beta_factor",
                                        "layernorm_full_attention_alpha",
                                        "layernorm_full_attention_beta",
                                        "layernorm_linear_attention_alpha",
                                        "layernorm_linear_attention_beta",
                                        "layernorm_mlp_alpha",
                                        "layernorm_mlp_beta"});
constexpr std::string_view kMinimaxIdle[] = {"shared_moe_mode"};  // of the shared expert, which is not there
constexpr FixedKey kMinimaxFixed[] = {{"postnorm", "true"}, {"shared_intermediate_size", "0"}};

std::unique_ptr<LanguageModel> make_minimax(const Weights& weights, const ModelOptions& options) {
  ConfigReader config(weights.config(), "MiniMax-01");
  config.require(!config.has("sliding_window") || config.is_null("sliding_window"),
                 "sliding_window is set: MiniMax-01 with a window is not computed here");
  const auto shares = [&](std::string_view alpha, std::string_view beta) {
    return StreamShares{config.real(alpha, 1, -1e6, 1e6), config.real(beta, 1, -1e6, 1e6)};
  };
  DecoderForm form = {.gate = {.rounding = ResultRounding::float32}};
  form.recurrent.scan = options.scan;
  form.recurrent.heads_in_turn = true;
  form.recurrent.activation = activation_of(weights);
  form.normed_stream =
      NormedStream{shares("full_attn_alpha_factor|layernorm_full_attention_alpha",
                          "full_attn_beta_factor|layernorm_full_attention_beta"),
                   shares("linear_attn_alpha_factor|layernorm_linear_attention_alpha",
                          "linear_attn_beta_factor|layernorm_linear_attention_beta"),
                   shares("mlp_alpha_factor|layernorm_mlp_alpha", "mlp_beta_factor|layernorm_mlp_beta")};
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kLfm3[] = {"lfm3"};
constexpr DecoderForm kLfm3Form = {.mlp = GatedActivation{.activation = Activation::silu}};
constexpr std::string_view kLfm3Used[] = {"vocab_size",
                                          "hidden_size",
                                          "intermediate_size",
                                          "num_hidden_layers",
                                          "num_attention_heads",
                                          "num_key_value_heads",
                                          "head_dim",
                                          "norm_eps",
                                          "rms_norm_eps",
                                          "max_position_embeddings",
                                          "original_max_position_embeddings",
                                          "rope_theta",
                                          "rope_scaling",
                                          "rope_parameters",
                                          "tie_word_embeddings",
                                          "attention_bias",
                                          "conv_bias",
                                          "conv_L_cache",
                                          "layer_types",
                                          "sliding_window",
                                          "use_sandwich_norm",
                                          "use_attention_gate"};

constexpr std::string_view kRecurrentGemma[] = {"recurrent_gemma"};
constexpr std::string_view kRecurrentGemmaUsed[] = {
    "vocab_size",         "hidden_size",           "intermediate_size",
    "num_hidden_layers",  "num_attention_heads",   "num_key_value_heads",
    "lru_width",          "attention_window_size", "sliding_window",
    "conv1d_width",       "logits_soft_cap",       "rms_norm_eps",
    "hidden_activation",  "partial_rotary_factor", "original_max_position_embeddings",
    "rope_theta",         "rope_scaling",          "rope_parameters",
    "block_types",        "_block_types",          "attention_bias",
    "tie_word_embeddings"};
constexpr std::string_view kRecurrentGemmaIdle[] = {"w_init_variance_scale",
                                                    "final_w_init_variance_scale",
                                                    "embeddings_scale_by_sqrt_dim",
                                                    "head_dim",
                                                    "max_position_embeddings",
                                                    "layers_block_type",
                                                    "layer_types"};

std::unique_ptr<LanguageModel> make_recurrent_gemma(const Weights& weights, const ModelOptions& options) {
  DecoderForm form = {.norm = NormForm::one_plus_weight};
  form.recurrent.scan = options.scan;
  form.recurrent.activation = activation_of(weights);
  return make_kin_as(form, weights, options);
}

constexpr ModelRule kScanRules[] = {
    {kMinimax, {}, {kMinimaxUsed, kMinimaxIdle, kMinimaxFixed}, make_minimax},
    {kLfm3, {}, {kLfm3Used}, make_kin<kLfm3Form>},
    {kRecurrentGemma, {}, {kRecurrentGemmaUsed, kRecurrentGemmaIdle}, make_recurrent_gemma}};

}  // namespace

std::span<const ModelRule> scan_kin_rules() {
  return kScanRules;
}

}  // namespace assay
