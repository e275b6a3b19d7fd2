// A blob as git writes it into the work tree. Where .gitattributes or core.autocrlf ask for other line ends,
// for $Id: …$ or another encoding, a clean clone's file is not its blob: it is compared with what git makes
// of the blob, byte for byte. Source: gitattributes(5), "Effects".
#pragma once

#include <optional>
#include <string>

#include "verify/expected/expected.h"
#include "verify/expected/git_attributes.h"

namespace assay::git {

// nullopt where the encoding is not known here, or cannot hold the text. A filter's program is not run.
std::optional<std::string> checked_out(std::string blob, const CheckoutRule& rule, std::string_view blob_id);

// Exchanges, where the file on disk does not have its blob's length, what is expected of it. A file that goes
// through a filter's program, and is not its blob, has nobody who says what it should be. `above`: what
// stands before the expectation's names in the commit, "" or "folder/".
void expect_as_checked_out(const Repository& repository, const git_oid& commit, const std::string& above,
                           Expectation& expectation);

}  // namespace assay::git
