// Kernels that misbehave in each way the examination looks for, each caught by the check that is for it.
#include "kernels/harness/examine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "core/system/error.h"
#include "kernels/cpu/team.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

using Run = std::function<Matrix(Ops&, const SoftmaxCall&)>;

Matrix right_softmax(Ops& ops, const SoftmaxCall& call) {
  return run_reference(dynamic_cast<ReferenceOps&>(ops), call);
}

CaseResult verdict_on(const Run& run, const std::string& id = "softmax:F32:m=5:n=33:in=zero:seed=1") {
  const auto operands = cases_of<SoftmaxCall>().make(CaseId::parse(id));
  const Kernel<SoftmaxCall> kernel = {.name = "test",
                                      .about = "",
                                      .takes = [](const Arithmetic&, const SoftmaxCall&) { return true; },
                                      .run = run};
  return examine(kernel, *operands, operands->truth(1), {.jobs = 1});
}

TEST(Examination, PassesARightKernel) {
  const CaseResult r = verdict_on(right_softmax);
  EXPECT_EQ(r.status, CaseStatus::passed) << r.check << ": " << r.detail;
  EXPECT_EQ(r.properties.repeatable, Kept::yes);
  EXPECT_EQ(r.properties.batch_invariant, Kept::yes);
  EXPECT_EQ(r.properties.isolated, Kept::yes);
  EXPECT_LE(r.measured.ratio, 1);
}

struct Misdeed {
  const char* check;
  Run run;
};

const std::vector<Misdeed>& misdeeds() {
  static const std::vector<Misdeed> list = {
      {"shape",
       [](Ops& ops, const SoftmaxCall& c) { return right_softmax(ops, c).part(1, c.x.columns() - 1); }},
      {"canaries",
       [](Ops& ops, const SoftmaxCall& c) {
         Matrix y = right_softmax(ops, c);
         y.row<float>(y.rows() - 1)[y.columns()] = 0;
         return y;
       }},
      {"canaries",
       [](Ops& ops, const SoftmaxCall& c) {
         Matrix y = right_softmax(ops, c);
         c.x.row<float>(0)[0] += 1;
         return y;
       }},
      {"pattern",
       [](Ops& ops, const SoftmaxCall& c) {  // forgets the last element of the last row
         Matrix right = right_softmax(ops, c), y = ops.allocate(right.rows(), right.columns());
         for (std::size_t i = 0; i + 1 < right.rows() * right.columns(); ++i)
           y.row<float>(i / right.columns())[i % right.columns()] =
               right.row<float>(i / right.columns())[i % right.columns()];
         return y;
       }},
      {"budget",
       [](Ops& ops, const SoftmaxCall& c) {
         Matrix y = right_softmax(ops, c);
         y.row<float>(2)[7] *= 1.0001F;
         return y;
       }},
      {"repeat",
       [](Ops& ops, const SoftmaxCall& c) {
         static std::atomic<int> calls{0};
         Matrix y = right_softmax(ops, c);
         if (calls++ % 2 == 1) y.row<float>(0)[0] = std::nextafter(y.row<float>(0)[0], 1.0F);
         return y;
       }},
      {"layout",
       [](Ops& ops, const SoftmaxCall& c) {
         Matrix y = right_softmax(ops, c);
         if (c.x.stride() != c.x.columns()) y.row<float>(0)[0] = std::nextafter(y.row<float>(0)[0], 1.0F);
         return y;
       }},
      {"threads",
       [](Ops& ops, const SoftmaxCall& c) {
         Matrix y = right_softmax(ops, c);
         if (ops.jobs() != 1) y.row<float>(0)[0] = std::nextafter(y.row<float>(0)[0], 1.0F);
         return y;
       }},
      {"batch",
       [](Ops& ops, const SoftmaxCall& c) {
         Matrix y = right_softmax(ops, c);
         if (c.x.rows() == 1) y.row<float>(0)[0] = std::nextafter(y.row<float>(0)[0], 1.0F);
         return y;
       }},
      {"isolation",
       [](Ops& ops, const SoftmaxCall& c) {
         Matrix y = right_softmax(ops, c);
         if (std::isnan(c.x.row<float>(c.x.rows() - 1)[0]))
           y.row<float>(0)[0] = std::numeric_limits<float>::quiet_NaN();
         return y;
       }},
      {"exception", [](Ops&, const SoftmaxCall&) -> Matrix { throw Error::internal("no"); }},
  };
  return list;
}

