// Mimi, Kyutai's codec of sound: what makes codes of sound, and sound of codes. By itself, and within models that speak.
#pragma once

#include <string>
#include <vector>

#include "core/model/config.h"
#include "core/model/module_tree.h"

namespace assay::families {

// Its parts, below `path` ("codec_model", or ""), under the names of Kyutai's release.
std::vector<Module> mimi_parts(ConfigReader& config, const std::string& path);
// Within another model: from the object `key` of its config, which may be missing, as one tower.
void add_mimi(ConfigReader& whole, ModuleTree& tree, const std::string& key, const std::string& path);

}  // namespace assay::families
