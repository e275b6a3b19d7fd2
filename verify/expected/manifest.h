// Digests the user gives: a manifest, a saved hub listing, one sha256; or none at all.
#pragma once

#include <string>
#include <vector>

#include "verify/expected/expected.h"

namespace assay {

// `manifest`: a checksum file (plain or chunked) or a hub listing, told apart by what is in it. `path`: the
// folder its names are relative to, or the one file that is meant; or a folder, and in it the files `only`.
// Throws Error::input where a file that is meant is not listed.
Expectation expect_from_manifest(const fs::path& manifest, const fs::path& path,
                                 const std::vector<std::string>& only = {});

// --sha256 HEX for one file. Throws Error::usage for what is no digest, or when `file` is a folder.
Expectation expect_from_sha256(std::string_view hex, const fs::path& file);

// A folder or file nobody vouches for: its files, without digests.
Expectation expect_nothing(const fs::path& path);

}  // namespace assay
