// Planted faults of serving: each is caught by a workload of its own, in which nothing is wrong without it.
#include "refimpl/claims/faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/system/error.h"
#include "core/system/sanitizer.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

struct FaultyModel {
  explicit FaultyModel(const std::string& name)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(reference_kernels().make({Precision::f32}, 1)),
        model(make_model(weights, {})),
        workload(*model, *ops, 7, 16) {}
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  ServingWorkload workload;
};

// One of each kind: rotary frequencies that follow the length, windows, prediction layers, states alone, states beside rows.
class FaultsOf : public testing::TestWithParam<std::string> {};

TEST_P(FaultsOf, EachThatCanShowIsCaught) {
  const FaultyModel m(GetParam());
  for (const ServingFault& fault : serving_faults()) {
    const bool by_law = fault.guessing.oracle == GuessingFault::Oracle::law;  // the same of every model
    if (by_law || !why_not(fault, *m.model).empty()) continue;
    const FaultVerdict verdict = catch_fault(m.workload, fault);
    EXPECT_TRUE(verdict.caught) << fault.number << ' ' << fault.what;
    RecordProperty(std::to_string(fault.number), verdict.by);
  }
}
INSTANTIATE_TEST_SUITE_P(Models, FaultsOf,
                         testing::Values("llama-dynamic", "gemma3", "deepseek-v3", "deepseek-v4", "mamba2",
                                         "jamba", "qwen3-next"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ServingFaults, AllOfTheListCanShowSomewhere) {
  std::set<int> shown;
  for (const char* name : {"gemma3", "deepseek-v3"}) {
    const Weights weights(test::source_dir() / "data/models" / name, 1);
    const std::unique_ptr<LanguageModel> model = make_model(weights, {});
    for (const ServingFault& fault : serving_faults()) {
      if (why_not(fault, *model).empty()) shown.insert(fault.number);
    }
  }
  std::set<int> all;
  for (int number = 1; number <= 40; ++number) all.insert(number);
  EXPECT_EQ(shown, all);
}

TEST(ServingFaults, OfTheLawAreCaught) {
  const FaultyModel m("llama");
  std::size_t laws = 0;
  for (const ServingFault& fault : serving_faults()) {
    if (fault.guessing.oracle != GuessingFault::Oracle::law) continue;
    ++laws;
    EXPECT_TRUE(catch_fault(m.workload, fault).caught) << fault.number << ' ' << fault.what;
  }
  EXPECT_EQ(laws, 8U);
}

// catch_fault() throws where a directed workload goes wrong by itself.
TEST(ServingFaults, OfTwentySeedsEachIsCaughtAndNoneIsAFalseAlarm) {
  const FaultyModel m("gemma3");
  for (std::uint64_t seed = 0; seed < (kSanitized ? 2 : 20); ++seed) {
    for (const ServingFault& fault : serving_faults()) {
      if (fault.made_visible == nullptr || !why_not(fault, *m.model).empty()) continue;
      EXPECT_TRUE(catch_fault(m.workload, fault, seed).caught) << "seed " << seed << ": " << fault.number;
    }
  }
}

TEST(ServingFaults, AWorkloadThatIsWrongWithoutTheFaultIsTold) {
  const FaultyModel m("llama");
  ServingFault fault;
  fault.made_visible = [](const CaseModel& of) {
    DirectedCase made = repeated_and_counted(of);
    made.schedule.hits = 1;
    return made;
  };
  EXPECT_THROW(catch_fault(m.workload, fault), Error);
}

// A prompt that can never be served is refused where that is expected, and told where it is taken.
TEST(DirectedCases, WhatFitsNowhereIsRefused) {
  const FaultyModel m("llama");
  const DirectedCase test = one_that_never_fits({*m.model, *m.ops});
  const ServingWorkload workload(*m.model, *m.ops, test.requests);
  EXPECT_EQ(run_schedule(workload, test.schedule).wrong, "");
  Schedule roomy = test.schedule;
  roomy.options.cache.blocks = 32;
  EXPECT_EQ(run_schedule(workload, roomy).wrong, "request 0 fits nowhere and was taken");
}

}  // namespace
}  // namespace assay
