// Configs as strings, described; and what is stored of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"

namespace assay::test {

inline ModuleTree described(const std::string& config) {
  return describe(ModelConfig::from_json(parse_json(config, "config.json"), "config.json"));
}

inline void expect_stored(const ModuleTree& tree, const std::string& name, std::vector<std::uint64_t> shape) {
  const auto found = TensorLookup(tree).find(name);
  ASSERT_TRUE(found.has_value()) << name;
  EXPECT_EQ(found->spec->shape, shape) << name;
}

inline void expect_refused(const std::string& config, const std::string& why) {
  try {
    described(config);
    ADD_FAILURE() << "described: " << config;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

}  // namespace assay::test
