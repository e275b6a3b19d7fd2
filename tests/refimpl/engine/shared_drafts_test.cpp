// What prediction layers keep beside the blocks of the pool: behind a prefix that others computed they say, to the bit, what
// they say of the whole text read at once, and nothing of the hit is given up for it.
#include <gtest/gtest.h>

#include "refimpl/claims/faults.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

struct SharedModel {
  explicit SharedModel(const std::string& name, Precision precision = Precision::f32)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(reference_kernels().make({precision}, 1)),
        model(make_model(weights, {})),
        workload(*model, *ops, 7) {}
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  ServingWorkload workload;
};

TEST(SharedDrafts, SayBehindSharedBlocksWhatTheySayOfTheWholeText) {
  for (const char* name : {"deepseek-v3", "deepseek-v32", "glm-moe-dsa"}) {
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      const SharedModel m(name, precision);
      const SharedDrafts kept = shared_draft_difference(m.workload, LayerDrafts::Keeping::without_successors);
      EXPECT_EQ(kept.difference, 0) << name;
      EXPECT_EQ(kept.hit_tokens, 3 * 12U) << name;  // of four prompts of 15 tokens, 12 of them the same
      EXPECT_GT(shared_draft_difference(m.workload, LayerDrafts::Keeping::with_successors).difference, 0)
          << name;
    }
  }
}

TEST(SharedDrafts, APromptThatComesAgainHitsAllFullBlocksOfAllButItsLastToken) {
  for (const char* name : {"deepseek-v3", "glm-moe-dsa", "llama", "gemma3", "qwen3-next"}) {
    const SharedModel m(name);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const DirectedCase test = repeated_and_counted({*m.model, *m.ops, seed});
      const ServingWorkload workload(*m.model, *m.ops, test.requests);
      EXPECT_EQ(run_schedule(workload, test.schedule).wrong, "") << name << ", seed " << seed;
    }
  }
}

// 15 and 16, where the model has prediction layers.
TEST(SharedDrafts, FaultsAreCaught) {
  const SharedModel m("deepseek-v3");
  std::size_t seen = 0;
  for (const ServingFault& fault : serving_faults()) {
    if (fault.number != 15 && fault.number != 16) continue;
    ++seen;
    const FaultVerdict verdict = catch_fault(m.workload, fault);
    EXPECT_TRUE(verdict.caught) << fault.number;
    EXPECT_NE(verdict.by.find(fault.number == 15 ? "draft logits" : "0 tokens hit"), std::string::npos)
        << verdict.by;
  }
  EXPECT_EQ(seen, 2U);
}

}  // namespace
}  // namespace assay
