// What each rank holds in memory against what `paramcount --plan` says of it, to the byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "paramcount/plan.h"
#include "tests/refimpl/ranks/ranked.h"

namespace assay {
namespace {

// Of the fullest rank.
std::uint64_t planned(const std::string& model, const RankGrid& grid, const std::string& format) {
  const Weights weights(test::model_folder(model), 1);
  PlanOptions options;
  options.format = weight_format(format).value();
  const bool has_mtp = static_cast<bool>(
      weights.find({.role = Role::mtp_projection, .layer = static_cast<std::size_t>(weights.tree().layers)}));
  options.with_mtp = has_mtp && grid.pp == 1 && grid.dp == 1;
  options.context = 1;
  return make_plan(weights.tree(), {.tp = grid.tp, .pp = grid.pp, .dp = grid.dp, .ep = grid.ep}, options)
      .load.weight_bytes;
}

struct Case {
  const char* model;
  const char* format;
};

class HeldBytes : public testing::TestWithParam<Case> {};

TEST_P(HeldBytes, AreThosePlanned) {
  const auto [model, format] = GetParam();
  const RankGrid grids[] = {{},
                            {.tp = 2},
                            {.tp = 4},
                            {.pp = 2},
                            {.tp = 2, .pp = 2},
                            {.tp = 2, .ep = 2},
                            {.tp = 4, .ep = 2},
                            {.ep = 2, .dp = 2},
                            {.tp = 2, .ep = 4, .dp = 2}};
  std::size_t compared = 0;
  for (const RankGrid& grid : grids) {
    if (!test::refused(model, grid).empty()) continue;
    const RankRun run = test::ranked(model, Precision::f32, grid, 1);
    std::uint64_t fullest = 0;
    for (const RankReport& rank : run.ranks) fullest = std::max(fullest, rank.held_bytes);
    EXPECT_EQ(fullest, planned(model, grid, format)) << model << " " << grid.text();
    ++compared;
  }
  EXPECT_GE(compared, 2U) << model;  // whole, and in stages
}

INSTANTIATE_TEST_SUITE_P(
    Models, HeldBytes,
    testing::Values(Case{"mistral", "bf16"}, Case{"gemma3", "bf16"}, Case{"qwen3", "bf16"},
                    Case{"llama", "bf16"}, Case{"gpt2", "f32"}, Case{"olmo2", "bf16"},
                    Case{"mixtral", "bf16"}, Case{"qwen3-moe", "bf16"}, Case{"deepseek-v2-lite", "bf16"},
                    Case{"deepseek-v3", "bf16"}, Case{"deepseek-v32", "bf16"}, Case{"minicpm3", "bf16"},
                    Case{"gemma2", "bf16"}, Case{"phi3", "bf16"}, Case{"qwen2", "bf16"},
                    Case{"llama-dynamic", "bf16"}, Case{"qwen3-moe-unnormalized", "bf16"},
                    Case{"deepseek-v2", "bf16"}, Case{"kimi-k2", "bf16"}, Case{"axk1", "bf16"},
                    Case{"youtu", "bf16"}, Case{"glm-moe-dsa", "bf16"}, Case{"glm4-moe-lite", "bf16"},
                    Case{"longcat-flash", "bf16"}, Case{"qwen3-next", "bf16"}, Case{"qwen3-5", "bf16"},
                    Case{"qwen3-5-moe", "bf16"}, Case{"lfm2", "bf16"}, Case{"lfm2-moe", "bf16"},
                    Case{"bamba", "bf16"}, Case{"mamba", "bf16"}, Case{"mamba2", "bf16"},
                    Case{"jamba", "bf16"}, Case{"deepseek-v4", "bf16"}),
    [](const testing::TestParamInfo<Case>& info) {
      return std::regex_replace(std::string(info.param.model), std::regex("-"), "_");
    });

}  // namespace
}  // namespace assay
