// What Qwen's omni models have beside their language model: towers that see and hear; the whole also parts that speak
// (omni_speech.cpp, omni3_speech.cpp).
#pragma once

#include <string>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

void add_omni_thinker(ConfigReader& document, ModuleTree& tree);  // Qwen2.5-Omni
void add_omni_whole(ConfigReader& document, ModuleTree& tree);
void add_omni_talker(ConfigReader& whole, ModuleTree& tree);
void add_omni3_thinker(ConfigReader& document, ModuleTree& tree);  // Qwen3-Omni
// Its ears alone, which Qwen3-ASR has as well.
void add_omni3_hearing(ConfigReader& document, ModuleTree& tree, const std::string& before);
void add_omni3_whole(ConfigReader& document, ModuleTree& tree);
void add_omni3_talker(ConfigReader& whole, ModuleTree& tree);

}  // namespace assay::families
