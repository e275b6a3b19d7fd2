// Files that will be written at the end of long work.
#pragma once

#include <string>
#include <vector>

namespace assay {

// Throws Error::io where one of them could not be created: better before hours of work than after. Empty
// paths, and "-" for stdout, are none. Leaves nothing behind, and what is there as it was.
void check_outputs(const std::vector<std::string>& paths);

}  // namespace assay
