// Decoders described in 2026 that make_decoder() computes with a word more. Sources: their classes of transformers 5.19.
#include <nlohmann/json.hpp>

#include "refimpl/models/activation_name.h"
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr std::string_view kAria[] = {"aria_text"};
constexpr DecoderForm kAriaForm = {.experts_activation = Activation::silu,
                                   .gate = {.top_k_first = true, .rounding = ResultRounding::as_arithmetic}};
constexpr auto kAriaUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
                                     "mlp_bias", "moe_num_experts", "moe_topk", "moe_num_shared_experts"});

// A norm of what goes into o and down. The ternary weights of a published model are another way to compute its
// matrices: with activations in eight bits.
constexpr std::string_view kBitnet[] = {"bitnet"};
constexpr auto kBitnetUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias"});

std::unique_ptr<LanguageModel> make_bitnet(const Weights& weights, const ModelOptions& options) {
  const ParsedJson& config = weights.config().text();
  const auto stored = config.find("quantization_config");
  if (stored != config.end() && stored->is_object() && stored->value("quant_method", "") == "bitnet")
    throw Error::input(
        "quantization_config.quant_method is \"bitnet\": ternary weights with activations in 8 bits are not "
        "computed here")
        .in(weights.config().source());
  require_all_heads(weights);
  return make_kin_as({}, weights, options);
}

constexpr std::string_view kCompass[] = {"cohere_compass"};
constexpr DecoderForm kCompassForm = {.norm_kind = NormKind::layer};
constexpr auto kCompassUsed = kin_keys({"layer_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
                                        "logit_scale", "sliding_window", "layer_types"});
constexpr std::string_view kCompassIdle[] = {"pooling", "sliding_window_pattern"};

constexpr std::string_view kDiffllama[] = {"diffllama"};
constexpr DecoderForm kDiffllamaForm = {.attention = {.differential = DifferentialForm{}}};
constexpr auto kDiffllamaUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias"});
constexpr std::string_view kDiffllamaIdle[] = {"lambda_std_dev"};

constexpr std::string_view kEmu3[] = {"emu3"};
constexpr DecoderForm kEmu3Form = {};
constexpr auto kEmu3Used =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias"});

constexpr std::string_view kFlint[] = {"flint"};
constexpr DecoderForm kFlintForm = {
    .norm = NormForm::weight_inside,
    .gate = {.score = GateRule::Score::sigmoid, .rounding = ResultRounding::float32},
    .router_rounding = ResultRounding::float32};
constexpr auto kFlintUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "sliding_window", "layer_types",
     "decoder_sparse_step", "mlp_only_layers", "num_experts", "num_local_experts", "num_experts_per_tok",
     "moe_intermediate_size", "shared_expert_intermediate_size", "norm_topk_prob"});

constexpr std::string_view kGraniteSwa[] = {"granite_swa"}, kGraniteMoeSwa[] = {"granitemoe_swa"};
constexpr DecoderForm kGraniteMoeSwaForm = {
    .gate = {.top_k_first = true, .rounding = ResultRounding::as_arithmetic}};
constexpr auto kGraniteSwaUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias",
              "embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier",
              "sliding_window", "layer_types", "layer_rope_theta"});
constexpr auto kGraniteMoeSwaUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "embedding_multiplier",
     "logits_scaling", "residual_multiplier", "attention_multiplier", "sliding_window", "layer_types",
     "layer_rope_theta", "num_local_experts", "num_experts_per_tok", "shared_intermediate_size"});

constexpr std::string_view kKolibri[] = {"kolibri1"};
constexpr DecoderForm kKolibriForm = {.router_rounding = ResultRounding::float32, .chosen_by_logits = true};
constexpr auto kKolibriUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "sliding_window", "layer_types",
              "num_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
              "shared_expert_intermediate_size", "norm_topk_prob"});

constexpr std::string_view kLaguna[] = {"laguna"};
constexpr auto kLagunaUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "gating",
     "num_attention_heads_per_layer", "layer_types", "mlp_layer_types", "sliding_window", "num_experts",
     "num_experts_per_tok", "moe_intermediate_size", "shared_expert_intermediate_size",
     "moe_routed_scaling_factor", "moe_router_logit_softcapping"});
constexpr FixedKey kLagunaFixed[] = {{"moe_apply_router_weight_on_input", "false"}};

std::unique_ptr<LanguageModel> make_laguna(const Weights& weights, const ModelOptions& options) {
  ConfigReader config(weights.config(), "Laguna");
  DecoderForm form = {.attention = {.gate = HeadGate::softplus},
                      .gate = {.score = GateRule::Score::sigmoid, .rounding = ResultRounding::as_arithmetic}};
  form.router_cap = config.real("moe_router_logit_softcapping", 0, 0, 1e6);
  return make_kin_as(form, weights, options);
}

