// Mixtral (arXiv 2401.04088) and Qwen3-MoE: a Llama, and a Qwen3, whose MLP is a mixture of experts. Scores
// are a softmax over all experts; the weights of those chosen are made to sum to 1: always in Mixtral, where
// norm_topk_prob says so in Qwen3-MoE. Mixtral keeps the weights in float32, Qwen3-MoE rounds them.
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_mixtral(const Weights& weights, const ModelOptions& options) {
  return make_decoder(weights, {.gate = {.rounding = ResultRounding::float32}, .moe = options.moe});
}
std::unique_ptr<LanguageModel> make_qwen3_moe(const Weights& weights, const ModelOptions& options) {
  return make_decoder(weights, {.gate = {.rounding = ResultRounding::as_arithmetic}, .moe = options.moe});
}

constexpr std::string_view kMixtralFamilies[] = {"mixtral"};
constexpr auto kMixtralUsed = decoder_keys({"num_key_value_heads", "head_dim", "hidden_act", "sliding_window",
                                            "num_local_experts", "num_experts", "num_experts_per_tok"});
constexpr std::string_view kQwen3MoeFamilies[] = {"qwen3_moe"};
constexpr auto kQwen3MoeUsed =
    decoder_keys({"num_key_value_heads", "head_dim", "hidden_act", "attention_bias", "use_sliding_window",
                  "sliding_window", "decoder_sparse_step", "mlp_only_layers", "moe_intermediate_size",
                  "num_experts", "num_local_experts", "num_experts_per_tok", "norm_topk_prob"});
constexpr std::string_view kQwen3MoeIdle[] = {"max_window_layers"};  // published, and not of its class

}  // namespace

const ModelRule kMixtralRule = {kMixtralFamilies, {}, {kMixtralUsed}, make_mixtral};
const ModelRule kQwen3MoeRule = {kQwen3MoeFamilies, {}, {kQwen3MoeUsed, kQwen3MoeIdle}, make_qwen3_moe};

}  // namespace assay
