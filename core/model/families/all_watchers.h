// Families that see by themselves and came after those of all_encoders.h.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

// vit_kin.cpp, resnet.cpp
extern const Family kViLt, kVitMsn, kIJepa, kVivit, kTimesformer, kVitpose, kResnet;
// rt_detr.cpp
extern const Family kRtDetr, kRtDetr2;
// paired_encoders.cpp, depth_anything.cpp, captioners.cpp
extern const Family kChineseClip, kClipSeg, kDpt, kGit;

// composed.cpp
extern const Family kTrocrDecoder, kTextPair, kSoundReader;

// t5_kin.cpp, idefics.cpp, pi0.cpp, pp_formulanet.cpp
extern const Family kUdop, kIdefics, kPi0, kPpFormulanet;

}  // namespace assay::families
