#include "core/model/quantity.h"

#include <gtest/gtest.h>

#include "core/system/error.h"

namespace assay {
namespace {

const Quantity kHidden("hidden_size", 7168), kRank("q_lora_rank", 1536);

TEST(Quantity, RemembersHowItWasMade) {
  const Quantity weights = kHidden * kRank;
  EXPECT_EQ(weights.value(), 11'010'048u);
  EXPECT_EQ(weights.numbers(), "7168 × 1536");
  EXPECT_EQ(weights.symbols(), "hidden_size × q_lora_rank");
  const Quantity with_norm = weights + kRank;
  EXPECT_EQ(with_norm.numbers(), "7168 × 1536 + 1536");
  EXPECT_EQ((Quantity(3) * with_norm).numbers(), "3 × (7168 × 1536 + 1536)");
}

TEST(Quantity, FlattensAndDropsABareOne) {
  EXPECT_EQ((Quantity(1) * kHidden).numbers(), "7168");
  EXPECT_EQ((Quantity("experts", 1) * kHidden).numbers(), "1 × 7168");
  EXPECT_EQ(((kHidden + kRank) + kRank).numbers(), "7168 + 1536 + 1536");
}

TEST(Quantity, GathersLikeTerms) {
  const Quantity terms[] = {kHidden * kRank, kRank, kRank * kHidden, kHidden * kRank};
  const Quantity sum = gathered_sum(terms);
  EXPECT_EQ(sum.numbers(), "3 × 7168 × 1536 + 1536");
  EXPECT_EQ(sum.value(), 3u * 7168 * 1536 + 1536);
  EXPECT_EQ(gathered_sum({}).value(), 0u);
}

TEST(Quantity, RefusesWhatDoesNotFit) {
  const Quantity big(1ull << 33);
  EXPECT_THROW(big * big, Error);
  EXPECT_THROW(Quantity(~0ull) + Quantity(1), Error);
  EXPECT_EQ((Quantity(1ull << 32) * Quantity(1ull << 31)).value(), 1ull << 63);
}

}  // namespace
}  // namespace assay
