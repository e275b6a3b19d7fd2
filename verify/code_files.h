// Files that can run code when a model is loaded. They are named, never opened as what they are: a denylist
// of pickle opcodes keeps losing to new tricks, so "contains pickle: cannot be proven safe" is the honest
// verdict.
#pragma once

#include <string>
#include <vector>

#include "core/system/file.h"
#include "core/system/finding.h"

namespace assay {

// `name` relative to the root; looks at the name and, for what may be an archive in disguise, at the bytes.
// `remote_code`: a config beside it has an auto_map, so that *.py files run under trust_remote_code.
Findings find_code(const std::string& name, const fs::path& path, bool remote_code);

// What a config tells loaders to run under trust_remote_code: auto_map and custom_pipelines, which name
// Python beside it, or ("org/name--module.Class") in another repository.
struct RemoteCode {
  bool asked = false;  // it names any
  Findings findings;   // code that is not among these files
};
bool may_name_code(std::string_view name);  // config.json, tokenizer_config.json, processor_config.json, …
RemoteCode read_remote_code(const std::string& name, const fs::path& path);

}  // namespace assay
