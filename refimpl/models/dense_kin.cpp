// Dense decoders that make_decoder() computes as it is told: a DecoderForm each, and the keys of config.json that it
// and the tree use. Sources: the classes of transformers 5.23; InternLM2, Baichuan 7B and MiniCPM, which it has no
// class for: their own modeling code.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

// LayerNorms; RMS norms of which the product with the weight is rounded once.
constexpr DecoderForm kPlain = {};
constexpr DecoderForm kLayerNorm = {.norm_kind = NormKind::layer};
constexpr DecoderForm kInside = {.norm = NormForm::weight_inside};

constexpr std::string_view kArcee[] = {"arcee"};
constexpr auto kArceeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias"});

constexpr std::string_view kBaichuan[] = {"baichuan"};
constexpr auto kBaichuanUsed = kin_keys({"rms_norm_eps"});
constexpr std::string_view kBaichuanIdle[] = {"_from_model_config", "model_max_length", "z_loss_weight"};

// Positions by linear biases; a norm behind the embedding. Two ways to compute the same are left aside.
constexpr std::string_view kBloom[] = {"bloom"};
constexpr DecoderForm kBloomForm = {.norm_kind = NormKind::layer, .attention = {.fused_by_key_head = true}};
constexpr std::string_view kBloomUsed[] = {"vocab_size",
                                           "hidden_size",
                                           "n_embed",
                                           "n_layer",
                                           "num_hidden_layers",
                                           "n_head",
                                           "num_attention_heads",
                                           "layer_norm_epsilon",
                                           "tie_word_embeddings"};
constexpr std::string_view kBloomIdle[] = {"slow_but_exact",        "attention_softmax_in_fp32",
                                           "masked_softmax_fusion", "bias_dropout_fusion",
                                           "offset_alibi",          "seq_length",
                                           "skip_bias_add",         "skip_bias_add_qkv",
                                           "unk_token_id"};
constexpr FixedKey kBloomFixed[] = {{"apply_residual_connection_post_layernorm", "false"}};

// One norm a layer: attention and MLP beside each other.
constexpr std::string_view kCohere[] = {"cohere"}, kCohere2[] = {"cohere2"};
constexpr auto kCohereUsed = kin_keys(
    {"layer_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "use_qk_norm", "logit_scale"});
constexpr auto kCohere2Used =
    kin_keys({"layer_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "logit_scale",
              "sliding_window", "layer_types", "sliding_window_pattern"});

constexpr std::string_view kCwm[] = {"cwm"};
constexpr auto kCwmUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "mlp_bias", "sliding_window", "layer_types"});

constexpr std::string_view kErnie[] = {"ernie4_5"};
constexpr auto kErnieUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "use_bias"});

constexpr std::string_view kExaone4[] = {"exaone4"};
constexpr auto kExaone4Used = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "sliding_window",
                                        "layer_types", "sliding_window_pattern"});

constexpr std::string_view kFalcon[] = {"falcon"};
constexpr DecoderForm kFalconForm = {
    .norm_kind = NormKind::layer, .branches_first = true, .attention = {.fused_by_key_head = true}};
// Falcon-RW: biases of positions in place of rotation.
std::unique_ptr<LanguageModel> make_falcon(const Weights& weights, const ModelOptions& options) {
  DecoderForm form = kFalconForm;
  if (hyperparameters(weights.tree()).alibi_exponent != 0) {
    require_all_heads(weights);
    form.attention.slopes = SlopeForm::rounded;
  }
  return make_kin_as(form, weights, options);
}
constexpr std::string_view kFalconUsed[] = {"vocab_size",
                                            "hidden_size",
                                            "n_embed",
                                            "num_hidden_layers",
                                            "num_attention_heads",
                                            "ffn_hidden_size",
                                            "max_position_embeddings",
                                            "original_max_position_embeddings",
                                            "rope_theta",
                                            "rope_scaling",
                                            "rope_parameters",
                                            "tie_word_embeddings",
                                            "layer_norm_epsilon",
                                            "activation",
                                            "num_kv_heads",
                                            "alibi",
                                            "new_decoder_architecture",
                                            "multi_query",
                                            "parallel_attn",
                                            "bias",
                                            "num_ln_in_parallel_attn",
                                            "n_layer",
                                            "n_head",
                                            "n_head_kv"};
constexpr std::string_view kFalconIdle[] = {"head_dim"};

