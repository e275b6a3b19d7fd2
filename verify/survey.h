// The first look: which of the expected files are there, which others are, and is each of them plausible?
// Metadata and first bytes only.
#pragma once

#include <string_view>
#include <vector>

#include "verify/verify.h"

namespace assay {

// Of a file with holes: a warning, until its digest proves that they are zeros that belong there.
inline constexpr std::string_view kNeverWritten = "file.never_written";

// A small file that will be hashed: what it is, is seen soon enough then. Looking first would double the
// work. Not so for weights: what is wrong with them is to be known before the large ones are read.
bool seen_when_hashed(const FileReport& file, const VerifyOptions& options);

// One FileReport per expected file and per file that is there without being expected, sorted by name;
// --include and --exclude are not asked here. Status
// is `ok` where nothing cheap speaks against it and its bytes are still to be hashed, `unchecked` where no
// digest is known, or the final failed / missing / extra / unreadable.
// Links to folders are no files; `findings` tells of them. The expectation's files go into the reports.
std::vector<FileReport> survey(Expectation& expectation, const VerifyOptions& options, Findings& findings);

}  // namespace assay
