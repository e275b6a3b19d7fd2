// Families that embed, rank, recognize and compare: encoders of text, of images and of sound by themselves.
#pragma once

#include "core/model/families/families.h"

namespace assay::families {

// text_encoders.cpp (BERT and RoBERTa themselves: all_2026.h)
extern const Family kMpnet, kDistilbert, kElectra, kErnie, kLayoutlm, kMegatronBert, kRobertaXl, kRoformer,
    kData2vecText, kEsm, kLongformer, kBigBird;
// deberta.cpp, albert.cpp
extern const Family kDeberta, kDebertaV2, kAlbert;
// turned_encoders.cpp, flash_encoders.cpp, modernbert.cpp
extern const Family kNomicBert, kGte, kJinaV3, kEurobert, kModernVBert, kColModernVBert;
// paired_encoders.cpp, image_encoders.cpp, sound_encoders.cpp
extern const Family kClip, kSiglip, kSiglip2Pair, kClipText, kClipVision, kSiglipVision, kImageClasses;
extern const Family kVit, kDeit, kDino2, kDino2Registers, kDino3, kSpectrogram;
extern const Family kWav2vec2, kHubert, kWavlm, kUnispeech, kData2vecAudio;
// w2v_bert.cpp, captioners.cpp, composed.cpp
extern const Family kW2vBert, kBlip, kTrocr;
// t5_kin.cpp, encoder_decoders.cpp
extern const Family kLongT5, kSwitch, kNllbMoe, kLed, kBigbirdPegasus, kPegasusX;
// further_encoders.cpp
extern const Family kJinaBert, kNeobert, kRembert, kPrelayernorm, kBertGeneration, kLayoutlmv3, kDpr;
// early_translators.cpp, speecht5.cpp, seamless.cpp
extern const Family kFsmt, kProphetnet, kPix2struct, kSpeecht5, kSeamless;
// paired_encoders.cpp, clap.cpp, depth_anything.cpp
extern const Family kOwl, kOwl2, kClap, kDepthAnything;
// embedding_gemma2.cpp, sam.cpp
extern const Family kEmbeddingGemma2, kSam;
// swin.cpp, further_images.cpp, staged_images.cpp
extern const Family kSwin, kSwin2, kDonutSwin, kBeit, kData2vecVision, kYolos, kMae, kVideomae, kConvnext,
    kConvnext2, kSegformer;
// late_interaction.cpp
extern const Family kColbert;
// cogvlm.cpp
extern const Family kCogvlm;

}  // namespace assay::families
