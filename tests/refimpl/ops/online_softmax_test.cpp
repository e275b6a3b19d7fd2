// One pass over scores is the same softmax as three.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "refimpl/ops/softmax.h"

namespace assay {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// Σ softmax(s)ᵢ vᵢ with vᵢ = 1, 2, 3, …
double mean_of_places(const std::vector<double>& scores) {
  OnlineSoftmax softmax;
  double mixed = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    double weight = -1;
    mixed *= softmax.take(scores[i], weight);
    mixed += weight * static_cast<double>(i + 1);
  }
  return mixed / softmax.sum();
}

TEST(OnlineSoftmax, IsTheOneOfThreePasses) {
  for (const std::vector<double>& scores : {std::vector<double>{0.5, 2, -1, 7, 6.5},
                                            {3, 2, 1},
                                            {kNothing, 1, kNothing, 2},
                                            {-800, -801},
                                            {900, 900.5}}) {
    std::vector<double> p = scores;
    softmax_three_pass(p);
    double expected = 0;
    for (std::size_t i = 0; i < p.size(); ++i) expected += p[i] * static_cast<double>(i + 1);
    EXPECT_NEAR(mean_of_places(scores), expected, 1e-14);
  }
}

TEST(OnlineSoftmax, ItsLogarithmIsThatOfTheSum) {
  OnlineSoftmax softmax;
  double weight = -1;
  EXPECT_EQ(softmax.log_sum_exp(), kNothing);
  EXPECT_EQ(softmax.take(kNothing, weight), 1);
  EXPECT_EQ(weight, 0);
  EXPECT_EQ(softmax.log_sum_exp(), kNothing);
  EXPECT_EQ(softmax.take(1, weight), 0);
  EXPECT_EQ(weight, 1);
  EXPECT_EQ(softmax.take(0.5, weight), 1);
  EXPECT_EQ(softmax.take(2, weight), std::exp(-1));
  EXPECT_NEAR(softmax.log_sum_exp(), std::log(std::exp(1) + std::exp(0.5) + std::exp(2)), 1e-15);
}

}  // namespace
}  // namespace assay
