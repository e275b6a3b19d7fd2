// Every family there is: one declaration each, one definition in the file that bears the family's name.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

extern const Family kLlama, kYi, kMistral, kMixtral, kQwen, kQwen2, kQwen2Moe, kQwen3, kQwen3Moe, kGemma,
    kGemma2, kGemma3, kPhi3, kPhimoe, kDeepseekV2, kDeepseekV3, kDeepseekV32, kMinicpm3, kChatglm, kGlm,
    kGlm4, kGlm4Moe, kGptOss, kMinimaxM2, kLlama4, kOlmo2, kOlmo3, kCohere, kCohere2, kStarcoder2, kFalcon,
    kGpt2, kInternlm2, kBaichuan, kQwen3Next, kQwen35, kQwen35Moe, kQwen2Vl, kQwen25Vl, kQwen3Vl, kQwen3VlMoe,
    kGlmMoeDsa, kKimiK25, kKimiLinear, kKimiK3, kMinimaxM3, kMinimax, kLaguna, kGraniteSwa, kDiffllama,
    kNemotronH, kNemotronNas, kMimo, kMimoV2, kStep3p5, kGemma4, kDeepseekV4, kMistral3, kSmollm3, kSeedOss,
    kExaone4, kErnie45, kHunyuanDense, kGranite, kArcee, kNemotron, kHelium, kMinicpm, kCwm, kApertus,
    kApertus1p5, kVaultgemma, kBitnet, kHyperclovax, kJais2, kOlmo, kNanochat, kStablelm, kMinistral, kYoutu,
    kOlmoe, kFlexOlmo, kErnie45Moe, kExaoneMoe, kSolarOpen, kDots1, kHunyuanMoe, kHy3, kMellum, kAfmoe,
    kGlm4MoeLite, kAxk1, kMistral4, kCohere2Moe, kGraniteMoe, kGraniteMoeShared, kGraniteMoeHybrid, kBamba,
    kFalconH1, kLfm2, kLfm2Moe, kMamba, kMamba2, kJamba, kGptNeo, kGptj, kCodegen, kGptNeox, kBloom,
    kGptBigcode, kMpt, kPhi, kPersimmon, kOpt, kLongcatFlash, kBailing, kBailing2, kBailing3, kBailingHybrid,
    kDbrx;

// Language models of models that see, which stand nowhere alone.
extern const Family kGlm4vText, kGlm4vMoeText, kQwen25OmniText, kQwen3OmniText;

}  // namespace assay::families
