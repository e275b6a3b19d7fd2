// Jamba (AI21): Mamba in most layers, with norms of what its scan is given; attention without positions in the others;
// experts in every other layer, whose weights are those of a softmax over all.
#include "refimpl/models/activation_name.h"
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_jamba(const Weights& weights, const ModelOptions& options) {
  return make_decoder(weights, {.gate = {.rounding = ResultRounding::as_arithmetic},
                                .moe = options.moe,
                                .recurrent = {.scan = options.scan, .activation = activation_of(weights)}});
}

constexpr std::string_view kJambaFamilies[] = {"jamba"};
constexpr auto kJambaUsed = decoder_keys(
    {"num_key_value_heads", "head_dim", "hidden_act", "num_experts", "num_experts_per_tok",
     "attn_layer_period", "attn_layer_offset", "expert_layer_period", "expert_layer_offset", "mamba_d_state",
     "mamba_d_conv", "mamba_expand", "mamba_dt_rank", "mamba_conv_bias", "mamba_proj_bias"});
constexpr std::string_view kJambaIdle[] = {"use_mamba_kernels",    "num_logits_to_keep",
                                           "layers_block_type",    "layer_types",
                                           "layers_num_experts",   "use_mambapy",
                                           "use_associative_scan", "calc_logits_for_entire_prompt",
                                           "attn_implementation",  "mamba_inner_layernorms",
                                           "sliding_window"};

}  // namespace

const ModelRule kJambaRule = {kJambaFamilies, {}, {kJambaUsed, kJambaIdle}, make_jamba};

}  // namespace assay
