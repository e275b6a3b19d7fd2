// Where the checkout and the program under test lie. Told by one source file, so that no other object file
// depends on the place of the build (and a compiler cache serves every checkout).
#pragma once

#include <filesystem>
#include <string>

namespace assay::test {

std::filesystem::path source_dir();
std::string assay_binary();
// The example plugins (tests/plugin), built.
std::filesystem::path plugin_dir();

}  // namespace assay::test
