// What kernels declare of themselves has cases, and so has what the known families' configs ask for.
#include "kernels/registry/edges.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/harness/cases.h"
#include "kernels/harness/examine.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

using Sizes = std::vector<std::size_t>;

TEST(Edges, HaveSizesOnBothSidesAndEveryRemainder) {
  EXPECT_EQ(sizes_around({.of = "m", .from = 6}), (Sizes{5, 6, 7}));
  EXPECT_EQ(sizes_around({.of = "k", .every = 4}), (Sizes{8, 9, 10, 11}));
}

TEST(Edges, OfEveryKernelHaveCases) {
  std::size_t edges = 0;
  builtin_kernels().for_each_op([&]<class Call>(const std::vector<Kernel<Call>>& kernels) {
    for (const Kernel<Call>& kernel : kernels) {
      // Where the reference and libraries go another way is no part of what they promise.
      const bool ours = kernel_group(kernel.name) == "cpu" || kernel_group(kernel.name) == "cuda";
      const bool library = kernel.name.starts_with("cuda.cublas");
      EXPECT_EQ(kernel.edges.empty(), !ours || library) << Call::kOp << " " << kernel.name;
      for (const Edge& edge : kernel.edges) {
        ++edges;
        for (const std::size_t size : sizes_around(edge))
          EXPECT_FALSE(cases_of<Call>().at(edge.of, size).empty())
              << kernel.name << ": " << edge.of << "=" << size;
      }
    }
  });
  EXPECT_GE(edges, 100u);
}

template <class Call>
std::set<std::uint64_t> values_of(const std::function<std::uint64_t(const CaseId&)>& value) {
  std::set<std::uint64_t> values;
  for (const CaseId& id : cases_of<Call>().always()) values.insert(value(id));
  return values;
}

TEST(Grids, HaveTheRatiosAndCountsOfTheKnownFamilies) {
  const auto groups = values_of<AttentionCall>(
      [](const CaseId& id) { return id.number("heads") / id.number("kv", id.number("heads")); });
  for (std::uint64_t group = 1; group <= 16; ++group) EXPECT_TRUE(groups.contains(group)) << group;
  EXPECT_TRUE(groups.contains(71) && groups.contains(128));
  EXPECT_TRUE(values_of<MlaCall>([](const CaseId& id) { return id.number("heads"); }).contains(128));
  const auto chosen = values_of<FusedMoeCall>([](const CaseId& id) { return id.number("top"); });
  const auto routed = values_of<MoeGateCall>([](const CaseId& id) { return id.number("top"); });
  for (std::uint64_t top = 1; top <= 10; ++top)
    EXPECT_TRUE(chosen.contains(top) && routed.contains(top)) << top;
  EXPECT_TRUE(values_of<FusedMoeCall>([](const CaseId& id) { return id.number("experts"); }).contains(384));
  EXPECT_TRUE(values_of<MoeGateCall>([](const CaseId& id) { return id.number("experts"); }).contains(384));
}

}  // namespace
}  // namespace assay
