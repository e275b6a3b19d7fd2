// Families described after those of all_more.h: beside it, so that a new one leaves the files of the others as they are.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

// lara_mini.cpp, inkling2.cpp, deepseek_kin.cpp
extern const Family kLaraMini, kInkling2Loop, kXing4;
// encoders_2020.cpp
extern const Family kLilt, kNystromformer, kMra, kYoso, kXmod, kLuke, kSplinter, kConvbert;
// odd_encoders.cpp, xlnet.cpp, encoders_2026.cpp
extern const Family kMobilebert, kSqueezebert, kCanine, kFnet, kXlnet, kXlm, kFlaubert, kUltrabert, kEsmc;
// draft_dspark.cpp
extern const Family kGemma4Dspark, kK3Dspark;
// odd_decoders.cpp
extern const Family kGrok1Model, kRugpt3xl, kHfOlmo, kCpmant;
// flash_linear.cpp, flash_linear_rwkv6.cpp, state_spaces.cpp
extern const Family kGla, kRetnet, kGsa, kHgrn, kHgrn2, kDeltaNet, kGatedDeltaNet, kDeltaProduct,
    kFlaTransformer, kFlaRwkv6, kStateSpaces;
// blt.cpp, reformer.cpp, evolla.cpp
extern const Family kBlt, kReformer, kEvolla;
// encoders_beside.cpp, time_series.cpp, diffusion_gemma.cpp, funnel.cpp
extern const Family kTapas, kMarkuplm, kRocBert, kTimesfm, kTimesfm25, kDiffusionGemma, kFunnel;

}  // namespace assay::families
