// What MiniCPM-o speaks with, by its tts_config.
#pragma once

#include <string_view>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

// Of version 2.6 or 4.5.
void add_minicpm_speech(ConfigReader& document, ModuleTree& tree, std::string_view version);

}  // namespace assay::families