TEST(Examination, CatchesEachMisdeedByTheCheckThatIsForIt) {
  for (const Misdeed& misdeed : misdeeds()) {
    const CaseResult r = verdict_on(misdeed.run);
    EXPECT_EQ(r.status, CaseStatus::failed) << misdeed.check;
    EXPECT_EQ(r.check, misdeed.check) << r.detail;
  }
}

// Of one thread and of two it has the same bits, having had nothing for the second to do.
TEST(Examination, ThreadsAreUntestedWithoutWorkForThem) {
  const auto operands = cases_of<SoftmaxCall>().make(CaseId::parse("softmax:F32:m=5:n=33:in=zero:seed=1"));
  const auto threads = [&](std::size_t pieces) {
    const Kernel<SoftmaxCall> kernel = {.name = "cpu.test",
                                        .about = "",
                                        .takes = [](const Arithmetic&, const SoftmaxCall&) { return true; },
                                        .run =
                                            [pieces](Ops& ops, const SoftmaxCall& call) {
                                              cpu::team_for(ops.jobs(), pieces, [](std::size_t) {});
                                              return right_softmax(ops, call);
                                            }};
    return examine(kernel, *operands, operands->truth(1), {.jobs = 2}).properties.thread_invariant;
  };
  EXPECT_EQ(threads(1), Kept::untested);
  EXPECT_EQ(threads(2), Kept::yes);
}

TEST(Examination, ACaseOfNoTokensIsPassedByItsShape) {
  EXPECT_EQ(verdict_on(right_softmax, "softmax:F32:m=0:n=8:in=zero:seed=1").status, CaseStatus::passed);
}

TEST(Examination, AKernelThatDoesNotTakeACaseIsSkipped) {
  const auto operands = cases_of<SoftmaxCall>().make(CaseId::parse("softmax:F32:m=1:n=8"));
  const Kernel<SoftmaxCall> kernel = {.name = "none",
                                      .about = "",
                                      .takes = [](const Arithmetic&, const SoftmaxCall&) { return false; },
                                      .run = right_softmax};
  EXPECT_EQ(examine(kernel, *operands, operands->truth(1), {}).status, CaseStatus::skipped);
}

TEST(Comparator, TruthMadeFromTheOutputIsMistrusted) {
  const auto operands = cases_of<SoftmaxCall>().make(CaseId::parse("softmax:F32:m=5:n=33:in=zero:seed=1"));
  Truth truth = operands->truth(1);
  std::vector<OutputPart> parts = {{"y", 5, 33, {truth[0].values.begin(), truth[0].values.end()}}};
  EXPECT_EQ(compare_parts(truth, parts).status, CaseStatus::passed);
  truth[0].values.assign(parts[0].values.begin(), parts[0].values.end());
  EXPECT_EQ(compare_parts(truth, parts).status, CaseStatus::mistrusted);
}

// Each operation's own kernels on a handful of its cases; `compare kernels` runs all of them.
TEST(Kernels, AreWithinTheirBudgetsOnAPartOfTheGrid) {
  for (const auto& examiner : examiners(builtin_kernels())) {
    const std::vector<CaseId> grid = examiner->grid();
    for (std::size_t i = 0; i < grid.size(); i += 11) {
      for (const CaseResult& r :
           examiner->examine(grid[i], [](const KernelLabel&) { return true; }, {.jobs = 2})) {
        EXPECT_TRUE(r.status == CaseStatus::passed || r.status == CaseStatus::skipped)
            << r.kernel << " " << r.id << ": " << r.check << ": " << r.detail;
      }
    }
  }
}

}  // namespace
}  // namespace assay
