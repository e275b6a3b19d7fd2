// Faults that hand-offs were shipped with: each is seen, and nothing is without it.
#include "refimpl/claims/handoff_faults.h"

#include <gtest/gtest.h>

#include <set>

#include "refimpl/claims/handoff_claims.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

struct FaultyModel {
  explicit FaultyModel(const std::string& name)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(reference_kernels().make({Precision::f32}, 1)),
        model(make_model(weights, {})),
        with{*model, *ops, cache_shape(*model, weights.tree()), handoff_identity(name)} {}
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  HandoffModel with;
};

TEST(HandoffFaults, EachIsCaught) {
  std::set<int> caught;
  for (const std::string name : {"llama", "deepseek-v3", "mamba2"}) {
    const FaultyModel m(name);
    for (const HandoffFault& fault : handoff_faults()) {
      if (!why_not(fault, m.with).empty()) continue;
      const std::string by = catch_handoff_fault(m.with, fault);
      EXPECT_NE(by, "") << name << ": " << fault.number << ' ' << fault.what;
      RecordProperty(std::to_string(fault.number), by);
      caught.insert(fault.number);
    }
  }
  EXPECT_EQ(caught, (std::set<int>{41, 42, 43, 44, 45, 46, 47, 48}));
}

// Keys that were kept without positions of a text whose beginning is cut: right in the first layer, and in no other.
TEST(Truncation, IsExactInTheFirstLayerAlone) {
  for (const std::string name : {"llama", "deepseek-v3", "qwen3"}) {
    const FaultyModel m(name);
    std::vector<TokenId> tokens;
    for (TokenId i = 0; i < 24; ++i) tokens.push_back((11 * i * i + 5) % 60);
    const std::vector<TruncationError> errors = truncation_errors(*m.model, *m.ops, tokens, 9);
    ASSERT_GT(errors.size(), 1U) << name;
    for (const auto& [layer, error] : errors) {
      if (layer == 0) {
        EXPECT_EQ(error, 0) << name;
      } else {
        EXPECT_GT(error, 1e-4) << name << layer;
      }
    }
  }
}

TEST(HandoffClaims, Hold) {
  for (const std::string name : {"llama", "deepseek-v3", "gemma3", "mamba2", "qwen3-next"}) {
    const FaultyModel m(name);
    std::vector<TokenId> tokens;
    for (TokenId i = 0; i < 24; ++i) tokens.push_back((11 * i * i + 5) % 60);
    const std::vector<Claim> claims = handoff_claims(m.with, tokens, true);
    EXPECT_GE(claims.size(), 3U);
    for (const Claim& claim : claims)
      EXPECT_TRUE(claim.holds()) << name << ": " << claim.name << ' ' << claim.error;
  }
}

}  // namespace
}  // namespace assay
