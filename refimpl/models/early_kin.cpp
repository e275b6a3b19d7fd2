// Decoders of 2018 to 2022 that make_decoder() computes as it is told. Sources: their classes of transformers 5.19.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr std::string_view kBiogpt[] = {"biogpt"};
constexpr DecoderForm kBiogptForm = {.norm_kind = NormKind::layer, .position_offset = 2};
constexpr std::string_view kBiogptUsed[] = {
    "vocab_size",          "hidden_size",       "num_hidden_layers",
    "num_attention_heads", "intermediate_size", "max_position_embeddings",
    "hidden_act",          "scale_embedding",   "tie_word_embeddings"};
constexpr std::string_view kBiogptIdle[] = {"layer_norm_eps", "layerdrop", "activation_dropout"};

constexpr std::string_view kCodegen[] = {"codegen"};
constexpr DecoderForm kCodegenForm = {
    .norm_kind = NormKind::layer, .branches_first = true, .attention = {.fused_groups = 4}};
constexpr std::string_view kCodegenUsed[] = {"vocab_size",
                                             "n_positions",
                                             "max_position_embeddings",
                                             "n_embd",
                                             "hidden_size",
                                             "n_layer",
                                             "num_hidden_layers",
                                             "n_head",
                                             "num_attention_heads",
                                             "n_inner",
                                             "activation_function",
                                             "layer_norm_epsilon",
                                             "rotary_dim",
                                             "tie_word_embeddings"};
constexpr std::string_view kCodegenIdle[] = {"scale_attn_weights", "gradient_checkpointing"};

// Norms within layers keep an epsilon of 1e-6, whatever the last one's is.
constexpr std::string_view kCtrl[] = {"ctrl"};
constexpr DecoderForm kCtrlForm = {.norm_kind = NormKind::layer, .sines = SineForm::ctrl};
constexpr std::string_view kCtrlUsed[] = {"vocab_size",
                                          "n_positions",
                                          "max_position_embeddings",
                                          "n_embd",
                                          "hidden_size",
                                          "n_layer",
                                          "n_head",
                                          "dff",
                                          "num_hidden_layers",
                                          "num_attention_heads",
                                          "tie_word_embeddings"};
constexpr FixedKey kCtrlFixed[] = {{"layer_norm_epsilon", "1e-6"}};

constexpr std::string_view kGptNeo[] = {"gpt_neo"};
constexpr DecoderForm kGptNeoForm = {.norm_kind = NormKind::layer};
constexpr std::string_view kGptNeoUsed[] = {
    "vocab_size",         "hidden_size",         "num_layers",          "num_hidden_layers",
    "num_heads",          "num_attention_heads", "intermediate_size",   "max_position_embeddings",
    "attention_types",    "window_size",         "activation_function", "layer_norm_epsilon",
    "tie_word_embeddings"};
constexpr std::string_view kGptNeoIdle[] = {"attention_layers", "resid_dropout"};  // made of attention_types

constexpr std::string_view kJapanese[] = {"gpt_neox_japanese"};
constexpr DecoderForm kJapaneseForm = {.norm_kind = NormKind::layer,
                                       .attention = {.fused_by_key_head = true}};
constexpr std::string_view kJapaneseUsed[] = {
    "vocab_size", "hidden_size",     "num_hidden_layers",       "num_attention_heads",
    "hidden_act", "layer_norm_eps",  "max_position_embeddings", "original_max_position_embeddings",
    "rope_theta", "rope_scaling",    "rope_parameters",         "intermediate_multiple_size",
    "rotary_pct", "rotary_emb_base", "tie_word_embeddings"};
constexpr std::string_view kJapaneseIdle[] = {"head_dim"};

constexpr std::string_view kOpenaiGpt[] = {"openai_gpt"};
constexpr DecoderForm kOpenaiForm = {.norm_kind = NormKind::layer, .norms_behind_sums = true};
constexpr std::string_view kOpenaiUsed[] = {"vocab_size",
                                            "n_positions",
                                            "max_position_embeddings",
                                            "n_embd",
                                            "hidden_size",
                                            "n_layer",
                                            "n_head",
                                            "afn",
                                            "num_hidden_layers",
                                            "num_attention_heads",
                                            "layer_norm_epsilon",
                                            "tie_word_embeddings"};
constexpr std::string_view kOpenaiIdle[] = {"n_special", "predict_special_tokens"};

constexpr std::string_view kXglm[] = {"xglm"};
constexpr std::string_view kXglmUsed[] = {"vocab_size",          "d_model",
                                          "hidden_size",         "num_layers",
                                          "num_hidden_layers",   "attention_heads",
                                          "num_attention_heads", "ffn_dim",
                                          "activation_function", "max_position_embeddings",
                                          "scale_embedding",     "pad_token_id",
                                          "tie_word_embeddings"};
constexpr std::string_view kXglmIdle[] = {"dropout", "activation_dropout", "layerdrop", "init_std"};

// The table's row of the padding token is zero; texts begin at row 2.
std::unique_ptr<LanguageModel> make_xglm(const Weights& weights, const ModelOptions& options) {
  ConfigReader config(weights.config(), "XGLM");
  DecoderForm form = {
      .norm_kind = NormKind::layer, .position_offset = 2, .sines = SineForm::fairseq, .silent_position = 1};
  if (config.is_null("pad_token_id"))
    form.silent_position.reset();
  else
    form.silent_position = config.number("pad_token_id", 1);
  return make_kin_as(form, weights, options);
}

constexpr ModelRule kEarlyRules[] = {
    {kBiogpt, {}, {kBiogptUsed, kBiogptIdle}, make_kin<kBiogptForm>},
    {kCodegen, {}, {kCodegenUsed, kCodegenIdle}, make_whole_kin<kCodegenForm>},
    {kCtrl, {}, {kCtrlUsed, {}, kCtrlFixed}, make_kin<kCtrlForm>},
    {kGptNeo, {}, {kGptNeoUsed, kGptNeoIdle}, make_kin<kGptNeoForm>},
    {kJapanese, {}, {kJapaneseUsed, kJapaneseIdle}, make_kin<kJapaneseForm>},
    {kOpenaiGpt, {}, {kOpenaiUsed, kOpenaiIdle}, make_kin<kOpenaiForm>},
    {kXglm, {}, {kXglmUsed, kXglmIdle}, make_xglm}};

}  // namespace

std::span<const ModelRule> early_kin_rules() {
  return kEarlyRules;
}

}  // namespace assay
