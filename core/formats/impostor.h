// A file under a weight file's name that is something else: what its first bytes show it to be, in place of
// an error about the format it does not have.
#pragma once

#include <string_view>

#include "core/system/file.h"

namespace assay {

// `head`: the first bytes, of which blanks and a byte order mark are skipped.
bool looks_like_html(std::string_view head);

// Throws Error::input when the file is a git-lfs pointer or a web page. For readers that have met an error.
void refuse_impostor(const File& file);

}  // namespace assay
