// Families of 2026, and older ones described since: beside all.h, so that a new one leaves the files of the others as
// they are.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

extern const Family kOlmoHybrid, kZamba, kZamba2, kLfm3, kKolibri1, kFlint, kGraniteMoeSwa, kAxk2, kHyV4,
    kOpenaiGpt, kCtrl, kXglm, kBiogpt, kNeoxJapanese, kRecurrentGemma, kRwkv, kXlstm, kEmu3, kCohereCompass,
    kDoge, kModernbertDecoder, kHrmText, kAriaText, kJetmoe, kZaya, kDots3Note, kQwen4Exp, kInkling,
    kInkling2, kMistralLarge4, kGemma3n, kGemma4Unified, kPhi4Multimodal, kBeam, kMllama, kPaddleocrVl,
    kGlmOcr, kErnie45Vl, kHunyuanVl, kGlm5Next, kMuseSpark, kMuseGlimmer, kMolmo2;

// Those of dense_own_code.cpp and looped_decoders.cpp.
extern const Family kDeepseekV1, kExaone3, kInternlm3, kOrion, kPanguEmbedded, kSolarPro, kTelechat2,
    kTelechat3, kTeleflm, kIquestcoder, kRnj1, kStep1, kNanbeige, kIquestloopcoder;

// Language models that stand within models that hear, or see, and nowhere alone.
extern const Family kVoxtralText, kOcrText;

// Phi with eyes, Molmo, Kimi-Audio: own code; and Whisper.
extern const Family kPhi3V, kPhi4Mm, kPhi4Siglip, kMolmo, kKimiAudio, kWhisper;

// Encoders of text, and what reads with one and writes with a decoder.
extern const Family kBert, kRoberta, kModernBert, kT5, kMt5, kUmt5, kBart, kMbart;

}  // namespace assay::families
