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
// moondream.cpp, hymba.cpp, bagel.cpp, nemotron_parse.cpp, cosmos3.cpp; encoder_decoders.cpp
extern const Family kMoondream, kHymba, kBagel, kNemotronParse, kCosmos3, kCosmos3Edge, kM2m;
// iquest_q1.cpp, alice_ai.cpp, small_hub.cpp
extern const Family kIquestQ1, kAliceAi, kMinimind, kYuan2;
// step3p5.cpp; nemotron_parse.cpp
extern const Family kStep5, kNemotronParse35;
// encoder_decoders.cpp
extern const Family kMarian, kPegasus, kBlenderbot, kBlenderbotSmall, kPlbart, kMvp;
// chameleon.cpp, sound_writers.cpp
extern const Family kChameleon, kMoonshine, kCanary;
// openmoe.cpp, moss_vl.cpp
extern const Family kOpenmoe, kMossVl;
// draft_kin.cpp
extern const Family kEagle, kEagleQwen2, kDflash, kDflash2, kXpress, kDspark;
extern const Family kGemma4Assistant, kGemma4UnifiedAssistant, kMuseGlimmerAssistant;

}  // namespace assay::families
