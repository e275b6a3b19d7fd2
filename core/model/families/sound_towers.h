// Encoders of sound that one family each has, and what leads from them into its language model. Each reads the
// document's objects for them.
#pragma once

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

void add_granite_speech(ConfigReader& document, ModuleTree& tree);
void add_fun_asr_nano(ConfigReader& document, ModuleTree& tree);
void add_omni_asr(ConfigReader& document, ModuleTree& tree);
void add_voxtral_realtime(ConfigReader& document, ModuleTree& tree);
// vibevoice.cpp: what hears, and what speaks; as transformers saves them, and as their own code does.
void add_vibevoice_asr(ConfigReader& document, ModuleTree& tree);
void add_vibevoice(ConfigReader& document, ModuleTree& tree);
void add_own_vibevoice_asr(ConfigReader& document, ModuleTree& tree);
void add_own_vibevoice(ConfigReader& document, ModuleTree& tree);
// fire_red.cpp
std::string_view fire_red_text(const ModelConfig& config);
void add_fire_red(ConfigReader& document, ModuleTree& tree);
void add_glm_asr(ConfigReader& document, ModuleTree& tree);
void add_nemotron_transcribe(ConfigReader& document, ModuleTree& tree);  // nemotron_speech.cpp

}  // namespace assay::families
