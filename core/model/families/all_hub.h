// Families whose checkpoints bring code of their own to the hub, described after those of all_2026.h: beside it, so that a
// new one leaves the files of the others as they are.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

// diffusion_text.cpp
extern const Family kLlada, kLladaMoe, kLlada2, kDream, kSdar, kSdarMoe;
// dense_hub.cpp
extern const Family kInternlm, kAquila, kXverse, kSkywork, kKormo, kMotif, kPhi3Small, kJais, kOpenelm,
    kSpark25, kDomynEdge;
// mixtures_hub.cpp
extern const Family kStep3Text, kGrok, kXverseMoe, kArctic, kSmallThinker;
// looped_decoders.cpp, dory.cpp
extern const Family kOuro, kDory, kRaven;
// mimo.cpp, deepseek_v41.cpp
extern const Family kNaiveN05, kDeepseekV41;
// Each in a file of its own name.
extern const Family kLongcatNgram, kMinicpmSala, kJetNemotron, kPlamo2, kPhi4Flash, kGigachat35, kRwkv6,
    kRwkv7;
// draft_models.cpp
extern const Family kEagle3;
extern const Family kEagle3Qwen3;
extern const Family kEagle3Deepseek;

}  // namespace assay::families
