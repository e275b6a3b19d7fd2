// Finds out what PATH is, and who says what its files should be.
#pragma once

#include <optional>
#include <string>

#include "verify/expected/expected.h"

namespace assay {

struct FindOptions {
  std::optional<std::string> rev;     // --rev: a git commit is meant
  std::optional<fs::path> root;       // --root: the files lie here, not in the clone
  std::optional<fs::path> manifest;   // --manifest
  std::optional<std::string> sha256;  // --sha256
};

// What the user names comes first: --sha256, --manifest, --rev or --root. Otherwise the most authoritative of
// what is found: a Hugging Face cache, a git commit that holds this folder's weights, the metadata of a
// --local-dir download, nothing (structure only). The others found are named in notes.
Expectation find_expectation(const fs::path& path, const FindOptions& options = {});

}  // namespace assay
