// Names of files under construction: `.<name>.assay-<machine>-<process>.tmp`, beside what they will become.
#pragma once

#include <filesystem>

namespace assay {

// For this process. Removes what processes of this machine that are gone left of the same target, as a kill
// -9 does. A process elsewhere (another host or container that sees the folder too) cannot be asked whether
// it lives: its files stay.
std::filesystem::path temporary_name(const std::filesystem::path& target);

}  // namespace assay