constexpr std::string_view kGemma[] = {"gemma"};
constexpr DecoderForm kGemmaForm = {.norm = NormForm::one_plus_weight, .rounded_embedding_scale = true};
constexpr auto kGemmaUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias"});
constexpr std::string_view kGemmaIdle[] = {"hidden_activation"};
constexpr FixedKey kGemma1Fixed[] = {{"use_bidirectional_attention", "false"}};

constexpr std::string_view kGlm[] = {"glm", "glm4"};
constexpr auto kGlmUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "partial_rotary_factor"});

constexpr std::string_view kGptBigcode[] = {"gpt_bigcode"};
constexpr DecoderForm kGptBigcodeForm = {.norm_kind = NormKind::layer,
                                         .attention = {.fused_by_key_head = true}};
constexpr std::string_view kGptBigcodeUsed[] = {
    "vocab_size",          "n_positions", "max_position_embeddings", "n_embd",
    "hidden_size",         "n_layer",     "num_hidden_layers",       "n_head",
    "num_attention_heads", "n_inner",     "activation_function",     "layer_norm_epsilon",
    "scale_attn_weights",  "multi_query", "tie_word_embeddings"};
constexpr std::string_view kGptBigcodeIdle[] = {
    "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
    "inference_runner",          "max_batch_size",
    "max_sequence_length",       "pad_key_length",
    "pre_allocate_kv_cache",     "validate_runner_input"};

constexpr std::string_view kHeadDimIdle[] = {"head_dim"};
constexpr std::string_view kGptNeox[] = {"gpt_neox"};
constexpr DecoderForm kGptNeoxForm = {
    .norm_kind = NormKind::layer, .branches_first = true, .attention = {.fused_by_key_head = true}};
constexpr auto kGptNeoxUsed =
    kin_keys({"layer_norm_eps", "use_parallel_residual", "attention_bias", "rotary_pct", "rotary_emb_base"});

constexpr std::string_view kGptj[] = {"gptj"};
constexpr DecoderForm kGptjForm = {.norm_kind = NormKind::layer, .branches_first = true};
constexpr std::string_view kGptjUsed[] = {"vocab_size",
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
constexpr std::string_view kGptjIdle[] = {"scale_attn_weights", "rotary"};  // which the class does not read

constexpr std::string_view kGranite[] = {"granite"};
constexpr auto kGraniteUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias",
              "embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"});
constexpr std::string_view kHyperclovax[] = {"hyperclovax"};
constexpr auto kHyperclovaxUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias", "embedding_multiplier",
     "logits_scaling", "residual_multiplier", "attention_multiplier", "use_post_norm"});

constexpr std::string_view kHelium[] = {"helium"};
constexpr auto kHeliumUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias"});

constexpr std::string_view kHunyuan[] = {"hunyuan_v1_dense"};
constexpr DecoderForm kHunyuanForm = {.attention = {.norm_after_rope = true}};
constexpr auto kHunyuanUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
                                        "rope_scaling.alpha", "rope_parameters.alpha"});
constexpr std::string_view kHunyuanIdle[] = {"eod_token_id"};
constexpr FixedKey kHunyuanFixed[] = {{"use_cla", "false"}};

constexpr std::string_view kInternlm2[] = {"internlm2"};
constexpr DecoderForm kInternlm2Form = {.attention = {.fused_by_key_head = true}};
constexpr auto kInternlm2Used = kin_keys({"rms_norm_eps", "num_key_value_heads", "bias"});

constexpr std::string_view kJais2[] = {"jais2"};
constexpr auto kJais2Used =
    kin_keys({"layer_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias"});

constexpr std::string_view kMinicpm[] = {"minicpm"};
constexpr auto kMinicpmUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
                                        "scale_emb", "scale_depth", "dim_model_base"});
constexpr FixedKey kMinicpmFixed[] = {{"sparse_config", "null"}, {"num_experts", "0"}};

constexpr std::string_view kMinistral[] = {"ministral"}, kMistral3[] = {"mistral3"};
constexpr auto kMinistralUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "sliding_window", "layer_types"});
constexpr auto kMistral3Used =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "sliding_window", "layer_types",
              "rope_parameters.llama_4_scaling_beta", "rope_scaling.llama_4_scaling_beta"});

constexpr std::string_view kMpt[] = {"mpt"};
constexpr std::string_view kMptUsed[] = {"vocab_size",          "d_model",
                                         "hidden_size",         "n_layers",
                                         "num_hidden_layers",   "n_heads",
                                         "num_attention_heads", "max_seq_len",
                                         "attn_config",         "layer_norm_epsilon",
                                         "tie_word_embeddings"};
