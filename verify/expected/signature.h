// A signed list of a model's files (OpenSSF Model Signing): digests on the word of whoever signed it, once the signature
// is verified in the way the user has named.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/expected/expected.h"

namespace assay {

// Every signer leaves these out of the model's root (OMS 1.0, §6.2).
inline constexpr std::string_view kNeverSigned[] = {".git", ".gitignore", ".gitattributes", ".github"};

struct SignatureRequest {
  std::optional<fs::path> bundle;  // --signature; otherwise it is looked for beside the model
  // Whom to believe: exactly one of these ways.
  std::optional<fs::path> public_key;
  std::vector<fs::path> authorities;            // --ca
  std::optional<std::string> identity, issuer;  // keyless: both
  std::optional<fs::path> policy;

  std::optional<fs::path> trusted_root;   // keyless: in place of the built-in one
  std::vector<std::string> ignore_paths;  // besides those that the signer has named
  bool names_signer() const { return public_key || !authorities.empty() || identity || issuer || policy; }
};

// What --ignore-path means: a name below the model's folder, also where it is given from the file system's root. Throws
// Error::usage where it lies elsewhere.
std::string ignored_name(const std::string& given, const fs::path& folder);

// `path`: a folder, or the one file that is meant; or a folder, and in it the files `only`. A signature that is not
// good, by nobody who is believed, or of other files is a finding: then nobody vouches for anything. Throws Error::input
// for what cannot be read, Error::usage for a request that names no way or several.
Expectation expect_from_signature(const SignatureRequest& request, const fs::path& path,
                                  const std::vector<std::string>& only = {});

// The bundle that lies beside a model, under a name that signers give them: model.sig, *.oms.sig, claims.jsonl;
// FILE.sig or FILE.oms.sig beside a file or a folder. Throws Error::input where there are several *.oms.sig.
std::optional<fs::path> find_bundle(const fs::path& path);

}  // namespace assay
