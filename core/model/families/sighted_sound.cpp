// The table of models that hear: a known language model behind an encoder of sound (sighted.cpp has those that see).
#include "core/model/families/hearing.h"
#include "core/model/families/omni.h"
#include "core/model/families/sighted.h"
#include "core/model/families/sighted_parts.h"
#include "core/model/families/sound_towers.h"
#include "core/model/families/towers.h"
#include "core/model/tower_blocks.h"

namespace assay::families {
namespace {

using namespace blocks;

void add_qwen2_audio(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  add_tower(tree, whisper_encoder(*audio, "audio_tower"));
  Module projector{"multi_modal_projector", "projector", {}, {}, {}};
  Tower(projector, Part::projector).matrix("linear", whisper_width(*audio), text_width(tree), true);
  add_tower(tree, std::move(projector));
}

// As many frames as make the width of the encoder's MLP are joined: four.
void add_voxtral(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  add_tower(tree, whisper_encoder(*audio, "audio_tower"));
  const Quantity out = text_width(tree);
  add_tower(tree, two_matrices("multi_modal_projector", whisper_wide(*audio), out, out, false));
}

void add_audio_flamingo(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  add_tower(tree, whisper_encoder(*audio, "audio_tower"));
  const Quantity out = text_width(tree);
  add_tower(tree, two_matrices("multi_modal_projector", whisper_width(*audio), out, out,
                               document.flag("projector_bias", true)));
}

void add_moss_transcribe(ConfigReader& document, ModuleTree& tree) {
  constexpr WhisperClass kClass = {.bins = 80, .hidden = 1024, .layers = 24, .wide = 4096};
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  add_tower(tree, whisper_encoder(*audio, "model.audio_tower", kClass));
  const Quantity joined = whisper_width(*audio, kClass) * document.size("audio_merge_size", 4);
  const Quantity out = text_width(tree);
  Module projector =
      two_matrices("model.multi_modal_projector", joined, out, out, document.flag("projector_bias", true));
  Tower(projector, Part::projector).norm("norm", out, true);
  add_tower(tree, std::move(projector));
}

void add_qwen3_asr(ConfigReader& document, ModuleTree& tree) {
  TowerConfig audio(document, tree, "audio_config");
  if (!audio) return;
  add_tower(tree,
            spectrum_encoder(*audio, "model.audio_tower", {.hidden = 1024, .layers = 24, .wide = 4096}));
  const Quantity width = audio->size("d_model|hidden_size", 1024);
  add_tower(tree,
            two_matrices("model.multi_modal_projector", width, width, audio->size("output_dim", 3584), true));
}

// Its own code keeps Qwen3-Omni's names, within thinker_config.
void add_qwen3_asr_own(ConfigReader& document, ModuleTree& tree) {
  add_omni3_hearing(document, tree, "thinker.");
}

using Names = std::string_view;
constexpr Names kQwen2Audio[] = {"Qwen2AudioForConditionalGeneration"}, kQwen2AudioTypes[] = {"qwen2_audio"};
constexpr Names kVoxtral[] = {"VoxtralForConditionalGeneration"}, kVoxtralTypes[] = {"voxtral"};
constexpr Names kVoxtralLive[] = {"VoxtralRealtimeForConditionalGeneration"},
                kVoxtralLiveTypes[] = {"voxtral_realtime"};
constexpr Names kFlamingo[] = {"AudioFlamingo3ForConditionalGeneration",
                               "MusicFlamingoForConditionalGeneration"},
                kFlamingoTypes[] = {"audioflamingo3", "musicflamingo"};
constexpr Names kGlmAsr[] = {"GlmAsrForConditionalGeneration"}, kGlmAsrTypes[] = {"glmasr"};
constexpr Names kQwen3Asr[] = {"Qwen3ASRForConditionalGeneration"}, kQwen3AsrTypes[] = {"qwen3_asr"};
constexpr Names kFunAsrNano[] = {"FunAsrNanoForConditionalGeneration"}, kFunAsrNanoTypes[] = {"fun_asr_nano"};
constexpr Names kMossTranscribe[] = {"MossTranscribeDiarizeForConditionalGeneration"},
                kMossTranscribeTypes[] = {"moss_transcribe_diarize"};
constexpr Names kOmniAsr[] = {"OmniASRForConditionalGeneration"}, kOmniAsrTypes[] = {"omniasr"};
constexpr Names kGraniteSpeech[] = {"GraniteSpeechForConditionalGeneration",
                                    "GraniteSpeechPlusForConditionalGeneration"},
                kGraniteSpeechTypes[] = {"granite_speech", "granite_speech_plus"};
constexpr Names kVibevoiceAsr[] = {"VibeVoiceAsrForConditionalGeneration"},
                kVibevoiceAsrTypes[] = {"vibevoice_asr"};
constexpr Names kVibevoice[] = {"VibeVoiceForConditionalGeneration"}, kVibevoiceTypes[] = {"vibevoice"};
constexpr Names kOwnVibevoiceAsr[] = {"VibeVoiceForASRTraining", "VibeVoiceASRForConditionalGeneration"};
constexpr Names kTranscribe[] = {"Nemotron3_5TranscribeForConditionalGeneration"},
                kTranscribeTypes[] = {"nemo_speechlm"};
constexpr std::string_view kFireRed[] = {"FireRedASR2ForConditionalGeneration"};

constexpr auto kHearFirst = SightedNames::language_model_first;
constexpr auto kHearModel = SightedNames::model_first;
constexpr auto kHearDocument = ModelConfig::Tied::document_first, kHearNever = ModelConfig::Tied::never,
               kHearTies = ModelConfig::Tied::document_ties;
constexpr Sighted kHearing[] = {
    {"Qwen2-Audio", kQwen2Audio, kQwen2AudioTypes, kHearFirst, kHearNever, add_qwen2_audio},
    {"Voxtral", kVoxtral, kVoxtralTypes, kHearFirst, kHearNever, add_voxtral},
    {"Voxtral Realtime", kVoxtralLive, kVoxtralLiveTypes, kHearFirst, kHearTies, add_voxtral_realtime},
    {"Audio Flamingo 3, Music Flamingo", kFlamingo, kFlamingoTypes, kHearFirst, kHearNever,
     add_audio_flamingo},
    {"GLM-ASR", kGlmAsr, kGlmAsrTypes, kHearFirst, kHearTies, add_glm_asr},
    {"Qwen3-ASR", kQwen3Asr, kQwen3AsrTypes, SightedNames::thinker, kHearDocument, add_qwen3_asr_own,
     "thinker_config.text_config"},
    {"Qwen3-ASR", kQwen3Asr, kQwen3AsrTypes, kHearModel, kHearTies, add_qwen3_asr},
    {"Fun-ASR-Nano", kFunAsrNano, kFunAsrNanoTypes, kHearModel, kHearTies, add_fun_asr_nano},
    {"MOSS-Transcribe-Diarize", kMossTranscribe, kMossTranscribeTypes, kHearModel, kHearTies,
     add_moss_transcribe},
    {"OmniASR", kOmniAsr, kOmniAsrTypes, kHearModel, kHearNever, add_omni_asr},
    {"Granite Speech", kGraniteSpeech, kGraniteSpeechTypes, kHearFirst, kHearTies, add_granite_speech},
    {"FireRedASR 2", kFireRed, {}, SightedNames::own, kHearDocument, add_fire_red, "", "llm.", fire_red_text},
    {"VibeVoice-ASR", kVibevoiceAsr, kVibevoiceAsrTypes, kHearFirst, kHearNever, add_vibevoice_asr},
    {"VibeVoice-ASR",
     kOwnVibevoiceAsr,
     {},
     kHearModel,
     kHearDocument,
     add_own_vibevoice_asr,
     "decoder_config"},
    {"VibeVoice", kVibevoice, kVibevoiceTypes, kHearModel, kHearDocument, add_own_vibevoice,
     "decoder_config"},
    {"VibeVoice", kVibevoice, kVibevoiceTypes, kHearModel, kHearDocument, add_vibevoice, "text_config"},
    {"Nemotron 3.5 Transcribe", kTranscribe, kTranscribeTypes, SightedNames::own, kHearNever,
     add_nemotron_transcribe, "", "llm."},
};

}  // namespace

std::span<const Sighted> models_that_hear() {
  return kHearing;
}

}  // namespace assay::families
