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

// JAIS 1: GPT-2 with linear biases, a gated unit and factors.
constexpr std::string_view kJais[] = {"jais"};
constexpr DecoderForm kJaisForm = {.norm_kind = NormKind::layer, .rounded_embedding_scale = true};
constexpr std::string_view kJaisUsed[] = {"vocab_size",
                                          "n_embd",
                                          "hidden_size",
                                          "n_layer",
                                          "num_hidden_layers",
                                          "n_head",
                                          "num_attention_heads",
                                          "n_inner",
                                          "intermediate_size",
                                          "n_positions",
                                          "max_position_embeddings",
                                          "activation_function",
                                          "layer_norm_epsilon",
                                          "position_embedding_type",
                                          "embeddings_scale",
                                          "mup_embeddings_scale",
                                          "width_scale",
                                          "mup_output_alpha",
                                          "mup_width_scale",
                                          "scale_qk_dot_by_d",
                                          "mup_scale_qk_dot_by_d",
                                          "tie_word_embeddings"};
constexpr std::string_view kJaisIdle[] = {"reorder_and_upcast_attn"};
constexpr FixedKey kJaisFixed[] = {{"alibi_scaling", "null"},
                                   {"scale_attn_weights", "true"},
                                   {"scale_attn_by_inverse_layer_idx", "false"},
                                   {"add_cross_attention", "false"}};

constexpr std::string_view kMinimind[] = {"minimind"};
constexpr DecoderForm kMinimindForm = {.norm = NormForm::weight_inside,
                                       .gate = {.epsilon = 1e-20, .rounding = ResultRounding::as_arithmetic}};
constexpr auto kMinimindUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "use_moe", "num_experts",
              "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob"});
constexpr std::string_view kMinimindIdle[] = {"flash_attn", "dropout", "router_aux_loss_coef"};
constexpr FixedKey kMinimindFixed[] = {{"inference_rope_scaling", "false"}, {"rope_scaling", "null"}};

// Motif 2.6B: differential attention of pairs of heads, PolyNorm.
constexpr std::string_view kMotif[] = {"motif"};
constexpr auto kMotifUsed = kin_keys(
    {"rms_norm_eps", "attn_rms_norm_eps", "num_key_value_heads", "head_dim", "use_bias", "attention_bias"});
constexpr std::string_view kMotifIdle[] = {"max_window_layers"};
constexpr FixedKey kMotifFixed[] = {
    {"use_sliding_window", "false"}, {"sliding_window", "null"}, {"wesar_weights", "false"}};
std::unique_ptr<LanguageModel> make_motif(const Weights& weights, const ModelOptions& options) {
  require_all_heads(weights);
  ConfigReader config(weights.config(), "Motif");
  const double epsilon = config.real("attn_rms_norm_eps", 1e-5, 0, 1);
  return make_kin_as(
      {.poly_norm = true, .attention = {.differential = DifferentialForm{.pairs = true, .epsilon = epsilon}}},
      weights, options);
}

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

// Phi-3-small: blocks of the text in most layers, a unit of clamped gates and of ups of which 1 is more, factors of embedding,
// scores and logits.
constexpr std::string_view kPhi3Small[] = {"phi3small"};
constexpr std::string_view kPhi3SmallUsed[] = {"vocab_size",
                                               "hidden_size",
                                               "ff_intermediate_size",
                                               "intermediate_size",
                                               "ff_dim_multiplier",
                                               "num_hidden_layers",
                                               "num_attention_heads",
                                               "num_key_value_heads",
                                               "max_position_embeddings",
                                               "hidden_act",
                                               "gegelu_limit",
                                               "layer_norm_epsilon",
                                               "rope_embedding_base",
                                               "rope_position_scale",
                                               "mup_use_scaling",
                                               "mup_attn_multiplier",
                                               "mup_embedding_multiplier",
                                               "mup_width_multiplier",
                                               "dense_attention_every_n_layers",
                                               "blocksparse_block_size",
                                               "blocksparse_num_local_blocks",
                                               "blocksparse_vert_stride",
                                               "blocksparse_homo_head_pattern",
                                               "tie_word_embeddings"};
// Of kernels; and logits that the authors' code sets to -∞ (docs/models.md).
constexpr std::string_view kPhi3SmallIdle[] = {"blocksparse_triton_kernel_block_size",
                                               "gegelu_pad_to_256",
                                               "dummy_token_indices",
                                               "embedding_dropout_prob",
                                               "ffn_dropout_prob",
                                               "attention_dropout_prob"};
constexpr FixedKey kPhi3SmallFixed[] = {{"rope_scaling", "null"}};
std::unique_ptr<LanguageModel> make_phi3_small(const Weights& weights, const ModelOptions& options) {
  require_all_heads(weights);
  ConfigReader config(weights.config(), "Phi-3-small");
  const auto count = [&](std::string_view key, std::size_t otherwise) {
    const Quantity size = config.size(key, otherwise);
    config.require(size.value() <= 1'000'000, std::string(key) + " is beyond any text");
    return size.value();
  };
  const BlockPattern blocks = {
      .block = count("blocksparse_block_size", 64),
      .local = count("blocksparse_num_local_blocks", 16),
      .stride = count("blocksparse_vert_stride", 8),
      .alike = config.flag("blocksparse_homo_head_pattern", false),
      .dense_every = config.optional_number("dense_attention_every_n_layers", 2).value_or(0)};
  const double limit = hyperparameters(weights.tree()).activation_limit;
  return make_kin_as({.norm_kind = NormKind::layer,
                      .mlp = GatedActivation{Activation::gpt_oss, limit},
                      .alternating = true,
                      .attention = {.fused_by_key_head = true, .blocks = blocks}},
                     weights, options);
}

// A Llama, or a Mixtral, whose heads rotate in pairs; of what sees and hears the text alone.
constexpr std::string_view kMistralNative[] = {"mistral_native"};
constexpr DecoderForm kMistralNativeForm = {.gate = {.rounding = ResultRounding::float32}};
constexpr auto kMistralNativeUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "sliding_window", "layer_types", "num_local_experts",
     "num_experts_per_tok", "rope_parameters.llama_4_scaling_beta", "rope_parameters.llama_4_scaling_floor"});
constexpr std::string_view kMistralNativeIdle[] = {"vision_config", "audio_config"};

constexpr ModelRule kHubRules[] = {
    {kMistralNative, {}, {kMistralNativeUsed, kMistralNativeIdle}, make_kin<kMistralNativeForm>},
    {kBagel, {}, {kBagelUsed, kBagelIdle, kBagelFixed}, make_kin<kBagelForm>},
    {kMotif, {}, {kMotifUsed, kMotifIdle, kMotifFixed}, make_motif},
    {kJais, {}, {kJaisUsed, kJaisIdle, kJaisFixed}, make_kin<kJaisForm>},
    {kPhi3Small, {}, {kPhi3SmallUsed, kPhi3SmallIdle, kPhi3SmallFixed}, make_phi3_small},
    {kMinimind, {}, {kMinimindUsed, kMinimindIdle, kMinimindFixed}, make_kin<kMinimindForm>},
    {kOpenelm, {}, {kOpenelmUsed, kOpenelmIdle, kOpenelmFixed}, make_kin<kOpenelmForm>}};

}  // namespace

std::span<const ModelRule> hub_kin_rules() {
  return kHubRules;
}

}  // namespace assay
