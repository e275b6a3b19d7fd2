// Damage that only shows when files are compared with each other: renamed, swapped, copied over.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "verify/verify_report.h"

namespace assay {

// A file that nothing was expected of may be a missing one under another name: its size says so first, or,
// where sizes are not known, its extension.
class MissingFiles {
 public:
  explicit MissingFiles(const VerifyReport& report);
  // The kind of digest by which `file` would have to be compared; nullopt: it is none of the missing ones.
  std::optional<DigestKind> kind_sought(const FileReport& file) const;

 private:
  std::map<std::uint64_t, DigestKind> sizes_;
  std::map<std::string, DigestKind> extensions_;
};

// Rewrites diagnoses once everything that will be hashed is hashed.
void explain_relations(VerifyReport& report);

}  // namespace assay
