// Kimi Linear (arXiv 2510.26692): Kimi Delta Attention in three layers of four, in the others latent attention that
// rotates nothing; DeepSeek-V3's experts.
#include "refimpl/models/kin_rules.h"

namespace assay {
namespace {

constexpr DecoderForm kKimiLinearForm = {.gate = {.score = GateRule::Score::sigmoid,
                                                  .epsilon = 1e-20,
                                                  .group_score = GateRule::GroupScore::sum_of_two,
                                                  .rounding = ResultRounding::float32},
                                         .router_rounding = ResultRounding::float32};

std::unique_ptr<LanguageModel> make_kimi_linear(const Weights& weights, const ModelOptions& options) {
  require_safetensors(weights);
  DecoderForm form = kKimiLinearForm;
  form.moe = options.moe;
  form.latent = options.mla;
  form.recurrent.scan = options.scan;
  return make_decoder(weights, form);
}

constexpr std::string_view kKimiLinearFamilies[] = {"kimi_linear"};
constexpr std::string_view kKimiLinearUsed[] = {"vocab_size",
                                                "hidden_size",
                                                "intermediate_size",
                                                "num_hidden_layers",
                                                "num_attention_heads",
                                                "hidden_act",
                                                "rms_norm_eps",
                                                "max_position_embeddings",
                                                "model_max_length",
                                                "tie_word_embeddings",
                                                "kv_lora_rank",
                                                "q_lora_rank",
                                                "qk_nope_head_dim",
                                                "qk_rope_head_dim",
                                                "v_head_dim",
                                                "attention_bias",
                                                "linear_attn_config",
                                                "first_k_dense_replace",
                                                "moe_layer_freq",
                                                "num_experts",
                                                "num_local_experts",
                                                "num_experts_per_token",
                                                "num_experts_per_tok",
                                                "num_shared_experts",
                                                "n_shared_experts",
                                                "moe_intermediate_size",
                                                "num_expert_group",
                                                "n_group",
                                                "topk_group",
                                                "moe_renormalize",
                                                "norm_topk_prob",
                                                "routed_scaling_factor",
                                                "linear_head_dim",
                                                "linear_num_heads",
                                                "linear_conv_kernel_dim",
                                                "layer_types"};
// Widths that follow from others; prediction layers that nobody has published; rotation, of which there is none; what
// first_k_dense_replace says as well.
constexpr std::string_view kKimiLinearIdle[] = {
    "head_dim",     "num_key_value_heads", "num_nextn_predict_layers", "rope_theta",
    "rope_scaling", "mlp_layer_types",     "use_grouped_topk"};
constexpr FixedKey kKimiLinearFixed[] = {{"mla_use_nope", "true"},
                                         {"mla_use_output_gate", "false"},
                                         {"attn_res_block_size", "0"},
                                         {"moe_router_activation_func", "\"sigmoid\""},
                                         {"topk_method", "\"noaux_tc\""}};

}  // namespace

const ModelRule kKimiLinearRule = {
    kKimiLinearFamilies, {}, {kKimiLinearUsed, kKimiLinearIdle, kKimiLinearFixed}, make_kimi_linear};

}  // namespace assay
