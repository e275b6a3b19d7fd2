// Files that are written at the end of long work, whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Throws Error::io where one of them could not be created: better before hours of work than after. Empty
// paths, and "-" for stdout, are none. Leaves nothing behind, and what is there as it was.
void check_outputs(const std::vector<std::string>& paths);

// Under its name once all of it is there (AtomicFile); nothing where `path` is empty.
void write_whole(const std::filesystem::path& path, std::string_view text);

}  // namespace assay
