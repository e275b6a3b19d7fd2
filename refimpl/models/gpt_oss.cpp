// gpt-oss (arXiv 2508.10925): every head has a sink, every second layer a window; the experts' gated unit is
// clamped and one-sided, their softmax runs over the chosen ones only; YaRN's ramp is not rounded to pairs.
#include "refimpl/models/rules.h"
#include "refimpl/models/settings.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

constexpr RopeClass kRope = {.theta = 150000, .context = 131072};

// GptOssConfig: without a word of ropes, those of the published models.
void stretch_by_default(const ModelConfig& config, RopeRule& rule) {
  const ParsedJson* older = config_object(config, "rope_scaling");
  const bool given =
      config_object(config, "rope_parameters") != nullptr || (older != nullptr && !older->empty());
  if (given || config.origin() == ModelConfig::Origin::gguf) return;
  rule.type = RopeRule::Type::yarn;
  rule.factor = 32;
  rule.original_context = 4096;
  rule.truncate = false;
}

std::unique_ptr<LanguageModel> make_gpt_oss(const Weights& weights, const ModelOptions& options) {
  DecoderSettings settings =
      read_decoder_settings(weights, {.epsilon = 1e-5, .rope = kRope, .activation_key = {}});
  stretch_by_default(weights.config(), settings.ropes.at(0));
  settings.norm = NormForm::weight_inside;
  if (weights.from_gguf()) settings.ropes.at(0).truncate = false;  // which no key of GGUF says
  settings.mlp.activation = Activation::gpt_oss;
  settings.mlp.limit = config_real(weights.config(), "swiglu_limit", 1e-3, 1e6).value_or(7);
  settings.gate.top_k = weights.tree().experts_per_token;
  settings.gate.top_k_first = true;
  settings.gate.rounding = ResultRounding::as_arithmetic;
  settings.moe = options.moe;
  settings.interleaved_experts = true;  // GGUF has them apart, and so never fused
  return make_decoder(weights, settings);
}

constexpr std::string_view kFamilies[] = {"gpt_oss"};
constexpr auto kUsed = decoder_keys({"num_key_value_heads", "head_dim", "attention_bias", "sliding_window",
                                     "layer_types", "num_local_experts", "num_experts", "num_experts_per_tok",
                                     "experts_per_token", "swiglu_limit"});
// The class has its own activation; rope_scaling says what OpenAI's code calls the initial context.
constexpr std::string_view kIdle[] = {"hidden_act", "initial_context_length"};
constexpr FixedKey kFixed[] = {{"swiglu_alpha", "1.702"}};

}  // namespace

const ModelRule kGptOssRule = {kFamilies, {}, {kUsed, kIdle, kFixed}, make_gpt_oss};

}  // namespace assay
