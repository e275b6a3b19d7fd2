#include "kernels/registry/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/system/error.h"
#include "kernels/harness/cases.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

constexpr Arithmetic kFloat32{Precision::f32};

// A registry of the built-in kernels and one that answers 42 to everything it takes.
Registry with_a_liar() {
  Registry registry = builtin_kernels();
  registry.add(Kernel<SoftmaxCall>{
      .name = "liar.softmax",
      .about = "",
      .takes = [](const Arithmetic&, const SoftmaxCall& call) { return call.x.columns() != 1; },
      .run = [](Ops& ops, const SoftmaxCall&) { return ops.upload(std::vector<double>{42}, 1, 1); }});
  return registry;
}

TEST(Selection, NamesAKernelForOneOperation) {
  const Registry registry = with_a_liar();
  const auto ops = select_kernels(registry, "softmax=liar.softmax", kFloat32, 1);
  const Matrix two = ops->upload(std::vector<double>{0, 0}, 1, 2);
  EXPECT_EQ(ops->download(ops->softmax(two)), std::vector<double>{42});
}

TEST(Selection, FallsBackOnTheReferenceWhereNoKernelTakesTheCall) {
  const Registry registry = with_a_liar();
  const auto ops = select_kernels(registry, "softmax=liar.softmax", kFloat32, 1);
  const Matrix one = ops->upload(std::vector<double>{7}, 1, 1);
  EXPECT_EQ(ops->download(ops->softmax(one)), std::vector<double>{1});
}

TEST(Selection, ReferenceCancelsWhatStandsBeforeIt) {
  const Registry registry = with_a_liar();
  const auto ops = select_kernels(registry, "softmax=liar.softmax, reference", kFloat32, 1);
  const Matrix two = ops->upload(std::vector<double>{0, 0}, 1, 2);
  EXPECT_EQ(ops->download(ops->softmax(two)), (std::vector<double>{0.5, 0.5}));
}

TEST(Selection, RefusesWhatThereIsNot) {
  for (const char* text : {"", "cpus", "linear=", "linear=liar.softmax", "softmax=liar.softmax,"})
    EXPECT_THROW(select_kernels(with_a_liar(), text, kFloat32, 1), Error) << text;
}

// What "cpu" computes many tokens with adds them up in another order than one; "cpu-invariant" never.
TEST(Selection, InvariantKernelsGiveATokenTheSameBitsInAnyCompany) {
  const Registry& registry = builtin_kernels();
  EXPECT_TRUE(is_invariant(registry, "reference"));
  EXPECT_TRUE(is_invariant(registry, "cpu-invariant"));
  EXPECT_FALSE(is_invariant(registry, "cpu"));
  EXPECT_FALSE(is_invariant(registry, "cpu-invariant,linear=cpu.auto"));
  const auto operands =
      cases_of<LinearCall>().make(CaseId::parse("linear:BF16:m=20:k=768:n=35:in=zero:seed=4"));
  for (const bool steady : {false, true}) {
    const auto ops = select_kernels(registry, steady ? "cpu-invariant" : "cpu", kFloat32, 1);
    const LinearCall call = operands->call(*ops);
    const Matrix alone = ops->linear(call.x.row_range(4, 1), call.weight);
    const Matrix together = ops->linear(call.x, call.weight).row_range(4, 1);
    EXPECT_EQ(ops->download(alone) == ops->download(together), steady);
  }
}

// Every operation through "cpu", against the reference in float64, by way of Ops alone.
TEST(Selection, CpuComputesWhatTheReferenceDoes) {
  const auto cpu = select_kernels(builtin_kernels(), "cpu", kFloat32, 2);
  const CaseId id = CaseId::parse("linear:Q8_0:m=3:k=64:n=5:in=zero:seed=4");
  const auto operands = cases_of<LinearCall>().make(id);
  const LinearCall call = operands->call(*cpu);
  const Matrix y = cpu->linear(call.x, call.weight, call.bias, call.rounding);
  const Truth truth = operands->truth(1);
  const std::vector<double> budget = truth[0].budget({});
  const std::vector<OutputPart> parts = parts_of(*cpu, y);
  EXPECT_EQ(judge(measure(parts[0].values, truth[0].values, budget, ElementType::F32)), CaseStatus::passed);
}

TEST(Registry, NamesAreUniqueWithinAnOperation) {
  builtin_kernels().for_each_op([]<class Call>(const std::vector<Kernel<Call>>& kernels) {
    std::vector<std::string> names;
    for (const Kernel<Call>& kernel : kernels) names.push_back(kernel.name);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << Call::kOp;
    EXPECT_EQ(names.empty() ? "" : kernels.front().name, "reference") << Call::kOp;
  });
}

}  // namespace
}  // namespace assay
