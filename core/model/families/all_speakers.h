// Families that speak, that make codes of sound and sound of codes, and that write what they hear frame by frame.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

// codec_mimi.cpp, codec_dac.cpp
extern const Family kMimi, kDac;
// speakers.cpp
extern const Family kCsm, kDia, kKyutaiStt, kMoshi, kHiggs;
// vits.cpp
extern const Family kVits, kSpeecht5HifiGan;
// transducers.cpp
extern const Family kParakeetCtc, kParakeetRnnt, kParakeetTdt, kNemotronAsrStreaming, kNemotron35Asr;
// nemotron_speech.cpp, sound_encoders.cpp
extern const Family kNemotronDiarization, kWav2vec2Conformer;

// codec_encodec.cpp, musicgen.cpp, bark.cpp
extern const Family kEncodec, kMusicgen, kMusicgenMelody, kBark;
// speech_to_text.cpp, t5_kin.cpp
extern const Family kSpeechToText, kPop2piano;

}  // namespace assay::families
