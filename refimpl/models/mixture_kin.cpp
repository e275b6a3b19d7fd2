// Mixtures of experts that make_decoder() computes as it is told, and the text towers of Qwen's models that see, whose
// rotation in three axes is the ordinary one where there is text alone. Sources: the classes of transformers 5.23; MiMo,
// which it has no class for: its own modeling code.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

// A softmax over all experts, or over the chosen ones; DeepSeek-V3's sigmoid with a correction.
constexpr GateRule kSoftmaxGate = {.rounding = ResultRounding::as_arithmetic};
constexpr GateRule kNoauxGate = {.score = GateRule::Score::sigmoid,
                                 .epsilon = 1e-20,
                                 .group_score = GateRule::GroupScore::sum_of_two,
                                 .rounding = ResultRounding::float32};

constexpr DecoderForm kSoftmaxForm = {.gate = kSoftmaxGate};
constexpr DecoderForm kNoauxForm = {.gate = kNoauxGate, .router_rounding = ResultRounding::float32};
constexpr DecoderForm kGlm4MoeForm = {
    .gate = kNoauxGate, .router_rounding = ResultRounding::float32, .prediction = kLayerModules};
// Three are stored. Engines disagree on what the second and third are given (vLLM runs the first alone, SGLang gives all
// what stands before the model's final norm), so the first is run, as vLLM does.
constexpr DecoderForm kMimoV2Form = {
    .gate = kNoauxGate, .router_rounding = ResultRounding::float32, .prediction = {.layers = 1}};

constexpr std::string_view kDots1[] = {"dots1"};
constexpr auto kDots1Used =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "sliding_window",
              "layer_types", "max_window_layers", "n_routed_experts", "num_local_experts",
              "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts", "first_k_dense_replace",
              "n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor"});
constexpr FixedKey kNoauxFixed[] = {{"scoring_func", "\"sigmoid\""}, {"topk_method", "\"noaux_tc\""}};

constexpr std::string_view kErnieMoe[] = {"ernie4_5_moe"};
// What predicts one more token has no final norm of its own: ERNIEKit and FastDeploy use the model's; vLLM and SGLang none.
constexpr DecoderForm kErnieMoeForm = {
    .gate = kSoftmaxGate,
    .router_rounding = ResultRounding::float32,
    .prediction = {.layers = 1, .final_norm = PredictionForm::FinalNorm::of_model}};
constexpr auto kErnieMoeUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "use_bias", "moe_num_experts", "num_experts", "moe_k",
     "num_experts_per_tok", "moe_intermediate_size", "moe_num_shared_experts", "moe_layer_start_index",
     "moe_layer_end_index", "moe_layer_interval", "num_nextn_predict_layers"});
constexpr FixedKey kErnieMoeFixed[] = {{"moe_norm_min", "1e-12"}};

// Norms stand after attention and MLP.
constexpr std::string_view kFlexOlmo[] = {"flex_olmo"}, kOlmoe[] = {"olmoe"};
constexpr DecoderForm kFlexOlmoForm = {.norm = NormForm::weight_inside, .gate = kSoftmaxGate};
constexpr auto kFlexOlmoUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "num_experts",
              "num_local_experts", "num_experts_per_tok", "norm_topk_prob"});
constexpr std::string_view kOlmoeIdle[] = {"sliding_window"};
constexpr DecoderForm kOlmoeForm = {.attention = {.clipped_after_norm = true}, .gate = kSoftmaxGate};
constexpr auto kOlmoeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "clip_qkv", "num_experts",
              "num_local_experts", "num_experts_per_tok", "norm_topk_prob"});

constexpr std::string_view kGlm4Moe[] = {"glm4_moe"};
constexpr auto kGlm4MoeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "partial_rotary_factor",
              "use_qk_norm", "n_routed_experts", "num_local_experts", "num_experts_per_tok",
              "moe_intermediate_size", "n_shared_experts", "first_k_dense_replace", "n_group", "topk_group",
              "norm_topk_prob", "routed_scaling_factor", "num_nextn_predict_layers", "num_mtp_layers"});

constexpr std::string_view kHunyuanMoe[] = {"hunyuan_v1_moe"};
constexpr DecoderForm kHunyuanMoeForm = {
    .attention = {.norm_after_rope = true}, .gate = kSoftmaxGate, .router_rounding = ResultRounding::float32};
