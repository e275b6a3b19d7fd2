// The forward rules, one for each file that has one; models.cpp lists them.
#pragma once

#include "refimpl/models/model.h"

namespace assay {

// Families told by a table.
std::span<const ModelRule> dense_kin_rules();
std::span<const ModelRule> mixture_kin_rules();
std::span<const ModelRule> odd_mixture_rules();
std::span<const ModelRule> own_code_rules();
std::span<const ModelRule> own_code_2023_rules();
std::span<const ModelRule> hub_kin_rules();
std::span<const ModelRule> looped_rules();
std::span<const ModelRule> soft_kin_rules();
std::span<const ModelRule> early_kin_rules();
std::span<const ModelRule> kin_2026_rules();
std::span<const ModelRule> latent_2026_rules();
std::span<const ModelRule> seeing_kin_rules();
std::span<const ModelRule> scan_kin_rules();

extern const ModelRule kAxk2Rule;
extern const ModelRule kBailingHybridRule;
extern const ModelRule kBambaRule;
extern const ModelRule kDeepseekV2Rule;
extern const ModelRule kDeepseekV3Rule;
extern const ModelRule kDeepseekV32Rule;
extern const ModelRule kDogeRule;
extern const ModelRule kFalconH1Rule;
extern const ModelRule kGemma2Rule;
extern const ModelRule kGemma3Rule;
extern const ModelRule kGemma3nRule;
extern const ModelRule kGemma4Rule;
extern const ModelRule kGlmMoeDsaRule;
extern const ModelRule kGpt2Rule;
extern const ModelRule kGptOssRule;
extern const ModelRule kGraniteHybridRule;
extern const ModelRule kHrmTextRule;
extern const ModelRule kJetmoeRule;
extern const ModelRule kKimiK25Rule;
extern const ModelRule kKimiLinearRule;
extern const ModelRule kLing3Rule, kLing3VlRule;
extern const ModelRule kLatentKinRule;
extern const ModelRule kInklingRule;
extern const ModelRule kJambaRule;
extern const ModelRule kLfm2MoeRule;
extern const ModelRule kLfm2Rule;
extern const ModelRule kLlamaRule;
extern const ModelRule kMambaRule;
extern const ModelRule kMamba2Rule;
extern const ModelRule kMinicpm3Rule;
extern const ModelRule kMistral4Rule, kMistralLarge3Rule;
extern const ModelRule kMistralLarge4Rule;
extern const ModelRule kMistralRule;
extern const ModelRule kMixtralRule;
extern const ModelRule kMuseGlimmerRule;
extern const ModelRule kMuseSparkRule;
extern const ModelRule kNemotronHRule;
extern const ModelRule kOlmo2Rule;
extern const ModelRule kOlmoHybridRule;
extern const ModelRule kPhi3Rule;
extern const ModelRule kQwen2Rule;
extern const ModelRule kQwen3Rule;
extern const ModelRule kQwen3MoeRule;
extern const ModelRule kQwen3NextRule;
extern const ModelRule kQwen35Rule;
extern const ModelRule kQwen4ExpRule;
extern const ModelRule kRwkv4Rule, kRwkv7Rule;
extern const ModelRule kXlstmRule;
extern const ModelRule kYoutuRule;
extern const ModelRule kZambaRule;
extern const ModelRule kZamba2Rule;
extern const ModelRule kZayaRule;

}  // namespace assay
