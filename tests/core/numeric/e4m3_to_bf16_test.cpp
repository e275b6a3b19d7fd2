// Straight from codes to BF16's bits, against the way through float32 and double.
#include "core/numeric/e4m3_to_bf16.h"

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

class E4m3ToBf16 : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};

// All codes but NaN's, in another order for every length.
std::vector<std::uint8_t> some_codes(std::size_t count) {
  std::vector<std::uint8_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    codes[i] = static_cast<std::uint8_t>(i * 37 + count);
    if ((codes[i] & 0x7F) == 0x7F) codes[i] ^= 0x41;
  }
  return codes;
}

void expect_as_by_float32(std::size_t rows, std::size_t columns, std::size_t stride, float scale) {
  const std::vector<std::uint8_t> codes = some_codes(rows * stride);
  std::vector<float> values(codes.size()), after(codes.size());
  decode(ElementType::F8_E4M3, std::as_bytes(std::span(codes)), values.data());
  for (float& value : values) value *= scale;
  std::vector<std::uint16_t> expected(codes.size()), made(codes.size(), 0xABCD);
  encode(ElementType::BF16, values, Overflow::special, std::as_writable_bytes(std::span(expected)).data());
  decode(ElementType::BF16, std::as_bytes(std::span(expected)), after.data());
  DifferenceSums sums;
  float largest = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (i % stride >= columns) {
      expected[i] = 0xABCD;  // not the block's
      continue;
    }
    const double x = values[i], e = after[i] - x;
    sums.before_squares += x * x, sums.error_squares += e * e, sums.products += x * e;
    sums.largest = std::max(sums.largest, std::abs(e));
    largest = std::max(largest, std::abs(values[i]));
  }
  const auto block = e4m3_to_bf16(codes.data(), rows, columns, stride, scale, made.data());
  ASSERT_TRUE(block) << scale;
  EXPECT_EQ(made, expected) << scale;
  EXPECT_EQ(block->sums.largest, sums.largest);
  EXPECT_EQ(block->largest, largest);
  EXPECT_NEAR(block->sums.before_squares, sums.before_squares, 1e-12 * sums.before_squares);
  EXPECT_NEAR(block->sums.error_squares, sums.error_squares, 1e-12 * sums.error_squares);
  EXPECT_NEAR(block->sums.products, sums.products,
              1e-12 * std::sqrt(sums.before_squares * sums.error_squares));
}

TEST_P(E4m3ToBf16, MakesTheSameBitsAndSums) {
  for (const float scale : {1.0F, -1.0F, 0.00073F, 3.1e-5F, -0.7777F, 1.0F / 3, 0x1.FFFFFEp-9F, 0x1.FFp3F,
                            0x1.010101p-120F, 0x1.FFFFp117F, 0x1p118F}) {
    expect_as_by_float32(1, 700, 700, scale);
    expect_as_by_float32(3, 129, 150, scale);
    for (const std::size_t columns : {1, 7, 15, 16, 17, 40}) expect_as_by_float32(2, columns, 41, scale);
  }
}

TEST_P(E4m3ToBf16, LeavesNaNAndScalesOfTheEdgeToOthers) {
  std::vector<std::uint8_t> codes = some_codes(64);
  std::vector<std::uint16_t> out(codes.size());
  const auto made = [&](float scale) {
    return e4m3_to_bf16(codes.data(), 1, codes.size(), codes.size(), scale, out.data()).has_value();
  };
  for (const float scale : {0.0F, 0x1p-121F, 0x1p119F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(made(scale)) << scale;
    EXPECT_FALSE(made(-scale)) << scale;
  }
  EXPECT_TRUE(made(1));
  for (const std::uint8_t nan : {0x7F, 0xFF}) {
    for (const std::size_t at : {0, 40, 63}) {
      codes = some_codes(64);
      codes[at] = nan;
      EXPECT_FALSE(made(1));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, E4m3ToBf16, ::testing::ValuesIn(simd_targets()));

}  // namespace
}  // namespace assay
