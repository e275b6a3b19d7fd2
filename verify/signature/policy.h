// Who may sign which models, in a file: what no rule covers is refused.
//
//   {"schema": "assay.signers/1",
//    "signers": {"nvidia": {"identity": "signer@nvidia.com", "issuer": "https://accounts.google.com"},
//                "lab":    {"public_key": "lab.pub"},
//                "house":  {"ca": ["ca.pem"]}},
//    "models":  [{"path": "nvidia/*", "signers": ["nvidia"]},
//                {"path": "*", "signers": ["lab", "house"]}]}
//
// A path is compared with as many of the last names of the model's folder as it has itself; * stands for any
// part of a name. The first rule whose path fits is the one. Files lie beside the policy.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "verify/signature/verify_bundle.h"

namespace assay::signature {

struct NamedMethod {
  std::string name;  // of the signer, in the policy
  Method method;
};

class Policy {
 public:
  // Throws Error::input; also for a field that is not known: a misspelled rule must not be no rule.
  static Policy read(const std::filesystem::path& file);
  // Throws Error::refused where no rule covers `model`, a path as plain_path() has it.
  std::vector<NamedMethod> methods_for(const std::filesystem::path& model) const;
  // Its own path and those of the keys, certificates and roots that it names.
  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  struct Rule {
    std::vector<std::string> path;  // name by name
    std::vector<std::string> signers;
  };
  std::vector<NamedMethod> signers_;
  std::vector<Rule> rules_;
  std::vector<std::unique_ptr<TrustedRoot>> roots_;  // of signers that have one of their own
  std::vector<std::filesystem::path> files_;
};

// Whether `pattern`, in which * stands for any characters, is `text`.
bool fits(std::string_view pattern, std::string_view text);

}  // namespace assay::signature
