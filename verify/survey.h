// The first look: which of the expected files are there, which others are, and is each of them plausible?
// Metadata and first bytes only.
#pragma once

#include <vector>

#include "verify/verify.h"

namespace assay {

// One FileReport per expected file and per file that is there without being expected, sorted by name. Status
// is `ok` where nothing cheap speaks against it and its bytes are still to be hashed, `unchecked` where no
// digest is known, or the final failed / missing / extra / unreadable.
std::vector<FileReport> survey(const Expectation& expectation, const VerifyOptions& options);

}  // namespace assay
