// gpt-oss (arXiv 2508.10925): every head has a sink, every second layer a window; the experts' gated unit is
// clamped and one-sided, their softmax runs over the chosen ones only; YaRN's ramp is not rounded to pairs.
#include "refimpl/models/rules.h"
#include "refimpl/models/settings.h"
#include "refimpl/models/transformer.h"

namespace assay {
namespace {

std::unique_ptr<LanguageModel> make_gpt_oss(const Weights& weights, const ModelOptions& options) {
  DecoderSettings settings = read_decoder_settings(weights, 1e-5, 150000);
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

}  // namespace

const ModelRule kGptOssRule = {kFamilies, {}, make_gpt_oss};

}  // namespace assay
