// The text of models that see or hear, whose language model stands nowhere alone: make_decoder() computes it as it is
// told. Sources: the classes of transformers 5.19, of Molmo2 5.23.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr DecoderForm kSeeingForm = {};
constexpr DecoderForm kSeeingNoauxForm = {.gate = {.score = GateRule::Score::sigmoid,
                                                   .epsilon = 1e-20,
                                                   .group_score = GateRule::GroupScore::sum_of_two,
                                                   .rounding = ResultRounding::float32},
                                          .router_rounding = ResultRounding::float32};
constexpr DecoderForm kSeeingSoftmaxForm = {.gate = {.rounding = ResultRounding::as_arithmetic}};
constexpr DecoderForm kHunyuanVlForm = {.attention = {.norm_after_rope = true}};

constexpr std::string_view kGlm4vText[] = {"glm4v_text", "glm_ocr"};
constexpr auto kGlm4vTextUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "partial_rotary_factor"});
constexpr std::string_view kSeeingIdle[] = {
    "num_nextn_predict_layers", "layer_types", "sliding_window", "max_window_layers", "eod_token_id",
    "org_vocab_size",           "pad_id"};

constexpr std::string_view kGlm4vMoeText[] = {"glm4v_moe_text"};
constexpr auto kGlm4vMoeTextUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "partial_rotary_factor",
              "use_qk_norm", "n_routed_experts", "num_local_experts", "num_experts_per_tok",
              "moe_intermediate_size", "n_shared_experts", "first_k_dense_replace", "n_group", "topk_group",
              "norm_topk_prob", "routed_scaling_factor"});

constexpr std::string_view kHunyuanVl[] = {"hunyuan_vl"};
constexpr auto kHunyuanVlUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_head_dim", "attention_bias",
              "rope_scaling.alpha", "rope_parameters.alpha", "rope_scaling.xdrope_section",
              "rope_parameters.xdrope_section"});

constexpr std::string_view kPaddle[] = {"paddleocr_vl"};
constexpr auto kPaddleUsed = kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "use_bias"});

constexpr std::string_view kOmniText[] = {"qwen2_5_omni_text"}, kOmni3Text[] = {"qwen3_omni_moe_text"};
constexpr auto kOmniTextUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "use_sliding_window"});
constexpr auto kOmni3TextUsed =
    kin_keys({"rms_norm_eps", "num_key_value_heads", "head_dim", "attention_bias", "decoder_sparse_step",
              "mlp_only_layers", "moe_intermediate_size", "num_experts", "num_local_experts",
              "num_experts_per_tok", "norm_topk_prob"});

// A token of text visits the first of two sets of experts. Of the axes of positions, of which each has every third
// angle of the first pairs, and the last ones are of time, one is left: pairs rotate by the angles of their places.
constexpr std::string_view kErnieVl[] = {"ernie4_5_vl_moe"};
constexpr DecoderForm kErnieVlForm = {.gate = {.rounding = ResultRounding::as_arithmetic},
                                      .router_rounding = ResultRounding::float32};
constexpr auto kErnieVlUsed = kin_keys(
    {"rms_norm_eps", "num_key_value_heads", "head_dim", "use_bias", "moe_num_experts", "num_experts", "moe_k",
     "num_experts_per_tok", "moe_intermediate_size", "moe_num_shared_experts", "mlp_layer_types"});
// What stands in published configs beside mlp_layer_types, which they lack: where experts begin and end, and widths
// that follow from others.
constexpr std::string_view kErnieVlIdle[] = {
    "moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval", "moe_use_aux_free", "rope_3d",
    "freq_allocation",       "moe_capacity",        "im_patch_id"};
constexpr FixedKey kErnieVlFixed[] = {{"moe_norm_min", "1e-12"}};

constexpr std::string_view kMolmo2[] = {"molmo2"};
constexpr DecoderForm kMolmo2Form = {.up_first = true};
constexpr auto kMolmo2Used =
    kin_keys({"rms_norm_eps", "layer_norm_eps", "num_key_value_heads", "head_dim", "attention_bias",
              "qkv_bias", "qk_norm_type", "norm_after", "rope_scaling_layers", "additional_vocab_size"});
constexpr std::string_view kMolmo2Idle[] = {"residual_dropout", "embedding_dropout"};
constexpr FixedKey kMolmo2Fixed[] = {{"use_qk_norm", "true"}};

constexpr ModelRule kSeeingRules[] = {
    {kErnieVl, {}, {kErnieVlUsed, kErnieVlIdle, kErnieVlFixed}, make_kin<kErnieVlForm>},
    {kMolmo2, {}, {kMolmo2Used, kMolmo2Idle, kMolmo2Fixed}, make_kin<kMolmo2Form>},
    {kGlm4vText, {}, {kGlm4vTextUsed, kSeeingIdle}, make_kin<kSeeingForm>},
    {kGlm4vMoeText, {}, {kGlm4vMoeTextUsed, kSeeingIdle}, make_kin<kSeeingNoauxForm>},
    {kHunyuanVl, {}, {kHunyuanVlUsed, kSeeingIdle}, make_kin<kHunyuanVlForm>},
    {kPaddle, {}, {kPaddleUsed, kSeeingIdle}, make_kin<kSeeingForm>},
    {kOmniText, {}, {kOmniTextUsed, kSeeingIdle}, make_kin<kSeeingForm>},
    {kOmni3Text, {}, {kOmni3TextUsed, kSeeingIdle}, make_kin<kSeeingSoftmaxForm>}};

}  // namespace

std::span<const ModelRule> seeing_kin_rules() {
  return kSeeingRules;
}

}  // namespace assay
