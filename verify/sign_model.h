// `assay manifest --sign`: the list of a model's files, signed (OpenSSF Model Signing 1.0).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "verify/make_manifest.h"
#include "verify/signature/sign.h"

namespace assay {

struct SigningOptions {
  fs::path private_key;  // must not lie in the folder
  fs::path output;       // the bundle; empty: model.sig in the folder, FILE.sig beside a file
  std::vector<std::string> ignore_paths;  // besides those that are never signed
  bool follow_links = false;
};

struct SignedManifest {
  MadeManifest made;
  fs::path output;
  std::string bundle;       // the text; empty where it was interrupted
  std::string root_digest;  // over all of the files, hex
  std::vector<std::string> ignored;
};

// Reads every file of `path` but those left out; what the state file of `options` knows to be unchanged is not read
// again. Throws Error::refused where a file is not what its source says, or a link that is not to be followed.
SignedManifest sign_model(const fs::path& path, ManifestOptions options, const SigningOptions& signing,
                          const signature::SigningKey& key);

}  // namespace assay
