// Mixtures that vLLM serves and transformers has no class of, and PLaMo 3: beside all.h, as all_2026.h is.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

extern const Family kBailing25, kBailing3Vl, kRingLinear, kParam2Moe, kSarvamMoe, kSarvamMla, kK2Horizon,
    kPlamo3, kPanguUltraMoe, kPanguProMoe2, kMistralLarge3, kMistralNative;

}  // namespace assay::families
