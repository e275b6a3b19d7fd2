// The planted faults of a few operations, each caught; `assay gate` plants all of them.
#include "kernels/harness/mutants.h"

#include <gtest/gtest.h>

#include <set>

#include "core/system/error.h"
#include "kernels/registry/registry.h"

namespace assay {
namespace {

TEST(Mutants, AreEachCaught) {
  for (const MutantResult& m :
       run_mutants("^(embedding|layer_norm|rope|softmax|quantize|dequantize|comparator)$", 2))
    EXPECT_TRUE(m.caught) << m.op << ": " << m.name;
}

TEST(Mutants, AreManyAndNamedOnce) {
  std::set<std::string> names;
  std::size_t count = input_mutants().size();
  Registry().for_each_op([&]<class Call>(const std::vector<Kernel<Call>>&) {
    for (const Mutant<Call>& m : mutants_of<Call>()) {
      ++count;
      EXPECT_TRUE(names.insert(std::string(Call::kOp) + std::string(m.name)).second) << m.name;
      EXPECT_FALSE(m.sizes.empty()) << m.name;
    }
  });
  EXPECT_GE(count, 40u);
}

TEST(Mutants, OfAnUnknownOperationAreAnError) {
  EXPECT_THROW(run_mutants("nothing", 1), Error);
}

}  // namespace
}  // namespace assay
