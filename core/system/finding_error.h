// Findings where there is nobody to collect them: the first error is thrown.
#pragma once

#include "core/system/error.h"
#include "core/system/finding.h"

namespace assay {

// Where a finding's file lies, `source` having been examined: a folder, or a file beside which the others are.
inline std::filesystem::path path_of(const Finding& finding, const std::filesystem::path& source) {
  if (finding.file.empty()) return source;
  std::error_code ignored;
  return (std::filesystem::is_directory(source, ignored) ? source : source.parent_path()) / finding.file;
}

inline void throw_first_error(const Findings& findings, const std::filesystem::path& source) {
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::error) continue;
    throw Error::input(finding.message)
        .in(path_of(finding, source))
        .tensor(finding.tensor)
        .remedy(finding.remedy);
  }
}

}  // namespace assay
