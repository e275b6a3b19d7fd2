#include "tests/support/published_config.h"

#include <string>

#include "tests/support/paths.h"

namespace assay::test {

std::filesystem::path published_configs() {
  return source_dir() / "data/fixtures/published_configs";
}

std::filesystem::path published_config(std::string_view model) {
  return published_configs() / (std::string(model) + ".json");
}

}  // namespace assay::test