constexpr auto kHunyuanMoeUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "num_experts", "num_local_experts",
     "moe_topk", "num_experts_per_tok", "rope_scaling.alpha", "rope_parameters.alpha"});
constexpr std::string_view kHunyuanMoeIdle[] = {"eod_token_id"};
constexpr FixedKey kHunyuanMoeFixed[] = {{"use_cla", "false"}};

constexpr std::string_view kLlama4[] = {"llama4"};
constexpr DecoderForm kLlama4Form = {.gate = {.score = GateRule::Score::sigmoid,
                                              .top_k_first = true,
                                              .rounding = ResultRounding::as_arithmetic},
                                     .scaled_inputs = true};
constexpr auto kLlama4Used =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "intermediate_size_mlp",
              "num_local_experts", "num_experts_per_tok", "moe_layers", "interleave_moe_layer_step",
              "use_qk_norm", "no_rope_layers", "no_rope_layer_interval", "attention_chunk_size",
              "layer_types", "attn_temperature_tuning", "floor_scale", "attn_scale"});

constexpr std::string_view kMimo[] = {"mimo"};
constexpr DecoderForm kMimoForm = {.prediction = {.layers = 1, .hidden_first = true}};
constexpr auto kMimoUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "num_nextn_predict_layers"});
constexpr FixedKey kMimoFixed[] = {{"use_sliding_window", "false"}};
constexpr std::string_view kMimoIdle[] = {"sliding_window", "max_window_layers"};

constexpr std::string_view kMimoV2[] = {"mimo_v2_flash"};
constexpr auto kMimoV2Used = kin_keys({"rms_norm_eps",
                                       "layernorm_epsilon",
                                       "num_key_value_heads",
                                       "head_dim",
                                       "v_head_dim",
                                       "attention_bias",
                                       "swa_num_attention_heads",
                                       "swa_num_key_value_heads",
                                       "swa_head_dim",
                                       "swa_v_head_dim",
                                       "swa_rope_theta",
                                       "partial_rotary_factor",
                                       "add_swa_attention_sink_bias",
                                       "add_full_attention_sink_bias",
                                       "attention_value_scale",
                                       "hybrid_layer_pattern",
                                       "layer_types",
                                       "moe_layer_freq",
                                       "mlp_layer_types",
                                       "sliding_window",
                                       "sliding_window_size",
                                       "n_routed_experts",
                                       "num_local_experts",
                                       "num_experts_per_tok",
                                       "moe_intermediate_size",
                                       "n_shared_experts",
                                       "n_group",
                                       "topk_group",
                                       "norm_topk_prob",
                                       "routed_scaling_factor",
                                       "num_nextn_predict_layers"});
constexpr std::string_view kMimoV2Idle[] = {"attention_chunk_size", "hybrid_block_size"};

constexpr std::string_view kMinimaxM2[] = {"minimax_m2"};
constexpr DecoderForm kMinimaxM2Form = {
    .gate = {.score = GateRule::Score::sigmoid, .rounding = ResultRounding::float32}};
constexpr auto kMinimaxM2Used =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "partial_rotary_factor", "rotary_dim",
              "num_local_experts", "num_experts", "num_experts_per_tok"});
constexpr FixedKey kMinimaxM2Fixed[] = {{"use_qk_norm", "true"},
                                        {"use_routing_bias", "true"},
                                        {"scoring_func", "\"sigmoid\""},
                                        {"qk_norm_type", "\"per_layer\""}};
constexpr std::string_view kMinimaxM2Idle[] = {"use_mtp", "num_mtp_modules", "mtp_transformer_layers",
                                               "attn_type_list", "shared_intermediate_size"};

constexpr std::string_view kQwen2Moe[] = {"qwen2_moe"};
constexpr auto kQwen2MoeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "qkv_bias", "use_sliding_window",
              "sliding_window", "max_window_layers", "layer_types", "decoder_sparse_step", "mlp_only_layers",
              "moe_intermediate_size", "shared_expert_intermediate_size", "num_experts", "num_local_experts",
              "num_experts_per_tok", "norm_topk_prob"});

