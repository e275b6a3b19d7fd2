// What a family's description says of a config that a test writes out.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"

namespace assay::test {

inline ModelConfig config_of(const std::string& architecture, const std::string& keys) {
  const std::string text = fmt::format(R"({{"architectures": ["{}"], {}}})", architecture, keys);
  return ModelConfig::from_json(parse_json(text, "config.json"), "config.json");
}

inline ModuleTree described(const std::string& config) {
  return describe(ModelConfig::from_json(parse_json(config, "config.json"), "config.json"));
}

inline void expect_refused(const std::string& config, const std::string& why) {
  try {
    described(config);
    ADD_FAILURE() << "described: " << config;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

inline ModuleTree tree_of(const std::string& architecture, const std::string& keys) {
  return describe(config_of(architecture, keys));
}

inline void expect_stored(const ModuleTree& tree, const std::string& name,
                          const std::vector<std::uint64_t>& shape) {
  const auto found = TensorLookup(tree).find(name);
  ASSERT_TRUE(found.has_value()) << name;
  EXPECT_NE(found->spec->storage, Storage::tied) << name;
  EXPECT_EQ(found->spec->shape, shape) << name;
}

}  // namespace assay::test
