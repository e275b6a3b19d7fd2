// Qwen3-Next (Coder-Next too) and the language models of Qwen3.5, 3.6 and 3.8: Gated DeltaNet in most layers, gated
// attention in the others; norms of 1 + w, but for the one inside the linear layers; a quarter of a head rotates.
// Qwen3.5's rotary positions are of three axes, which text moves along alike.
#include "refimpl/models/activation_name.h"
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_qwen3_next(const Weights& weights, const ModelOptions& options) {
  return make_decoder(weights, {.norm = NormForm::one_plus_weight,
                                .gate = {.rounding = ResultRounding::as_arithmetic},
                                .moe = options.moe,
                                .recurrent = {.scan = options.scan, .activation = activation_of(weights)},
                                .prediction = {.layers = 1}});
}

constexpr std::string_view kQwen3NextFamilies[] = {"qwen3_next"};
constexpr auto kQwen3NextUsed =
    decoder_keys({"num_key_value_heads", "head_dim", "hidden_act", "attention_bias", "partial_rotary_factor",
                  "layer_types", "full_attention_interval", "linear_num_key_heads", "linear_num_value_heads",
                  "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim",
                  "decoder_sparse_step", "mlp_only_layers", "moe_intermediate_size",
                  "shared_expert_intermediate_size", "num_experts", "num_experts_per_tok", "norm_topk_prob"});
constexpr std::string_view kQwen35Families[] = {"qwen3_5", "qwen3_5_moe"};
constexpr auto kQwen35Used = decoder_keys(
    {"num_key_value_heads", "head_dim", "hidden_act", "attention_bias", "partial_rotary_factor",
     "layer_types", "full_attention_interval", "linear_num_key_heads", "linear_num_value_heads",
     "linear_key_head_dim", "linear_value_head_dim", "linear_conv_kernel_dim", "moe_intermediate_size",
     "shared_expert_intermediate_size", "num_experts", "num_experts_per_tok"});
// The type of states, which are float32 here as there; how many prediction layers there are, of which the first guesses.
constexpr std::string_view kQwen35Idle[] = {"mamba_ssm_dtype", "mtp_num_hidden_layers"};
constexpr FixedKey kQwen35Fixed[] = {{"attn_output_gate", "true"}, {"mtp_use_dedicated_embeddings", "false"}};

}  // namespace

const ModelRule kQwen3NextRule = {kQwen3NextFamilies, {}, {kQwen3NextUsed}, make_qwen3_next};
const ModelRule kQwen35Rule = {
    kQwen35Families, {}, {kQwen35Used, kQwen35Idle, kQwen35Fixed}, make_qwen3_next};

}  // namespace assay
