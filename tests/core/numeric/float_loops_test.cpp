#include "core/numeric/float_loops.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/numeric/codec.h"
#include "core/numeric/simd_targets.h"

namespace assay {
namespace {

std::vector<float> some_values(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::sin(static_cast<float>(i) * step) * (i % 7 == 0 ? 100.0F : 1.0F);
  return values;
}

class FloatLoops : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};

TEST_P(FloatLoops, FindTheLargestMagnitudeWhereverItStands) {
  for (const std::size_t count : {1, 7, 16, 33, 100}) {
    for (std::size_t at = 0; at < count; ++at) {
      std::vector<float> values(count, -0.5F);
      values[at] = -3.0F;
      EXPECT_EQ(largest_magnitude_bits(values.data(), count), std::bit_cast<std::uint32_t>(3.0F));
      values[at] = -std::numeric_limits<float>::quiet_NaN();
      EXPECT_GT(largest_magnitude_bits(values.data(), count), 0x7F800000u);
    }
  }
  EXPECT_EQ(largest_magnitude_bits(nullptr, 0), 0u);
}

TEST_P(FloatLoops, RoundEveryElementByItself) {
  const std::vector<float> values = some_values(77, 0.37F);
  std::vector<float> product = values, quotient(values.size());
  const float factors[] = {0.3F, -1.7F, 5.0F};
  multiply_blocks(product.data(), product.size(), 32, factors);
  std::size_t beyond = 0;
  const std::size_t counted = divide_by(values.data(), values.size(), 0.3F, 2.0F, quotient.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(product[i], values[i] * factors[i / 32]);
    EXPECT_EQ(quotient[i], values[i] / 0.3F);
    beyond += std::abs(values[i] / 0.3F) > 2.0F ? 1 : 0;
  }
  EXPECT_EQ(counted, beyond);
}

TEST_P(FloatLoops, RoundToBf16AndSumTheErrorsAsTheTwoStepsDo) {
  for (const std::size_t count : {0, 5, 128, 300, 1024}) {
    for (const float scale : {1.0F, 1e30F, 3.4e36F, 1e-30F}) {  // squares within float's range, and beyond
      std::vector<float> values = some_values(count, 0.37F), after(count);
      for (float& value : values) value *= scale;
      if (count == 1024) values[77] = std::numeric_limits<float>::max();  // infinite in BF16
      std::vector<std::uint16_t> codes(count), expected(count);
      encode(ElementType::BF16, values, Overflow::special,
             std::as_writable_bytes(std::span(expected)).data());
      decode(ElementType::BF16, std::as_bytes(std::span(expected)), after.data());
      const DifferenceSums sums = bf16_with_errors(values.data(), count, codes.data());
      const DifferenceSums two_steps = difference_sums(values.data(), after.data(), count);
      EXPECT_EQ(codes, expected);
      EXPECT_EQ(sums.largest, two_steps.largest);
      EXPECT_EQ(sums.before_squares, two_steps.before_squares);
      if (std::isfinite(two_steps.largest)) {
        EXPECT_EQ(sums.error_squares, two_steps.error_squares);
        EXPECT_EQ(sums.products, two_steps.products);
      }
    }
  }
}

TEST_P(FloatLoops, SumInOneOrderOnEveryProcessor) {
  for (const std::size_t count : {0, 5, 8, 128, 1003}) {
    const std::vector<float> before = some_values(count, 0.11F), after = some_values(count, 0.1100001F);
    const DifferenceSums sums = difference_sums(before.data(), after.data(), count);
    double lanes[3][8] = {}, largest = 0;
    const std::size_t whole = count / 128 * 128;
    for (std::size_t run = 0; run < whole; run += 128) {
      float of_run[3][8] = {};
      for (std::size_t i = run; i < run + 128; ++i) {
        const float x = before[i], e = after[i] - x;
        of_run[0][i % 8] += x * x;
        of_run[1][i % 8] += e * e;
        of_run[2][i % 8] += x * e;
        largest = std::max<double>(largest, std::abs(e));
      }
      for (int which = 0; which < 3; ++which) {
        for (int lane = 0; lane < 8; ++lane) lanes[which][lane] += of_run[which][lane];
      }
    }
    for (std::size_t i = whole; i < count; ++i) {
      const double x = before[i], e = after[i] - x;
      lanes[0][i % 8] += x * x;
      lanes[1][i % 8] += e * e;
      lanes[2][i % 8] += x * e;
      largest = std::max(largest, std::abs(e));
    }
    double totals[3] = {};
    for (int which = 0; which < 3; ++which) {
      for (const double lane : lanes[which]) totals[which] += lane;
    }
    EXPECT_EQ(sums.before_squares, totals[0]);
    EXPECT_EQ(sums.error_squares, totals[1]);
    EXPECT_EQ(sums.products, totals[2]);
    EXPECT_EQ(sums.largest, largest);
  }
}

// Their squares would be infinite, or nothing, in float.
TEST_P(FloatLoops, SumValuesOfAnyMagnitude) {
  for (const float magnitude : {1e30F, 1e19F, 1e-12F, 1e-25F}) {
    const std::vector<float> before(300, magnitude), after(300, magnitude * 1.5F);
    const DifferenceSums sums = difference_sums(before.data(), after.data(), before.size());
    const double x = magnitude, e = magnitude * 1.5F - x;
    EXPECT_NEAR(sums.before_squares / (300 * x * x), 1, 1e-9) << magnitude;
    EXPECT_NEAR(sums.error_squares / (300 * e * e), 1, 1e-9) << magnitude;
    EXPECT_NEAR(sums.products / (300 * x * e), 1, 1e-9) << magnitude;
  }
}

// The squares of the values are beyond float32, those of the errors are not.
TEST_P(FloatLoops, SumSmallErrorsOfLargeValues) {
  const std::vector<float> before(300, 1e20F), after(300, 1.0001e20F);
  const DifferenceSums sums = difference_sums(before.data(), after.data(), before.size());
  const double x = before[0], e = double{after[0]} - x;
  EXPECT_NEAR(sums.before_squares / (300 * x * x), 1, 1e-9);
  EXPECT_NEAR(sums.error_squares / (300 * e * e), 1, 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Targets, FloatLoops, ::testing::ValuesIn(simd_targets()));

}  // namespace
}  // namespace assay
