// Keys that an architecture's GGUF has beside those of every one.
#include "core/model/gguf_own_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

// llama.cpp loads no file whose list is longer than its layers; GLM's lists count those for multi-token prediction.
TEST(GgufOwnKeys, IndexersAreToldOfAsManyLayersAsThereAre) {
  const test::TempDir dir;
  auto config = nlohmann::json::parse(
      test::read_file(test::source_dir() / "data/fixtures/gguf_families/glm_moe_dsa.json"));
  ASSERT_TRUE(config.contains("indexer_types"));
  config["indexer_types"].push_back("full");
  config["indexer_types"].push_back("shared");
  test::write_file(dir / "config.json", config.dump());
  const ModelConfig read = ModelConfig::read(dir / "config.json");
  const ModuleTree tree = describe(read);
  const auto keys = gguf_own_keys(read, *gguf_family_of(tree), 0);
  const auto types = std::find_if(keys.begin(), keys.end(), [](const gguf::KeyValue& key) {
    return key.key == "glm-dsa.attention.indexer.types";
  });
  ASSERT_NE(types, keys.end());
  EXPECT_EQ(std::get<gguf::Array>(types->value).count, tree.layers);
}

}  // namespace
}  // namespace assay
