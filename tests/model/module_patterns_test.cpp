#include "core/model/module_patterns.h"

#include <gtest/gtest.h>

#include "core/system/error.h"

namespace assay {
namespace {

constexpr const char* kGate = "model.layers.3.mlp.gate.weight";

TEST(ModulePatterns, NamesStandForWhatIsBelowThem) {
  const ModulePatterns names({"model.layers.3.mlp.gate", "lm_head", "model.vision"});
  EXPECT_TRUE(names.name(kGate));
  EXPECT_TRUE(names.name("lm_head.weight"));
  EXPECT_TRUE(names.name("model.vision.blocks.0.proj.weight"));
  EXPECT_FALSE(names.name("model.layers.3.mlp.gate_proj.weight"));
  EXPECT_FALSE(names.name("model.layers.30.mlp.gate.weight"));
  EXPECT_FALSE(names.name("model.visionary.weight"));
}

TEST(ModulePatterns, ANameWithoutDotsIsAPartOfNames) {
  const ModulePatterns names({"gate", "embed_tokens"});
  EXPECT_TRUE(names.name(kGate));
  EXPECT_TRUE(names.name("model.embed_tokens.weight"));
  EXPECT_FALSE(names.name("model.layers.3.mlp.gate_proj.weight"));
  EXPECT_FALSE(names.name("model.layers.3.mlp.gate"));  // the last part is the tensor's own
}

TEST(ModulePatterns, Wildcards) {
  const ModulePatterns names({"*.mlp.gate", "*lm_head*", "model.layers.1.*"});
  EXPECT_TRUE(names.name(kGate));
  EXPECT_TRUE(names.name("language_model.lm_head.weight"));
  EXPECT_TRUE(names.name("model.layers.1.self_attn.q_proj.weight"));
  EXPECT_FALSE(names.name("model.layers.10.self_attn.q_proj.weight"));
}

// Python's re.match on the module's name: from its start, not to its end.
TEST(ModulePatterns, RegularExpressions) {
  const ModulePatterns names({R"(re:.*lm_head)", R"(re:.*mlp\.gate$)", R"(re:model\.layers\.(1|2)\..*)"});
  EXPECT_TRUE(names.name("lm_head.weight"));
  EXPECT_TRUE(names.name(kGate));
  EXPECT_FALSE(names.name("model.layers.3.mlp.gate_proj.weight"));
  EXPECT_TRUE(names.name("model.layers.2.mlp.up_proj.weight"));
  EXPECT_FALSE(names.name("model.layers.12.mlp.up_proj.weight"));
  EXPECT_FALSE(names.name("before.model.layers.2.mlp.up_proj.weight"));
}

TEST(ModulePatterns, HostileExpressionsAreRefused) {
  EXPECT_THROW(ModulePatterns({"re:(unclosed"}), Error);
  EXPECT_THROW(ModulePatterns({"re:" + std::string(20'000, 'a')}), Error);
  const ModulePatterns runaway({"re:(a+)+$"});
  EXPECT_THROW(runaway.name(std::string(200, 'a') + "b"), Error);
}

}  // namespace
}  // namespace assay
