// Files that can run code when a model is loaded. They are named, never opened as what they are: a denylist
// of pickle opcodes keeps losing to new tricks, so "contains pickle: cannot be proven safe" is the honest
// verdict.
#pragma once

#include <string>
#include <vector>

#include "core/system/file.h"
#include "core/system/finding.h"

namespace assay {

// `name` relative to the root; looks at the name and, for what may be an archive in disguise, at the first
// bytes. `remote_code`: config.json has an auto_map, so that *.py files run under trust_remote_code.
Findings find_code(const std::string& name, const fs::path& path, bool remote_code);

// Does the config.json at `path` name Python files to run (auto_map)? False when there is none or it is
// unreadable.
bool has_auto_map(const fs::path& config);

}  // namespace assay