constexpr std::string_view kMptIdle[] = {
    "expansion_ratio", "learned_pos_emb", "init_device", "logit_scale", "no_bias",  "embedding_fraction",
    "norm_type",       "emb_pdrop",       "verbose",     "init_config", "attn_impl"};

constexpr std::string_view kNemotron[] = {"nemotron"};
constexpr DecoderForm kNemotronForm = {.norm = NormForm::one_plus_weight, .norm_kind = NormKind::layer};
constexpr auto kNemotronUsed = kin_keys(
    {"norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias", "partial_rotary_factor"});

constexpr std::string_view kOlmo[] = {"olmo"};
constexpr DecoderForm kOlmoForm = {.norm_kind = NormKind::layer, .unweighted_norms = true};
constexpr auto kOlmoUsed = kin_keys({"num_key_value_heads", "head_dim", "attention_bias", "clip_qkv"});
constexpr std::string_view kOlmo3[] = {"olmo3"};
constexpr auto kOlmo3Used = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "sliding_window", "layer_types"});

constexpr std::string_view kOpt[] = {"opt"};
constexpr std::string_view kOptUsed[] = {"vocab_size",
                                         "hidden_size",
                                         "num_hidden_layers",
                                         "num_attention_heads",
                                         "ffn_dim",
                                         "max_position_embeddings",
                                         "do_layer_norm_before",
                                         "_remove_final_layer_norm",
                                         "word_embed_proj_dim",
                                         "enable_bias",
                                         "activation_function",
                                         "layer_norm_elementwise_affine",
                                         "tie_word_embeddings"};
constexpr std::string_view kOptIdle[] = {"dropout", "activation_dropout", "layerdrop", "init_std"};
// Embeddings may be narrower than the stream, and norms be of the sums (OPT-350M).
std::unique_ptr<LanguageModel> make_opt(const Weights& weights, const ModelOptions& options) {
  const auto bare = [&](const char* name) { return Projection{weights.find_named(name), {}}; };
  DecoderForm form = {.norm_kind = NormKind::layer, .position_offset = 2};
  form.norms_behind_sums = !ConfigReader(weights.config(), "OPT").flag("do_layer_norm_before", true);
  form.into_stream = bare("model.decoder.project_in.weight");
  form.head_block.dense = bare("model.decoder.project_out.weight");
  return make_kin_as(form, weights, options);
}

constexpr std::string_view kPersimmon[] = {"persimmon"};
constexpr DecoderForm kPersimmonForm = {.norm_kind = NormKind::layer,
                                        .attention = {.fused_by_key_head = true}};
constexpr auto kPersimmonUsed = kin_keys({"layer_norm_eps", "qk_layernorm", "partial_rotary_factor"});

constexpr std::string_view kPhi[] = {"phi"};
constexpr DecoderForm kPhiForm = {.norm_kind = NormKind::layer, .branches_first = true};
constexpr auto kPhiUsed =
    kin_keys({"layer_norm_eps", "num_key_value_heads", "head_dim", "qk_layernorm", "partial_rotary_factor"});

constexpr std::string_view kSeedOss[] = {"seed_oss"};
constexpr auto kSeedOssUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "attention_out_bias", "mlp_bias"});
constexpr std::string_view kSeedOssIdle[] = {"residual_dropout"};

constexpr std::string_view kSmollm3[] = {"smollm3"};
constexpr auto kSmollm3Used = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
                                        "mlp_bias", "use_sliding_window", "sliding_window", "layer_types",
                                        "no_rope_layers", "no_rope_layer_interval"});
constexpr std::string_view kSmollm3Idle[] = {"max_window_layers"};

constexpr std::string_view kStablelm[] = {"stablelm"};
constexpr DecoderForm kStablelmForm = {
    .norm_kind = NormKind::layer,
    .attention = {.norm_of_head = "model.layers.{}.self_attn.{}_layernorm.norms.{}.weight"}};
constexpr auto kStablelmUsed = kin_keys({"layer_norm_eps", "num_key_value_heads", "head_dim", "use_qkv_bias",
                                         "qk_layernorm", "use_parallel_residual", "partial_rotary_factor"});

constexpr std::string_view kStarcoder2[] = {"starcoder2"};
constexpr auto kStarcoder2Used =
    kin_keys({"norm_epsilon", "num_key_value_heads", "head_dim", "use_bias", "sliding_window"});
