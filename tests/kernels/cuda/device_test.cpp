// Kernels of a GPU, where there is one; and what is said where there is none.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <cstring>

#include "core/system/error.h"
#include "kernels/cuda/device_limits.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/harness/inputs.h"
#include "kernels/harness/survey.h"
#include "kernels/selection/select.h"

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
      for (const KernelPlans& of_kernel : examiner->plans(grid[i], on_gpu, cuda::all_device_limits())) {
        const cuda::DeviceLimits& limits = *cuda::limits_of(of_kernel.sm);
        for (const cuda::LaunchPlan& plan : of_kernel.plans) {
          ++planned;
          EXPECT_TRUE(!plan.fits || cuda::broken_limit(limits, plan).empty())
              << of_kernel.kernel << " " << of_kernel.id << ": " << cuda::broken_limit(limits, plan);
          EXPECT_TRUE(plan.fits || !plan.why.empty());
        }
      }
    }
  }
  EXPECT_GT(planned, 500u);
}

// A plan looks at shapes and forms alone: it is the same without the numbers.
TEST(CudaPlans, AreThoseOfOperandsWithNumbers) {
  std::size_t compared = 0;
  builtin_kernels().for_each_op([&]<class Call>(const std::vector<Kernel<Call>>& kernels) {
    const std::vector<CaseId> grid = cases_of<Call>().grid();
    for (std::size_t i = 0; i < grid.size(); i += 13) {
      const auto made = cases_of<Call>().make(grid[i]);
      const ShapesOnly no_numbers;
      const auto shaped = cases_of<Call>().make(grid[i]);
      ReferenceOps ops(made->arithmetic, 1);
      const Call of_numbers = made->call(ops), of_shapes = shaped->call(ops);
      for (const Kernel<Call>& kernel : kernels) {
        if (!kernel.plans) continue;
        const auto described = [&](const Call& call) {
          std::string all;
          for (const cuda::LaunchPlan& plan : kernel.plans(*cuda::limits_of(90), made->arithmetic, call))
            all += plan.kernel + " " + cuda::describe(plan) + "\n";
          return all;
        };
        const std::string due = described(of_numbers);
        EXPECT_EQ(described(of_shapes), due) << kernel.name << " " << grid[i].text();
        compared += due.empty() ? 0 : 1;
      }
    }
  });
  EXPECT_GT(compared, 100u);
}

// Kilobytes that this process has had at most.
long most_memory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// AddressSanitizer's shadow of reserved memory is an eighth of it, and is written when that is freed.
TEST(CudaPlans, OfAGigabyteOfWeightsTouchNoneOfIt) {
  constexpr long weights = 1 << 20;  // kilobytes: 32768 x 16384 x 2 bytes
  for (const auto& examiner : examiners(builtin_kernels())) {
    if (examiner->op() != "linear") continue;
    const long before = most_memory();
    const auto plans = examiner->plans(
        CaseId::parse("linear:BF16:m=1:k=16384:n=32768:in=zero:seed=1"),
        [](const KernelLabel& k) { return k.device == Device::cuda; }, cuda::all_device_limits());
    EXPECT_GT(plans.size(), cuda::all_device_limits().size());
    EXPECT_LT(most_memory() - before, weights / 4);
  }
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
