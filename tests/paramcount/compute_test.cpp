// Work of a token, against figures others counted.
#include "paramcount/compute.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

TEST(Compute, DeepSeekV3) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const ComputeReport report = compute(describe(ModelConfig::read(path)), 8192);
  EXPECT_EQ(report.matmul_active, 36'624'596'992u);
  EXPECT_EQ(report.decode, 114'190'598'144u);
  EXPECT_EQ(report.prefill, 767'753'388'556'288u);
  EXPECT_NEAR(report.attention_intensity, 241.8, 0.05);
}

TEST(Compute, KimiHasHalfTheHeads) {
  const fs::path path = test::published_config("Kimi-K2-Instruct");
  EXPECT_NEAR(compute(describe(ModelConfig::read(path)), 1).attention_intensity, 120.9, 0.05);
}

struct CrossingCase {
  const char* config;
  double block, mlp, linear;
};
void PrintTo(const CrossingCase& c, std::ostream* out) {
  *out << c.config;
}
class Crossings : public testing::TestWithParam<CrossingCase> {};

TEST_P(Crossings, LastKindOfLayer) {
  const fs::path path = test::published_config(GetParam().config);
  const ComputeReport report = compute(describe(ModelConfig::read(path)), 1);
  const Crossing* last = nullptr;
  for (const Crossing& crossing : report.crossings) {
    if (!crossing.absorbed) last = &crossing;
  }
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(std::llround(last->block_equals_mlp), GetParam().block);
  EXPECT_EQ(std::llround(last->scores_equal_mlp), GetParam().mlp);
  EXPECT_EQ(std::llround(last->scores_equal_linear), GetParam().linear);
}

// Per token and layer: projections and MLP at 2 FLOPs a weight, scores and values at 2 × heads × (dqk + dv) a
// key.
INSTANTIATE_TEST_SUITE_P(Models, Crossings,
                         testing::Values(CrossingCase{"Llama-2-7b-hf", 8'320, 16'512, 24'704},
                                         CrossingCase{"Llama-3.1-8B", 16'384, 21'504, 26'624},
                                         CrossingCase{"Llama-3.2-1B-Instruct", 9'728, 12'288, 14'848},
                                         CrossingCase{"Qwen2.5-7B-Instruct", 24'320, 28'416, 32'512},
                                         CrossingCase{"Qwen3-0.6B", 768, 2'304, 3'840},
                                         CrossingCase{"Qwen3-8B", 13'312, 18'432, 23'552},
                                         CrossingCase{"gemma-2-9b-it", 13'440, 18'816, 24'192},
                                         CrossingCase{"phi-4", 20'480, 26'880, 33'280},
                                         CrossingCase{"Mixtral-8x7B-v0.1", 37'888, 43'008, 48'128},
                                         CrossingCase{"Qwen3-30B-A3B", 2'304, 4'608, 6'912},
                                         CrossingCase{"DeepSeek-V3", 5'109, 9'677, 14'245}));

TEST(Compute, DeepSeekV3AbsorbedCrossing) {
  const fs::path path = test::published_config("DeepSeek-V3");
  const Crossing last = compute(describe(ModelConfig::read(path)), 1).crossings.back();
  ASSERT_TRUE(last.absorbed);
  EXPECT_EQ(std::llround(last.block_equals_mlp), 1'503);
  EXPECT_EQ(std::llround(last.scores_equal_mlp), 2'846);
  EXPECT_EQ(std::llround(last.scores_equal_linear), 4'190);
}

TEST(Roofline, IsTheLowerOfTwoBounds) {
  const fs::path path = test::published_config("Llama-3.1-8B");
  const ModuleTree tree = describe(ModelConfig::read(path));
  const ComputeReport report = compute(tree, 1000);
  const Roofline r = roofline(tree, *weight_format("bf16"), report, 2, 1, {1e12, 1e15});
  // All but the embedding lookup is read, and 1000 tokens of cache.
  EXPECT_EQ(r.weight_bytes, 2u * (8'030'261'248u - 128'256u * 4096u));
  EXPECT_EQ(r.kv_bytes, 131'072u * 1000u);
  EXPECT_DOUBLE_EQ(r.tokens_per_second, 1e12 / static_cast<double>(r.weight_bytes + r.kv_bytes));
}

}  // namespace
}  // namespace assay
