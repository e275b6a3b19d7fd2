// Scales and codes of small blocks against their definitions.
#include "core/numeric/microscaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace assay {
namespace {

std::vector<float> magnitudes() {
  std::vector<float> all = {1,     2,          3,    6,       7,      448,    449,
                            1.75F, 1.7499999F, 0.1F, 3.4e38F, 1e-37F, 6e-39F, 1e-45F};
  for (const float x : std::vector<float>(all)) {
    all.push_back(std::nextafter(x, 0.0F));
    all.push_back(x / 3);
  }
  return all;
}

int clamped(double power) {
  return static_cast<int>(std::clamp(power, -127.0, 127.0)) + 127;
}

TEST(MxScale, FollowsItsFourDefinitions) {
  for (const MxElements& elements : {kMxE2M1, kMxE4M3}) {
    for (const float amax : magnitudes()) {
      if (amax == 0) continue;
      int exponent = 0;
      const double fraction =
          std::frexp(static_cast<double>(amax), &exponent);  // amax = fraction · 2^exponent
      const int down = exponent - 1, up = fraction == 0.5 ? exponent - 1 : exponent;
      EXPECT_EQ(mx_scale(amax, MxScaling::floor, elements), clamped(down - elements.largest_power)) << amax;
      EXPECT_EQ(mx_scale(amax, MxScaling::ceil, elements), clamped(up - elements.largest_power)) << amax;
      const float quotient = amax / elements.largest;
      const double least = quotient == 0 ? -127 : std::ceil(std::log2(static_cast<double>(quotient)));
      EXPECT_EQ(mx_scale(amax, MxScaling::rceil, elements), clamped(least)) << amax;
      if (amax < std::numeric_limits<float>::min()) continue;
      const int even = fraction >= 0.875 ? down + 1 : down;  // from 1.75 · 2^k up
      EXPECT_EQ(mx_scale(amax, MxScaling::even, elements), clamped(even - elements.largest_power)) << amax;
    }
    for (const MxScaling scaling : {MxScaling::floor, MxScaling::ceil, MxScaling::even, MxScaling::rceil})
      EXPECT_EQ(mx_scale(0, scaling, elements), 0);
  }
}

// The nearest of 0, ½, 1, 1½, 2, 3, 4, 6; of two the one with the even code, or the one nearer to zero.
int nearest_fp4(float x, Fp4Ties ties) {
  constexpr std::array kValues = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  const float magnitude = std::abs(x);
  int best = 7;
  for (int code = 6; code >= 0; --code) {
    const float gap = std::abs(magnitude - kValues[static_cast<std::size_t>(code)]);
    const float least = std::abs(magnitude - kValues[static_cast<std::size_t>(best)]);
    if (gap < least || (gap == least && (ties == Fp4Ties::down || code % 2 == 0))) best = code;
  }
  return best + (x < 0 ? 8 : 0);
}

TEST(Fp4, CodesAreTheNearest) {
  std::vector<float> values;
  for (int i = -70; i <= 70; ++i) values.push_back(static_cast<float>(i) / 8);
  for (const float x : std::vector<float>(values)) {
    values.push_back(std::nextafter(x, -9.0F));
    values.push_back(std::nextafter(x, 9.0F));
  }
  values.insert(values.end(), {0.0F, -0.0F, 1e-40F, -1e-40F, 100.0F, -100.0F, INFINITY});
  if (values.size() % 2 != 0) values.push_back(1);
  for (const Fp4Ties ties : {Fp4Ties::even, Fp4Ties::down}) {
    std::vector<std::byte> out(values.size() / 2);
    encode_fp4(values, ties, out);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int code = std::to_integer<int>(out[i / 2]) >> (i % 2 * 4) & 0xF;
      const float x = std::isinf(values[i]) ? 6.0F : values[i];
      EXPECT_EQ(code, nearest_fp4(x, ties)) << values[i];
    }
  }
}

std::vector<float> random_floats(std::size_t count) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> number(-10, 10);
  std::vector<float> values(count);
  for (float& x : values) x = number(random);
  return values;
}

TEST(Blocks, AreDividedByTheirScales) {
  const std::vector<float> values = random_floats(7 * 32 + 5), scales = {1, 2, 0.5F, 4, 0.25F, 8, 3, 5};
  std::vector<float> out(values.size());
  const std::uint64_t beyond = divide_blocks(values, 32, scales, 6, out);
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(out[i], values[i] / scales[i / 32]);
    expected += std::abs(values[i] / scales[i / 32]) > 6 ? 1 : 0;
  }
  EXPECT_EQ(beyond, expected);
  EXPECT_GT(expected, 20U);
  const std::vector<float> at_the_limit = {6, -6, 6.5F};
  EXPECT_EQ(divide_blocks(at_the_limit, 3, scales, 6, out), 1U);
}

TEST(Blocks, OfIntegersThereAndBack) {
  const std::vector<float> values = random_floats(3 * 100 + 30);
  const std::vector<float> scales = {0.5F, 1, 2, 0.25F}, zeros = {0, 3, -2, 1};
  std::vector<std::uint8_t> codes(values.size());
  quantize_groups(values, 100, scales, zeros, -8, 7, codes);
  std::vector<float> back(values.size());
  const std::vector<float> offsets = {-8, -11, -6, -9};
  dequantize_groups(codes, 100, scales, offsets, back);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t g = i / 100;
    const float rounded = std::clamp(std::nearbyint(values[i] / scales[g] + zeros[g]), -8.0F, 7.0F);
    ASSERT_EQ(codes[i], static_cast<int>(rounded + 8)) << i;
    ASSERT_EQ(back[i], (static_cast<float>(codes[i]) + offsets[g]) * scales[g]) << i;
  }
  const std::vector<float> ties = {0.5F, 1.5F, -0.5F, -1.5F, 7.5F, -8.5F}, one = {1}, none = {0};
  std::vector<std::uint8_t> even(6);
  quantize_groups(ties, 6, one, none, -8, 7, even);
  EXPECT_EQ(even, (std::vector<std::uint8_t>{8, 10, 8, 6, 15, 0}));
}

TEST(Blocks, RangesHoldZero) {
  for (const std::size_t block : {1, 15, 16, 17, 40}) {
    std::vector<float> values = random_floats(203);
    values[0] = 50;
    values.back() = -70;
    for (std::size_t i = 40; i < 80; ++i) values[i] = std::abs(values[i]);
    const std::size_t blocks = (values.size() + block - 1) / block;
    std::vector<float> low(blocks), high(blocks);
    group_ranges(values, block, low, high);
    for (std::size_t b = 0; b < blocks; ++b) {
      float least = 0, most = 0;
      for (std::size_t i = b * block; i < std::min(values.size(), (b + 1) * block); ++i) {
        least = std::min(least, values[i]);
        most = std::max(most, values[i]);
      }
      ASSERT_EQ(low[b], least) << block << " " << b;
      ASSERT_EQ(high[b], most) << block << " " << b;
    }
  }
}

}  // namespace
}  // namespace assay
