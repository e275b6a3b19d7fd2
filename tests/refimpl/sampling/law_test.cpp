// Expected probabilities: transformers' logits processors (RepetitionPenalty, TemperatureLogitsWarper, TopK,
// TopP, MinP, in the order of its generate()) and softmax, float64.
#include "refimpl/sampling/law.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/system/error.h"
#include "refimpl/sampling/sequence_sampler.h"

namespace assay {
namespace {

const std::vector<double> kLogits = {2.0, -1.0, 0.5, 1.5, -0.25, 1.5};

void expect_distribution(const SamplingParams& rule, const std::vector<TokenId>& seen,
                         const std::vector<double>& expected) {
  const std::vector<double> p = SequenceSampler(rule, seen).process(kLogits);
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

// Limits that are met exactly, in numbers that are exact: probabilities 1/2, 1/4, 1/8, 1/8.
TEST(Sample, WhatStandsOnALimitStays) {
  const std::vector<double> logits = {std::log(0.5), std::log(0.25), std::log(0.125), std::log(0.125)};
  const auto kept = [&](const SamplingParams& params) {
    const std::vector<double> p = sampling_law(logits, params);
    return p.size() - static_cast<std::size_t>(std::count(p.begin(), p.end(), 0.0));
  };
  EXPECT_EQ(kept({.temperature = 1, .top_p = 0.5}), 1U);
  EXPECT_EQ(kept({.temperature = 1, .top_p = 0.5 + 1e-9}), 2U);
  EXPECT_EQ(kept({.temperature = 1, .top_p = 0.875}), 3U);
  EXPECT_EQ(kept({.temperature = 1, .min_p = 1}), 1U);
  EXPECT_EQ(kept({.temperature = 1, .min_p = 0.5 - 1e-9}), 2U);
  EXPECT_GT(sampling_law(logits, {.temperature = 1, .top_k = 3})[2], 0);  // the first of equals
  EXPECT_GT(sampling_law(std::vector<double>(3, 0.0), {.temperature = 1, .min_p = 1})[2], 0);
}

// A token's interval holds its beginning and not its end.
TEST(Sample, NumbersFallWhereTheLawSays) {
  const std::vector<double> law = {0, 0.25, 0, 0.25, 0.5, 0};
  EXPECT_EQ(token_at(law, 0), 1U);
  EXPECT_EQ(token_at(law, std::nextafter(0.25, 0)), 1U);
  EXPECT_EQ(token_at(law, 0.25), 3U);
  EXPECT_EQ(token_at(law, 0.5), 4U);
  EXPECT_EQ(token_at(law, 1 - 0x1p-53), 4U);
  EXPECT_EQ(token_at(std::vector<double>{0.5, 0.4999, 0}, 0.99999), 1U);  // a sum rounded down
}

TEST(Sample, GreedyTakesTheFirstOfEquals) {
  EXPECT_EQ(SequenceSampler({}, {}).sample(std::vector<double>{1, 3, 3, 2}), 1U);
}

TEST(Sample, ATinyTemperatureIsNearlyGreedy) {
  EXPECT_EQ(sampling_law(kLogits, {.temperature = 1e-320}), (std::vector<double>{1, 0, 0, 0, 0, 0}));
}

TEST(Sample, WhatIsNoNumberIsRefused) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const double temperature : {0.0, 1.0}) {
      EXPECT_THROW(sampling_law(std::vector<double>{1, bad}, {.temperature = temperature}), Error) << bad;
      EXPECT_THROW(SequenceSampler({.temperature = temperature}, {}).sample(std::vector<double>{bad, 1}),
                   Error)
          << bad;
    }
  const double never = -std::numeric_limits<double>::infinity();
  EXPECT_THROW(sampling_law(std::vector<double>{never, never}, {}), Error);
  EXPECT_THROW(likeliest(std::vector<double>{never, never}), Error);
  EXPECT_EQ(likeliest(std::vector<double>{never, -1e308, -1e300}), 2U);
  EXPECT_EQ(sampling_law(std::vector<double>{never, 2}, {.temperature = 1}), (std::vector<double>{0, 1}));
}

}  // namespace
}  // namespace assay
