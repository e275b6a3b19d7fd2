// Claims of caches: which failures mean that there is nothing to claim.
#include "refimpl/claims/cache_claims.h"

#include <gtest/gtest.h>

#include "core/system/error.h"
#include "refimpl/models/weights.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

std::vector<Claim> grouped_claims_of(const Weights& weights) {
  const std::vector<TokenId> tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::unique_ptr<Ops> ops = reference_kernels().make({Precision::f32}, 1);
  return grouped_claims(weights, {}, *ops, 1, tokens, true);
}

TEST(GroupedClaims, AreNoneWhereLayersCannotBeGrouped) {
  EXPECT_EQ(grouped_claims_of(Weights(test::source_dir() / "data/models/llama", 1)).size(), 1U);
  EXPECT_TRUE(grouped_claims_of(Weights(test::source_dir() / "data/models/gemma3", 1)).empty());
}

// The model is opened once more: that this fails says nothing of the cache.
TEST(GroupedClaims, AreNotSilentWhereTheModelCannotBeRead) {
  const test::TempDir dir;
  const fs::path model = dir / "model";
  fs::copy(test::source_dir() / "data/models/llama", model, fs::copy_options::recursive);
  const Weights weights(model, 1);
  fs::remove_all(model);
  fs::create_symlink(model, model);  // ELOOP
  EXPECT_THROW(grouped_claims_of(weights), Error);
}

}  // namespace
}  // namespace assay
