// What a git commit says its files are: LFS pointers (sha256 and size of the weights) and blobs (git object
// ids).
//
// The commit is read from the object database, loose or packed, not from the work tree, where git-lfs has put
// real files in the pointers' places. Neither git nor git-lfs need be installed.
#pragma once

#include <optional>
#include <string>

#include "verify/expected/expected.h"

namespace assay {

// `inside`: a clone, a folder or a file in it, or a bare repository (then `root` says where the files are).
// No file outside of the folder that holds `.git` is ever meant, unless `root` says so. Throws Error::input
// when there is no repository or it cannot be read; git::NoWord when it is whole but has no commit, or one
// without files; git::NotHeld when the commit does not hold `inside`.
Expectation expect_from_git(const fs::path& inside, const std::string& revision = "HEAD",
                            const std::optional<fs::path>& root = std::nullopt);

}  // namespace assay
