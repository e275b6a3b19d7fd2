// Expected probabilities: transformers' logits processors (RepetitionPenalty, TemperatureLogitsWarper, TopK,
// TopP, MinP, in the order of its generate()) and softmax, float64.
#include "refimpl/ops/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/system/error.h"

namespace assay {
namespace {

const std::vector<double> kLogits = {2.0, -1.0, 0.5, 1.5, -0.25, 1.5};

void expect_distribution(const SampleRule& rule, const std::vector<TokenId>& seen,
                         const std::vector<double>& expected) {
  const std::vector<double> p = sample_distribution(kLogits, rule, seen);
  ASSERT_EQ(p.size(), expected.size());
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], expected[i], 1e-9) << i;
}

TEST(Sample, Temperature) {
  expect_distribution(
      {.temperature = 0.7}, {},
      {0.465040510259, 0.00640071840543, 0.0545581648636, 0.227656703153, 0.0186872001651, 0.227656703153});
}

TEST(Sample, TopK) {
  expect_distribution({.temperature = 0.5, .top_k = 3}, {},
                      {0.576116884766, 0, 0, 0.211941557617, 0, 0.211941557617});
}

TEST(Sample, TopKOfOneIsGreedy) {
  expect_distribution({.temperature = 0.5, .top_k = 1}, {}, {1, 0, 0, 0, 0, 0});
}

// A penalty divides what is above zero, however little, and multiplies what is not.
TEST(Sample, APenaltyOfALogitBelowOne) {
  std::vector<double> expected = {2.0, -1.0 * 1.25, 0.5 / 1.25, 1.5, -0.25, 1.5};
  double sum = 0;
  for (double& x : expected) sum += x = std::exp(x);
  for (double& x : expected) x /= sum;
  expect_distribution({.temperature = 1, .repetition_penalty = 1.25}, {2, 1}, expected);
}

TEST(Sample, TokensBeyondTheLogitsAreNotPenalized) {
  expect_distribution({.temperature = 0.5, .top_k = 1, .repetition_penalty = 1.1}, {6, 7, 1000},
                      {1, 0, 0, 0, 0, 0});
}

TEST(Sample, TopP) {
  expect_distribution({.temperature = 1, .top_p = 0.9}, {},
                      {0.410476766044, 0, 0.0915897465447, 0.248966743706, 0, 0.248966743706});
}

TEST(Sample, MinP) {
  expect_distribution({.temperature = 1.5, .min_p = 0.2}, {},
                      {0.330679933029, 0, 0.121650348969, 0.236942525794, 0.0737846664146, 0.236942525794});
}

TEST(Sample, RepetitionPenalty) {
  expect_distribution(
      {.temperature = 1, .repetition_penalty = 1.3}, {0, 1, 1},
      {0.285366207791, 0.0166983807993, 0.101019317062, 0.274598973893, 0.0477181465609, 0.274598973893});
}

TEST(Sample, AllOfThem) {
  expect_distribution(
      {.temperature = 0.8, .top_k = 5, .top_p = 0.95, .min_p = 0.05, .repetition_penalty = 1.2}, {3, 4},
      {0.480717918282, 0, 0.0737204804199, 0.188251841644, 0, 0.257309759654});
}

TEST(Sample, GreedyTakesTheFirstOfEquals) {
  SampleStream stream(0);
  EXPECT_EQ(sample(std::vector<double>{1, 3, 3, 2}, {}, {}, stream), 1U);
}

TEST(Sample, FrequenciesFollowTheDistribution) {
  const SampleRule rule = {.temperature = 1, .top_k = 4};
  const std::vector<double> p = sample_distribution(kLogits, rule, {});
  constexpr int kDraws = 20000;
  std::vector<int> counts(p.size());
  SampleStream stream(7);
  for (int i = 0; i < kDraws; ++i) ++counts[sample(kLogits, rule, {}, stream)];
  double chi_square = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0) {
      EXPECT_EQ(counts[i], 0) << i;
      continue;
    }
    chi_square += std::pow(counts[i] - kDraws * p[i], 2) / (kDraws * p[i]);
  }
  EXPECT_LT(chi_square, 16.27);  // three degrees of freedom, one in a thousand; the seed is fixed
}

// Sebastiano Vigna's splitmix64.c with seed 1234567: its first five outputs begin so.
TEST(Sample, TheStreamIsSplitMix64) {
  SampleStream stream(1234567);
  EXPECT_EQ(stream.uniform(), static_cast<double>(6457827717110365317ULL >> 11) * 0x1p-53);
  EXPECT_EQ(stream.uniform(), static_cast<double>(3203168211198807973ULL >> 11) * 0x1p-53);
}

TEST(Sample, NanIsRefused) {
  SampleStream stream(0);
  EXPECT_THROW(sample(std::vector<double>{1, std::numeric_limits<double>::quiet_NaN()}, {}, {}, stream),
               Error);
}

}  // namespace
}  // namespace assay
