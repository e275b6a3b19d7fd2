// The kernels of recurrent layers: every case of their grids and edges, every fault planted in them.
#include <gtest/gtest.h>

#include <map>

#include "kernels/harness/mutants.h"
#include "kernels/harness/survey.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

constexpr const char* kOps = "^(convolution|delta_rule|state_space|gated_norm|output_gate)$";

TEST(RecurrentKernels, AreWithinTheirBudgets) {
  std::map<std::string, int> passed;
  for (const CaseResult& r : run_survey(builtin_kernels(), {.op = kOps, .every = 3, .jobs = 2}, {})) {
    EXPECT_EQ(r.status, CaseStatus::passed) << r.kernel << " " << r.id << ": " << r.check << ", " << r.detail;
    ++passed[CaseId::parse(r.id).op() + " " + r.kernel];
  }
  for (const char* op : {"delta_rule", "state_space"}) {
    for (const char* kernel : {"reference", "cpu.auto", "cpu.recurrent", "cpu.chunked"})
      EXPECT_GT(passed[std::string(op) + " " + kernel], 20) << op << " " << kernel;
  }
  for (const char* op : {"convolution", "gated_norm", "output_gate"})
    EXPECT_GT(passed[std::string(op) + " cpu.simd"], 20) << op;
}

TEST(RecurrentKernels, FaultsAreEachCaught) {
  std::size_t faults = 0;
  for (const MutantResult& m : run_mutants(kOps, 2)) {
    EXPECT_TRUE(m.caught) << m.op << ": " << m.name;
    ++faults;
  }
  EXPECT_GE(faults, 35u);
}

// A state that is given up stays as it was, and one that is asked for behind several tokens is each token's own: what
// speculative decoding goes back to.
TEST(RecurrentKernels, StatesBehindSeveralTokensAreThoseOfShorterTexts) {
  const auto ops = select_kernels(builtin_kernels(), "cpu", Arithmetic{Precision::f32}, 1);
  const auto made = cases_of<DeltaRuleCall>().make(
      CaseId::parse("delta_rule:F32:m=6:past=1:kept=4:heads=1:share=2:k=9:v=33"));
  const DeltaRuleCall all = made->call(*ops);
  ops->run(all);
  for (std::size_t behind = 3; behind <= 6; ++behind) {
    DeltaRuleCall some = made->call(*ops);
    for (Matrix* x : {&some.q, &some.k, &some.v, &some.decay, &some.beta}) *x = x->row_range(0, behind);
    some.sequences[0].tokens = behind;
    some.sequences[0].after.resize(1);
    ops->run(some);
    EXPECT_EQ(ops->download(all.sequences[0].after[behind - 3]), ops->download(some.sequences[0].after[0]))
        << behind;
  }
}

}  // namespace
}  // namespace assay
