// What `assay verify PATH…` names. Each folder has a verdict of its own; files are judged with the others
// that are named of their folder (`*.safetensors`), by one source of digests.
#pragma once

#include <string>
#include <vector>

#include "core/system/file.h"

namespace assay {

struct Target {
  std::string shown;                    // as the user spelled it; of files, their folder
  fs::path path;                        // a folder, or one file
  std::vector<std::string> files = {};  // of that folder these alone; empty: all of it
};

// One path is a target as it stands. Of several, each is looked for, so that a misspelled one is known before
// anything is hashed; what is named twice is one target, and so are two files of a folder. Throws
// Error::input where there is nothing.
std::vector<Target> targets_of(const std::vector<std::string>& paths);

}  // namespace assay
