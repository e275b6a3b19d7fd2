#include "tests/support/paths.h"

namespace assay::test {

std::filesystem::path source_dir() {
  return ASSAY_SOURCE_DIR;
}
std::string assay_binary() {
  return ASSAY_BINARY;
}
std::filesystem::path plugin_dir() {
  return ASSAY_PLUGIN_DIR;
}

}  // namespace assay::test
