// Every model of data/models cut over ranks, against one process that adds in the same tree: bit for bit; and that one
// against the plain reference.
#include <gtest/gtest.h>

#include <iostream>

#include "refimpl/engine/engine.h"
#include "refimpl/ops/reference.h"
#include "tests/refimpl/ranks/ranked.h"

namespace assay {
namespace {

using test::ranked;
using test::refused;

class CutModels : public testing::TestWithParam<const char*> {};

TEST_P(CutModels, TensorParallelIsBitForBitTheWhole) {
  std::size_t compared = 0;
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f64}) {
    const RankRun whole = ranked(GetParam(), precision, {}, 1);
    for (const std::size_t tp : {2, 3, 4, 8}) {
      if (!refused(GetParam(), {.tp = tp}).empty()) continue;
      ++compared;
      EXPECT_EQ(ranked(GetParam(), precision, {.tp = tp}, 1).logits, whole.logits)
          << name(precision) << " tp=" << tp;
    }
  }
  if (compared == 0) std::cout << refused(GetParam(), {.tp = 2}) << '\n';
}

// The tree brackets sums otherwise: in float64 that is all there is between it and the plain reference.
TEST_P(CutModels, TheTreeIsThePlainReferenceButForBrackets) {
  RankRunRequest request = test::rank_request(GetParam(), Precision::f64, {}, 1);
  request.decode = 0;
  const RankRun whole = run_ranks(request);
  const Weights weights(request.path, 1);
  const std::unique_ptr<LanguageModel> model = make_model(weights, {});
  ReferenceOps ops({Precision::f64}, 1);
  std::vector<double> plain;
  TextEngine(*model, ops).score(request.texts[0], [&](std::size_t, std::span<const double> row) {
    plain.insert(plain.end(), row.begin(), row.end());
  });
  ASSERT_EQ(plain.size(), whole.logits[0].size());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    largest = std::max(largest, std::abs(plain[i]));
    difference = std::max(difference, std::abs(plain[i] - whole.logits[0][i]));
  }
  EXPECT_LE(difference, 1e-12 * largest);  // golden_run.h, kOfDoubles
}

INSTANTIATE_TEST_SUITE_P(Models, CutModels,
                         testing::Values("llama", "llama-dynamic", "mistral", "qwen2", "qwen3", "qwen3-moe",
                                         "qwen3-moe-unnormalized", "mixtral", "gemma2", "gemma3", "phi3",
                                         "olmo2", "gpt2", "gpt-oss", "minicpm3", "deepseek-v2",
                                         "deepseek-v2-lite", "deepseek-v3", "deepseek-v3-fp8", "kimi-k2",
                                         "qwen3-next", "qwen3-5", "qwen3-5-moe", "lfm2", "bamba", "mamba",
                                         "mamba2", "lfm2-moe", "jamba", "deepseek-v32", "glm-moe-dsa",
                                         "glm4-moe-lite", "axk1", "youtu", "deepseek-v4", "longcat-flash"),
                         test::test_name);

}  // namespace
}  // namespace assay
