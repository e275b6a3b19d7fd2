// Findings where there is nobody to collect them: the first error is thrown.
#pragma once

#include "core/system/error.h"
#include "core/system/finding.h"

namespace assay {

// `source`: what was examined, where the finding names no file.
inline void throw_first_error(const Findings& findings, const std::filesystem::path& source) {
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::error) continue;
    throw Error::input(finding.message)
        .in(finding.file.empty() ? source : std::filesystem::path(finding.file))
        .tensor(finding.tensor)
        .remedy(finding.remedy);
  }
}

}  // namespace assay
