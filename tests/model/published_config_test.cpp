// The configs of data/fixtures/published_configs against the published files, where those are at hand.
#include <gtest/gtest.h>

#include <set>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/file.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

ParsedJson read(const fs::path& path) {
  return parse_json(test::read_file(path), path.string());
}

void expect_part_of(const ParsedJson& part, const ParsedJson& whole, const std::string& where) {
  for (const auto& [key, value] : part.items()) {
    const std::string at = where + "." + key;
    ASSERT_TRUE(whole.contains(key)) << at;
    if (value.is_object())
      expect_part_of(value, whole[key], at);
    else
      EXPECT_EQ(value, whole[key]) << at;
  }
}

std::set<std::string> keys_defaulted(const ModuleTree& tree) {
  std::set<std::string> keys;
  for (const DefaultTaken& taken : tree.defaults) keys.insert(taken.key);
  return keys;
}

// Each key says what it says there; and none that a description reads was left out, or a default would stand
// for it here alone.
TEST(PublishedConfigs, SayWhatThePublishedFilesSay) {
  ASSAY_CASE_OR_SKIP(published, "configs");
  std::size_t compared = 0;
  for (const auto& entry : fs::directory_iterator(test::published_configs())) {
    const fs::path ours = entry.path(), theirs = published / ours.filename();
    SCOPED_TRACE(ours.filename());
    expect_part_of(read(ours), read(theirs), "");
    EXPECT_EQ(keys_defaulted(describe(ModelConfig::read(ours))),
              keys_defaulted(describe(ModelConfig::read(theirs))));
    ++compared;
  }
  EXPECT_EQ(compared, 29U);
}

}  // namespace
}  // namespace assay
