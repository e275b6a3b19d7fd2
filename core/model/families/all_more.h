// Families described after those of all_hub.h: beside it, so that a new one leaves the files of the others as they are.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

// megrez_moe.cpp; qwen3_next.cpp
extern const Family kMegrezMoe, kInternS2Mobius;
// t5gemma.cpp, kosmos.cpp, cohere_asr.cpp
extern const Family kT5Gemma, kT5Gemma2, kKosmos2, kKosmos25, kCohereAsr;
// sighted_granite.cpp: the language model of Granite Docling
extern const Family kDoclingText;
// draft_kin.cpp
extern const Family kEagle, kEagleQwen2, kDflash, kDspark;

}  // namespace assay::families
