// Kernels of a GPU, where there is one; and what is said where there is none.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "core/system/error.h"
#include "kernels/cuda/device_limits.h"
#include "kernels/harness/survey.h"

namespace assay {
namespace {

// Why the CUDA kernels cannot run here; empty: they can.
std::string no_device() {
  for (const KernelLabel& label : wanted_kernels(builtin_kernels(), {.device = Device::cuda}))
    return label.unavailable;
  return "no CUDA device: no kernels";
}

TEST(CudaDevice, PassesTheGrid) {
  if (const std::string why = no_device(); !why.empty()) GTEST_SKIP() << "SKIPPED: " << why;
  std::size_t passed = 0;
  for (const CaseResult& r : run_survey(builtin_kernels(), {.device = Device::cuda, .every = 3})) {
    EXPECT_TRUE(r.status == CaseStatus::passed || r.status == CaseStatus::skipped)
        << r.kernel << " " << r.id << ": " << r.check << ": " << r.detail;
    if (r.status == CaseStatus::passed) ++passed;
  }
  EXPECT_GT(passed, 100u);
}

// Every registered CUDA kernel on every architecture, on a part of every grid: no plan exceeds the limits.
TEST(CudaPlans, OfAllKernelsRespectAllLimits) {
  std::size_t planned = 0;
  for (const auto& examiner : examiners(builtin_kernels())) {
    const std::vector<KernelLabel> kernels = examiner->kernels();
    const auto on_gpu = [](const KernelLabel& k) { return k.device == Device::cuda; };
    if (std::none_of(kernels.begin(), kernels.end(), on_gpu)) continue;
    const std::vector<CaseId> grid = examiner->grid();
    for (std::size_t i = 0; i < grid.size(); i += 7) {
      for (const cuda::DeviceLimits& limits : cuda::all_device_limits()) {
        for (const KernelPlans& of_kernel : examiner->plans(grid[i], on_gpu, limits)) {
          for (const cuda::LaunchPlan& plan : of_kernel.plans) {
            ++planned;
            EXPECT_TRUE(!plan.fits || cuda::broken_limit(limits, plan).empty())
                << of_kernel.kernel << " " << of_kernel.id << ": " << cuda::broken_limit(limits, plan);
            EXPECT_TRUE(plan.fits || !plan.why.empty());
          }
        }
      }
    }
  }
  EXPECT_GT(planned, 500u);
}

// --- where a kernel cannot run

Registry with_an_unavailable_kernel() {
  Registry registry;
  registry.add(
      Kernel<SoftmaxCall>{.name = "cuda.none",
                          .about = "",
                          .device = Device::cuda,
                          .takes = [](const Arithmetic&, const SoftmaxCall&) { return false; },
                          .run = [](Ops&, const SoftmaxCall&) -> Matrix { throw Error::internal("ran"); },
                          .unavailable = [] { return std::string("no CUDA device: it was left at home"); }});
  return registry;
}

TEST(Unavailable, KernelIsSkippedOnceWithItsReason) {
  const Registry registry = with_an_unavailable_kernel();
  const std::vector<CaseResult> results = run_survey(registry, {});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].status, CaseStatus::skipped);
  EXPECT_EQ(results[0].check, kUnavailable);
  EXPECT_EQ(results[0].detail, "no CUDA device: it was left at home");
  const std::vector<CaseResult> asked = run_survey(registry, {.cases = {"softmax:F32:m=1:n=8"}});
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].detail, "no CUDA device: it was left at home");
}

TEST(Unavailable, SelectionIsRefusedWithItsReason) {
  const Registry registry = with_an_unavailable_kernel();
  for (const char* selection : {"cuda", "softmax=cuda.none", "reference,cuda"}) {
    try {
      select_kernels(registry, selection, Arithmetic{}, 1);
      FAIL() << selection;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(error.line().find("no CUDA device: it was left at home"), std::string::npos) << error.line();
    }
  }
}

}  // namespace
}  // namespace assay
