// Grids of tp, pp, ep and dp: bit for bit one process.
#include <gtest/gtest.h>

#include "tests/refimpl/ranks/ranked.h"

namespace assay {
namespace {

using test::ranked;
using test::refused;

// Every product of tp 1 2 4, pp 1 2 3, ep 1 2 4, dp 1 2 on at most 8 ranks.
std::vector<RankGrid> grids() {
  std::vector<RankGrid> all;
  for (const std::size_t tp : {1, 2, 4})
    for (const std::size_t pp : {1, 2, 3})
      for (const std::size_t dp : {1, 2})
        for (const std::size_t ep : {1, 2, 4, 8})
          if (tp * pp * dp > 1 && tp * pp * dp <= 8 && tp * dp % ep == 0) all.push_back({tp, pp, ep, dp});
  return all;
}

class Grids : public testing::TestWithParam<const char*> {};

TEST_P(Grids, EveryGridIsBitForBitTheWhole) {
  const RankRun whole = ranked(GetParam(), Precision::f32, {}, 3);
  std::size_t compared = 0;
  for (const RankGrid& grid : grids()) {
    if (!refused(GetParam(), grid).empty()) continue;
    ++compared;
    EXPECT_EQ(ranked(GetParam(), Precision::f32, grid, 3).logits, whole.logits) << grid.text();
  }
  RecordProperty("grids", static_cast<int>(compared));
  EXPECT_GE(compared, 3U);
}

INSTANTIATE_TEST_SUITE_P(Models, Grids,
                         testing::Values("llama", "mistral", "gemma3", "gpt2", "gpt-oss", "mixtral",
                                         "qwen3-moe", "deepseek-v2-lite", "deepseek-v3", "deepseek-v32",
                                         "qwen3-next", "lfm2-moe", "jamba", "longcat-flash", "glm-moe-dsa",
                                         "deepseek-v4"),
                         test::test_name);

// One with idle copies: a single text, two copies.
TEST(IdleCopies, GoAlongAndChangeNothing) {
  const RankRun whole = ranked("deepseek-v3", Precision::f32, {}, 1);
  const RankRun cut = ranked("deepseek-v3", Precision::f32, {.tp = 2, .ep = 4, .dp = 2}, 1);
  EXPECT_EQ(cut.logits, whole.logits);
  EXPECT_EQ(cut.ranks.at(0).idle_passes, 0U);
  EXPECT_EQ(cut.ranks.at(2).idle_passes, 4U);  // the text, and three tokens more
}

}  // namespace
}  // namespace assay
