// Families that see by themselves and came after those of all_encoders.h.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

// vit_kin.cpp, resnet.cpp
extern const Family kViLt, kVitMsn, kIJepa, kVivit, kTimesformer, kVitpose, kResnet;
// rt_detr.cpp, detr.cpp, deformable_detr.cpp
extern const Family kRtDetr, kRtDetr2, kDetr, kTableTransformer, kConditionalDetr, kDabDetr, kDeformableDetr;
// mobile_nets.cpp, mobile_vit.cpp
extern const Family kMobileNetV1, kMobileNetV2, kEfficientNet, kMobileVit, kMobileVit2;
// paired_encoders.cpp, depth_anything.cpp, captioners.cpp
extern const Family kChineseClip, kAltClip, kClipSeg, kDpt, kGit;
// sam2.cpp, grounding_dino.cpp, mask2former.cpp
extern const Family kSam2, kSam2Video, kGroundingDino, kMmGroundingDino, kMask2Former;
// vjepa2.cpp, staged_images.cpp, text_encoders.cpp
extern const Family kVjepa2, kDinov3Convnext, kBros;

// composed.cpp
extern const Family kTrocrDecoder, kTextPair, kSoundReader;

// t5_kin.cpp, idefics.cpp, pi0.cpp, pp_formulanet.cpp
extern const Family kUdop, kIdefics, kPi0, kPpFormulanet;

}  // namespace assay::families
