// Serving under kernels of which the bits of a token do not depend on its company.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/system/sanitizer.h"
#include "kernels/selection/select.h"
#include "refimpl/claims/schedule.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

struct LoadedModel {
  LoadedModel(const std::string& name, const char* kernels, Precision precision)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(select_kernels(builtin_kernels(), kernels, {precision}, 1)),
        model(make_model(weights, {})),
        workload(*model, *ops, 7) {}
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  ServingWorkload workload;
};

class ServedByKernels : public testing::TestWithParam<const char*> {};

TEST_P(ServedByKernels, IsWhatEachRequestIsAlone) {
  std::size_t hits = 0;
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const LoadedModel loaded(GetParam(), "cpu-invariant", precision);
    for (std::uint64_t seed = 0; seed < (kSanitized ? 3 : 12); ++seed) {
      const ScheduleResult result = run_schedule(loaded.workload, random_schedule(loaded.workload, seed));
      ASSERT_EQ(result.wrong, "") << "seed " << seed;
      hits += result.counts.hit_tokens;
    }
  }
  EXPECT_TRUE(kSanitized || hits > 0);
}

// Of each kind of attention, mixture and recurrence one.
INSTANTIATE_TEST_SUITE_P(Models, ServedByKernels,
                         testing::Values("llama", "gemma3", "gpt-oss", "deepseek-v32", "deepseek-v3-fp8",
                                         "qwen3-next", "qwen3-5-moe", "jamba", "mamba2", "mixtral"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// And where they depend on it, the comparison tells.
TEST(ServedByKernels, OfOtherKernelsTheBitsDiffer) {
  const LoadedModel loaded("llama", "cpu", Precision::f32);
  std::size_t differing = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed)
    differing += run_schedule(loaded.workload, random_schedule(loaded.workload, seed)).wrong.empty() ? 0 : 1;
  EXPECT_GT(differing, 0U);
}

}  // namespace
}  // namespace assay
