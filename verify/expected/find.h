// Finds out what PATH is, and who says what its files should be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verify/expected/expected.h"
#include "verify/expected/signature.h"

namespace assay {

struct FindOptions {
  std::optional<std::string> rev;             // --rev: a git commit is meant
  std::optional<fs::path> root;               // --root: the files lie here, not in the clone
  std::optional<fs::path> manifest;           // --manifest
  std::optional<std::string> sha256;          // --sha256
  std::optional<std::string> pin;             // --digest: what the manifest of a store has to be
  std::optional<SignatureRequest> signature;  // --signature, or whom to believe
  bool git = true;  // false (--no-git): the repository that PATH lies in is not asked
  // Of the folder PATH these files alone, by their names in it; empty: all of it.
  std::vector<std::string> only = {};
};

// PATH as every spelling of it is understood: absolute, without links, "." and ".." in its folders; a folder
// that is a link is the folder it leads to. The last name of a file stays, link or not. Throws Error::input
// where there is nothing.
fs::path plain_path(const fs::path& path);

// What the user names is asked alone: --sha256, --manifest, a signature, --rev or --root. Otherwise a Hugging Face cache,
// if `path` is one; else the git commit that holds this folder's weights and the metadata of a --local-dir
// download together, each file by the best that either knows; else nobody (structure only).
// A source that is there and cannot be read is an Error, never "nobody".
Expectation find_expectation(const fs::path& path, const FindOptions& options = {});

}  // namespace assay