// Layers that attend to an image are passed by where there is none.
constexpr std::string_view kMllama[] = {"mllama"};
constexpr DecoderForm kMllamaForm = {.passes_uncached = true};
constexpr auto kMllamaUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "cross_attention_layers"});
constexpr std::string_view kMllamaIdle[] = {"dropout", "head_dim"};

constexpr std::string_view kModernbert[] = {"modernbert_decoder"};
constexpr std::string_view kModernbertUsed[] = {"vocab_size",
                                                "hidden_size",
                                                "intermediate_size",
                                                "num_hidden_layers",
                                                "num_attention_heads",
                                                "hidden_activation",
                                                "max_position_embeddings",
                                                "original_max_position_embeddings",
                                                "norm_eps",
                                                "norm_bias",
                                                "attention_bias",
                                                "mlp_bias",
                                                "decoder_bias",
                                                "classifier_bias",
                                                "classifier_activation",
                                                "global_attn_every_n_layers",
                                                "local_attention",
                                                "sliding_window",
                                                "layer_types",
                                                "rope_parameters",
                                                "rope_scaling",
                                                "global_rope_theta",
                                                "local_rope_theta",
                                                "tie_word_embeddings"};
constexpr std::string_view kModernbertIdle[] = {"cls_token_id",
                                                "embedding_dropout",
                                                "initializer_cutoff_factor",
                                                "mlp_dropout",
                                                "rope_theta",
                                                "head_dim",
                                                "num_key_value_heads",
                                                "position_embedding_type",
                                                "classifier_pooling",
                                                "deterministic_flash_attn",
                                                "layer_norm_eps",
                                                "reference_compile",
                                                "repad_logits_with_grad",
                                                "sparse_pred_ignore_index",
                                                "sparse_prediction",
                                                "gradient_checkpointing"};

std::unique_ptr<LanguageModel> make_modernbert(const Weights& weights, const ModelOptions& options) {
  ConfigReader config(weights.config(), "ModernBERT");
  Hyperparameters of_head;
  of_head.activation_key = "classifier_activation";
  of_head.activation = config.text("classifier_activation", "gelu");
  DecoderForm form = {.norm_kind = NormKind::layer};
  form.head_block =
      HeadBlock::get(weights, "lm_head", activation_of(of_head, weights.config()),
                     {.kind = NormKind::layer, .epsilon = hyperparameters(weights.tree()).epsilon});
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kNanochat[] = {"nanochat"};
constexpr DecoderForm kNanochatForm = {
    .unweighted_norms = true, .unweighted_embedding_norm = true, .turns_back = true};
constexpr auto kNanochatUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "final_logit_softcapping"});

// Blocks that are left out, or one matrix, and heads and widths of each layer: whatever its tensors say.
constexpr std::string_view kNemotronNas[] = {"nemotron_nas"};
constexpr auto kNemotronNasUsed = kin_keys({"rms_norm_eps", "attention_bias", "mlp_bias", "block_configs"});
constexpr std::string_view kNemotronNasIdle[] = {"num_key_value_heads", "head_dim", "initializer_range"};

constexpr ModelRule kRulesOf2026[] = {
    {kAria, {}, {kAriaUsed}, make_kin<kAriaForm>},
    {kBitnet, {}, {kBitnetUsed}, make_bitnet},
    {kCompass, {}, {kCompassUsed, kCompassIdle}, make_kin<kCompassForm>},
    {kDiffllama, {}, {kDiffllamaUsed, kDiffllamaIdle}, make_whole_kin<kDiffllamaForm>},
    {kEmu3, {}, {kEmu3Used}, make_kin<kEmu3Form>},
    {kFlint, {}, {kFlintUsed}, make_kin<kFlintForm>},
    {kGraniteSwa, {}, {kGraniteSwaUsed}, make_kin<kEmu3Form>},
    {kGraniteMoeSwa, {}, {kGraniteMoeSwaUsed}, make_kin<kGraniteMoeSwaForm>},
    {kKolibri, {}, {kKolibriUsed}, make_kin<kKolibriForm>},
    {kLaguna, {}, {kLagunaUsed, {}, kLagunaFixed}, make_laguna},
    {kMllama, {}, {kMllamaUsed, kMllamaIdle}, make_kin<kMllamaForm>},
    {kModernbert, {}, {kModernbertUsed, kModernbertIdle}, make_modernbert},
    {kNanochat, {}, {kNanochatUsed}, make_kin<kNanochatForm>},
    {kNemotronNas, {}, {kNemotronNasUsed, kNemotronNasIdle}, make_kin<kEmu3Form>}};

}  // namespace

std::span<const ModelRule> kin_2026_rules() {
  return kRulesOf2026;
}

}  // namespace assay
