#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/model/gguf_keys.h"
#include "core/system/error.h"
#include "refimpl/models/deepseek.h"
#include "refimpl/models/rules.h"

namespace assay {
namespace {

constexpr std::array kRulesOfFiles = {
    &kLlamaRule,         &kMistralRule,       &kQwen2Rule,         &kQwen3Rule,      &kMixtralRule,
    &kQwen3MoeRule,      &kGemma2Rule,        &kGemma3Rule,        &kPhi3Rule,       &kOlmo2Rule,
    &kGpt2Rule,          &kGptOssRule,        &kMinicpm3Rule,      &kDeepseekV2Rule, &kDeepseekV3Rule,
    &kDeepseekV32Rule,   &kDeepseekV4Rule,    &kLongcatRule,       &kGlmMoeDsaRule,  &kKimiK25Rule,
    &kAxk2Rule,          &kZamba2Rule,        &kBailingHybridRule, &kLatentKinRule,  &kYoutuRule,
    &kQwen3NextRule,     &kQwen35Rule,        &kLfm2Rule,          &kBambaRule,      &kMambaRule,
    &kMamba2Rule,        &kLfm2MoeRule,       &kJambaRule,         &kNemotronHRule,  &kFalconH1Rule,
    &kGraniteHybridRule, &kKimiLinearRule,    &kLing3Rule,         &kLing3VlRule,    &kGemma4Rule,
    &kMistral4Rule,      &kMistralLarge3Rule, &kGemma3nRule,       &kOlmoHybridRule, &kMistralLarge4Rule,
    &kQwen4ExpRule,      &kHrmTextRule,       &kMuseGlimmerRule,   &kMuseSparkRule,  &kInklingRule,
    &kDogeRule,          &kJetmoeRule,        &kRwkv7Rule,         &kRwkv4Rule,      &kZambaRule,
    &kZayaRule,          &kXlstmRule};

const std::vector<const ModelRule*>& every_rule() {
  static const std::vector<const ModelRule*> rules = [] {
    std::vector<const ModelRule*> all(kRulesOfFiles.begin(), kRulesOfFiles.end());
    for (const auto table :
         {dense_kin_rules, mixture_kin_rules, odd_mixture_rules, soft_kin_rules, own_code_rules,
          own_code_2023_rules, hub_kin_rules, looped_rules, early_kin_rules, kin_2026_rules,
          latent_2026_rules, seeing_kin_rules, scan_kin_rules}) {
      for (const ModelRule& rule : table()) all.push_back(&rule);
    }
    return all;
  }();
  return rules;
}

}  // namespace

const ModelRule& rule_for(const ModuleTree& tree, const ModelConfig& config) {
  std::size_t families = 0;
  for (const ModelRule* rule : every_rule()) {
    if (std::find(rule->families.begin(), rule->families.end(), tree.family) != rule->families.end())
      return *rule;
    families += rule->families.size();
  }
  throw Error::input(fmt::format("{} has no forward rule here", tree.title))
      .in(config.source())
      .remedy(
          fmt::format("it can be counted, verified and converted; {} other families can be run", families));
}

std::span<const ModelRule* const> all_model_rules() {
  return every_rule();
}

std::unique_ptr<LanguageModel> make_model(const Weights& weights, const ModelOptions& options) {
  const ModelRule& rule = rule_for(weights.tree(), weights.config());
  const bool known = options.variant.empty() || std::find(rule.variants.begin(), rule.variants.end(),
                                                          options.variant) != rule.variants.end();
  if (!known)
    throw Error::usage(fmt::format("{} has no variant \"{}\"", weights.tree().title, options.variant))
        .remedy(rule.variants.empty() ? "it has none"
                                      : fmt::format("it has {}", fmt::join(rule.variants, ", ")));
  require_fixed_keys(weights.config(), rule.keys);
  if (weights.from_gguf()) require_gguf_keys(weights.checkpoint(), weights.config(), rule.keys);
  return rule.make(weights, options);
}

}  // namespace assay