constexpr std::string_view kStarcoder2Idle[] = {"residual_dropout", "embedding_dropout", "layer_types"};

constexpr std::string_view kVaultgemma[] = {"vaultgemma"};
constexpr auto kVaultgemmaUsed = decoder_keys(
    {"num_key_value_heads", "head_dim", "hidden_activation", "attention_bias", "query_pre_attn_scalar",
     "attn_logit_softcapping", "final_logit_softcapping", "sliding_window", "layer_types"});
constexpr std::string_view kVaultgemmaIdle[] = {"hidden_act"};

constexpr ModelRule kDenseRules[] = {
    {kArcee, {}, {kArceeUsed}, make_kin<kPlain>},
    {kBaichuan, {}, {kBaichuanUsed, kBaichuanIdle}, make_kin<kPlain>},
    {kBloom, {}, {kBloomUsed, kBloomIdle, kBloomFixed}, make_kin<kBloomForm>},
    {kCohere, {}, {kCohereUsed}, make_kin<kLayerNorm>},
    {kCohere2, {}, {kCohere2Used}, make_kin<kLayerNorm>},
    {kCwm, {}, {kCwmUsed}, make_kin<kPlain>},
    {kErnie, {}, {kErnieUsed}, make_kin<kPlain>},
    {kExaone4, {}, {kExaone4Used}, make_kin<kPlain>},
    {kFalcon, {}, {kFalconUsed, kFalconIdle}, make_falcon},
    {kGemma, {}, {kGemmaUsed, kGemmaIdle, kGemma1Fixed}, make_kin<kGemmaForm>},
    {kGlm, {}, {kGlmUsed}, make_kin<kPlain>},
    {kGptBigcode, {}, {kGptBigcodeUsed, kGptBigcodeIdle}, make_kin<kGptBigcodeForm>},
    {kGptNeox, {}, {kGptNeoxUsed, kHeadDimIdle}, make_kin<kGptNeoxForm>},
    {kGptj, {}, {kGptjUsed, kGptjIdle}, make_kin<kGptjForm>},
    {kGranite, {}, {kGraniteUsed}, make_kin<kPlain>},
    {kHelium, {}, {kHeliumUsed}, make_kin<kInside>},
    {kHunyuan, {}, {kHunyuanUsed, kHunyuanIdle, kHunyuanFixed}, make_kin<kHunyuanForm>},
    {kHyperclovax, {}, {kHyperclovaxUsed}, make_kin<kPlain>},
    {kInternlm2, {}, {kInternlm2Used}, make_kin<kInternlm2Form>},
    {kJais2, {}, {kJais2Used}, make_kin<kLayerNorm>},
    {kMinicpm, {}, {kMinicpmUsed, {}, kMinicpmFixed}, make_kin<kPlain>},
    {kMinistral, {}, {kMinistralUsed}, make_kin<kPlain>},
    {kMistral3, {}, {kMistral3Used}, make_kin<kPlain>},
    {kMpt, {}, {kMptUsed, kMptIdle}, make_kin<kLayerNorm>},
    {kNemotron, {}, {kNemotronUsed}, make_kin<kNemotronForm>},
    {kOlmo, {}, {kOlmoUsed}, make_kin<kOlmoForm>},
    {kOlmo3, {}, {kOlmo3Used}, make_kin<kInside>},
    {kOpt, {}, {kOptUsed, kOptIdle}, make_opt},
    {kPersimmon, {}, {kPersimmonUsed, kHeadDimIdle}, make_kin<kPersimmonForm>},
    {kPhi, {}, {kPhiUsed}, make_kin<kPhiForm>},
    {kSeedOss, {}, {kSeedOssUsed, kSeedOssIdle}, make_kin<kPlain>},
    {kSmollm3, {}, {kSmollm3Used, kSmollm3Idle}, make_kin<kPlain>},
    {kStablelm, {}, {kStablelmUsed}, make_kin<kStablelmForm>},
    {kStarcoder2, {}, {kStarcoder2Used, kStarcoder2Idle}, make_kin<kLayerNorm>},
    {kVaultgemma, {}, {kVaultgemmaUsed, kVaultgemmaIdle}, make_kin<kGemmaForm>}};

}  // namespace

std::span<const ModelRule> dense_kin_rules() {
  return kDenseRules;
}

}  // namespace assay