constexpr std::string_view kQwen2Vl[] = {"qwen2_vl", "qwen2_5_vl"}, kQwen3Vl[] = {"qwen3_vl"},
                           kQwen3VlMoe[] = {"qwen3_vl_moe"};
constexpr DecoderForm kDenseForm = {};
constexpr auto kQwen2VlUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "use_sliding_window", "sliding_window",
     "max_window_layers", "layer_types", "rope_scaling.mrope_section", "rope_parameters.mrope_section"});
constexpr auto kQwen3VlUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "rope_scaling.mrope_section",
     "rope_parameters.mrope_section", "rope_scaling.mrope_interleaved", "rope_parameters.mrope_interleaved"});
constexpr auto kQwen3VlMoeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "decoder_sparse_step",
              "mlp_only_layers", "moe_intermediate_size", "num_experts", "num_local_experts",
              "num_experts_per_tok", "rope_scaling.mrope_section", "rope_parameters.mrope_section",
              "rope_scaling.mrope_interleaved", "rope_parameters.mrope_interleaved"});
constexpr std::string_view kQwen3VlMoeIdle[] = {"norm_topk_prob", "layer_types"},
                           kLayerTypesIdle[] = {"layer_types"};

constexpr std::string_view kSolarOpen[] = {"solar_open"};
constexpr auto kSolarOpenUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "n_routed_experts",
              "num_local_experts", "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts",
              "n_group", "topk_group", "norm_topk_prob", "routed_scaling_factor"});

constexpr std::string_view kGraniteMoe[] = {"granitemoe", "granitemoeshared"};
constexpr DecoderForm kGraniteMoeForm = {
    .gate = {.top_k_first = true, .rounding = ResultRounding::as_arithmetic}};
constexpr auto kGraniteMoeUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "embedding_multiplier",
              "logits_scaling", "residual_multiplier", "attention_multiplier", "num_local_experts",
              "num_experts_per_tok", "shared_intermediate_size"});

constexpr ModelRule kMixtureRules[] = {
    {kDots1, {}, {kDots1Used, {}, kNoauxFixed}, make_kin<kNoauxForm>},
    {kErnieMoe, {}, {kErnieMoeUsed, {}, kErnieMoeFixed}, make_kin<kErnieMoeForm>},
    {kFlexOlmo, {}, {kFlexOlmoUsed}, make_kin<kFlexOlmoForm>},
    {kGlm4Moe, {}, {kGlm4MoeUsed}, make_kin<kGlm4MoeForm>},
    {kGraniteMoe, {}, {kGraniteMoeUsed}, make_kin<kGraniteMoeForm>},
    {kHunyuanMoe, {}, {kHunyuanMoeUsed, kHunyuanMoeIdle, kHunyuanMoeFixed}, make_kin<kHunyuanMoeForm>},
    {kLlama4, {}, {kLlama4Used}, make_kin<kLlama4Form>},
    {kMimo, {}, {kMimoUsed, kMimoIdle, kMimoFixed}, make_kin<kMimoForm>},
    {kMimoV2, {}, {kMimoV2Used, kMimoV2Idle, kNoauxFixed}, make_kin<kMimoV2Form>},
    {kMinimaxM2, {}, {kMinimaxM2Used, kMinimaxM2Idle, kMinimaxM2Fixed}, make_kin<kMinimaxM2Form>},
    {kOlmoe, {}, {kOlmoeUsed, kOlmoeIdle}, make_kin<kOlmoeForm>},
    {kQwen2Moe, {}, {kQwen2MoeUsed}, make_kin<kSoftmaxForm>},
    {kQwen2Vl, {}, {kQwen2VlUsed}, make_kin<kDenseForm>},
    {kQwen3Vl, {}, {kQwen3VlUsed, kLayerTypesIdle}, make_kin<kDenseForm>},
    {kQwen3VlMoe, {}, {kQwen3VlMoeUsed, kQwen3VlMoeIdle}, make_kin<kSoftmaxForm>},
    {kSolarOpen, {}, {kSolarOpenUsed}, make_kin<kNoauxForm>}};

}  // namespace

std::span<const ModelRule> mixture_kin_rules() {
  return kMixtureRules;
}

}  // namespace assay
