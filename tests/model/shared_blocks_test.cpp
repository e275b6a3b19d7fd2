// Blocks that several layers share: kept once, counted once, and computed in each.
#include <gtest/gtest.h>

#include <string>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

ModuleTree small_model(const std::string& name) {
  return describe(ModelConfig::read(test::source_dir() / "data/fixtures/configs" / (name + ".json")));
}

// Every tied block names the tensor that counts, in the first layer that has the block.
TEST(SharedBlocks, AreTiedToTheFirstLayerThatHasThem) {
  for (const char* name : {"zamba", "zamba2"}) {
    SCOPED_TRACE(name);
    const ModuleTree tree = small_model(name);
    const TensorLookup lookup(tree);
    std::size_t tied = 0;
    for_each_tensor(tree, [&](const std::string& tensor, const TensorSpec& spec, const TensorIndices&) {
      if (spec.storage != Storage::tied || spec.part == Part::output) return;
      ++tied;
      const auto original = lookup.find(spec.same_as);
      ASSERT_TRUE(original) << tensor << " is the same as " << spec.same_as;
      EXPECT_EQ(original->spec->storage, Storage::own) << spec.same_as;
      EXPECT_EQ(original->spec->shape, spec.shape) << tensor;
    });
    EXPECT_GT(tied, 8U);
  }
}

TEST(SharedBlocks, ComputeInEveryLayer) {
  for (const char* name : {"zamba", "zamba2"}) {
    SCOPED_TRACE(name);
    const ModuleTree tree = small_model(name);
    std::uint64_t matrices = 0, own = 0;
    for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
      if (spec.storage == Storage::own) own += spec.elements.value() * where.copies;
      if (spec.shape.size() < 2 || spec.bias || spec.part == Part::output) return;
      matrices += spec.elements.value() * where.copies;  // the embedding is the head
    });
    const Totals totals = count(tree);
    EXPECT_EQ(totals.matmul_active, matrices);
    EXPECT_GT(totals.matmul_active, totals.active);
    EXPECT_EQ(totals.total, own);
    EXPECT_EQ(totals.active, own);
  }
}

// transformers' class by default, on the meta device.
TEST(ClassDefaults, GlmRoundsTheWidthOfHeadsDown) {
  const ModuleTree tree = describe(ModelConfig::from_json(
      ParsedJson::parse(R"({"architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe"})"),
      "config.json"));
  EXPECT_EQ(count(tree).total, 103'481'206'400U);
  EXPECT_EQ(tree.attention.front().qk_head_dim, 42U);
}

}  // namespace
}  // namespace assay
