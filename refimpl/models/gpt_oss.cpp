// gpt-oss (arXiv 2508.10925): every head has a sink, every second layer a window; the experts' gated unit is
// clamped and one-sided, their softmax runs over the chosen ones only; YaRN's ramp is not rounded to pairs.
#include "refimpl/models/rules.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_gpt_oss(const Weights& weights, const ModelOptions& options) {
  const double limit = hyperparameters(weights.tree()).activation_limit;
  return make_decoder(weights, {.norm = NormForm::weight_inside,
                                .mlp = GatedActivation{Activation::gpt_oss, limit},
                                .gate = {.top_k_first = true, .rounding = ResultRounding::as_arithmetic},
                                .moe = options.moe,
                                .interleaved_experts = true});  // GGUF has them apart, and so never fused
}

constexpr std::string_view kGptOssFamilies[] = {"gpt_oss"};
constexpr auto kGptOssUsed = decoder_keys(
    {"num_key_value_heads", "head_dim", "attention_bias", "sliding_window", "layer_types",
     "num_local_experts", "num_experts", "num_experts_per_tok", "experts_per_token", "swiglu_limit"});
// The class has its own activation; rope_scaling says what OpenAI's code calls the initial context.
constexpr std::string_view kGptOssIdle[] = {"hidden_act", "initial_context_length"};
constexpr FixedKey kGptOssFixed[] = {{"swiglu_alpha", "1.702"}};

}  // namespace

const ModelRule kGptOssRule = {kGptOssFamilies, {}, {kGptOssUsed, kGptOssIdle, kGptOssFixed}, make_gpt_oss};

}  // namespace assay
