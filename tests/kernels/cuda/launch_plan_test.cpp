// Every planner on every architecture over many shapes: no plan exceeds what the device has.
#include "kernels/cuda/launch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/system/error.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/gate.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/plan_words.h"
#include "kernels/cuda/quantize.h"
#include "kernels/cuda/softmax.h"

namespace assay::cuda {
namespace {

TEST(DeviceLimits, AreTheDocumentedOnes) {
  // CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
  EXPECT_EQ(limits_of(80)->shared_per_block, 166'912u);
  EXPECT_EQ(limits_of(86)->shared_per_block, 101'376u);
  EXPECT_EQ(limits_of(87)->shared_per_block, 166'912u);
  EXPECT_EQ(limits_of(89)->shared_per_block, 101'376u);
  EXPECT_EQ(limits_of(90)->shared_per_block, 232'448u);
  EXPECT_EQ(limits_of(100)->shared_per_block, 232'448u);
  EXPECT_EQ(limits_of(120)->shared_per_block, 101'376u);
  EXPECT_EQ(limits_of(75), nullptr);
}

TEST(LaunchPlan, SaysWhichLimitItWouldBreak) {
  const auto why = [](const LaunchChoice& choice) { return checked_plan(*limits_of(89), choice).why; };
  LaunchChoice choice = {.kernel = "k", .threads = 256, .shared_bytes = 147'456};
  EXPECT_EQ(why(choice), "does not fit sm_89: shared memory a block of 147,456 where there are 101,376");
  EXPECT_THROW(require_fits(checked_plan(*limits_of(89), choice)), Error);
  EXPECT_TRUE(checked_plan(*limits_of(80), choice).fits);
  choice = {.kernel = "k", .threads = 1056};
  EXPECT_EQ(why(choice), "does not fit sm_89: threads a block of 1,056 where there are 1,024");
  choice = {.kernel = "k", .threads = 1024, .registers = 128};
  EXPECT_EQ(why(choice), "does not fit sm_89: registers a block of 131,072 where there are 65,536");
  choice = {.kernel = "k", .grid = {1, 65'536, 1}, .threads = 32};
  EXPECT_EQ(why(choice), "does not fit sm_89: blocks in y of 65,536 where there are 65,535");
}

TEST(LaunchPlan, CountsResidentBlocks) {
  // 2048 threads and 65,536 registers: 256 threads of 32 registers fill the SM eight times; of 128, twice.
  EXPECT_EQ(resident_blocks(*limits_of(90), 256, 0, 32), 8u);
  EXPECT_EQ(resident_blocks(*limits_of(90), 256, 0, 128), 2u);
  // 100 KiB an SM, of which each block takes 1 KiB more than it asks for.
  EXPECT_EQ(resident_blocks(*limits_of(89), 128, 49 * 1024, 32), 2u);
  EXPECT_EQ(resident_blocks(*limits_of(89), 128, 50 * 1024, 32), 1u);
}

constexpr std::size_t kSizes[] = {1,    2,    7,    8,    61,     128,    512,     1024,
                                  1025, 1536, 4096, 7168, 16'384, 32'003, 131'072, 1'000'003};

void expect_respected(const DeviceLimits& limits, const LaunchPlan& plan) {
  EXPECT_TRUE(plan.fits) << plan.why;
  EXPECT_EQ(broken_limit(limits, plan), "");
  EXPECT_GE(plan.blocks_per_sm, 1u);
}

TEST(LaunchPlan, NeverExceedsTheLimits) {
  for (const DeviceLimits& limits : all_device_limits()) {
    for (const std::size_t columns : kSizes) {
      for (const std::size_t rows : kSizes) {
        expect_respected(limits, plan_rms_norm(limits, {.count = rows, .group = columns}));
        expect_respected(limits, plan_softmax(limits, {.rows = rows, .columns = columns}));
        expect_respected(limits, plan_rope(limits, {.rows = rows, .columns = columns}));
        expect_respected(limits, plan_activation(limits, {.rows = rows, .columns = columns}));
        expect_respected(limits, plan_dequantize(limits, {.rows = rows, .columns = columns}));
        expect_respected(limits, plan_convert(limits, {.rows = rows, .columns = columns}));
        expect_respected(limits, plan_epilogue(limits, {.rows = rows, .columns = columns}));
        expect_respected(limits, plan_quantize(limits, {.blocks = rows, .block_elements = columns}));
      }
    }
  }
}

// A model's plans are the same without their words, and who reads them has them again.
TEST(LaunchPlan, SaysNothingWhileNobodyReads) {
  const auto plan = [] { return plan_rope(*limits_of(90), {.rows = 3, .columns = 40}); };
  const LaunchPlan told = plan();
  EXPECT_EQ(told.why, "3 rows of 40");
  {
    const PlansWithoutWords none;
    EXPECT_EQ(plan().why, "");
    EXPECT_EQ(plan().grid.count(), told.grid.count());
    { const PlansWithoutWords within; }
    EXPECT_EQ(plan().why, "");
  }
  EXPECT_EQ(plan().why, told.why);
}

TEST(LaunchPlan, OfTheGateFitsUntilItsExpertsDoNot) {
  for (const DeviceLimits& limits : all_device_limits()) {
    for (const std::size_t experts : {1, 8, 64, 160, 256, 384, 1024, 4096}) {
      const GateShape shape = {.tokens = 333, .experts = experts, .top_k = std::min<std::size_t>(experts, 8)};
      expect_respected(limits, plan_gate(limits, shape));
    }
    const LaunchPlan plan = plan_gate(limits, {.tokens = 1, .experts = 20'000, .top_k = 8});
    EXPECT_FALSE(plan.fits);
    EXPECT_NE(plan.why.find("shared memory a block of 340,080 where there are"), std::string::npos)
        << plan.why;
  }
}

}  // namespace
}  // namespace assay::cuda
