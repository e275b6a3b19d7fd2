// BF16 and F16 rows that are rounded to integers on the way (kernels/operands/int16.h), under every
// instruction set: groups of all magnitudes, taken one by one and many at a time.
#include "kernels/cpu/row_dot.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/numeric/codec.h"
#include "core/numeric/simd_targets.h"
#include "kernels/operands/int16.h"

namespace assay {
namespace {

constexpr std::size_t kGroups = 37, kColumns = kGroups * kInt16Group;

// Numbers of at most 8 bits, the largest of each 32 in [1, 2) · 2^exponent, the least nine binades below; some
// groups are zero.
std::vector<float> weights(int exponent) {
  std::vector<float> row(kColumns);
  for (std::size_t k = 0; k < kColumns; ++k) {
    const std::size_t group = k / kInt16Group, place = (k * 13 + group) % kInt16Group;
    const double significand = static_cast<double>(128 + (k * 37 + group * 11) % 128) / 128;
    const int below = place == 0 ? 0 : 1 + static_cast<int>((k * 5 + group) % 9);
    if (group % 7 == 3) continue;
    row[k] = static_cast<float>(std::ldexp(k % 2 == 0 ? significand : -significand, exponent - below));
  }
  return row;
}

std::vector<float> inputs(int exponent) {
  std::vector<float> x(kColumns);
  for (std::size_t k = 0; k < kColumns; ++k)
    x[k] = std::ldexp(static_cast<float>(k * 7 % 3) - 1.0F, exponent);
  return x;
}

// Sums of whole multiples of 2^(exponent - 11) below 2^24 of them: the same in whatever order.
double expected(const std::vector<float>& w, const std::vector<float>& x, int exponent) {
  const double scale = std::ldexp(1.0, exponent - kInt16WeightBits + 1);
  double sum = 0;
  for (std::size_t k = 0; k < kColumns; ++k) sum += std::nearbyint(w[k] / scale) * scale * x[k];
  return sum;
}

float product(ElementType type, const std::vector<float>& w, const std::vector<float>& x) {
  static const std::string kName = "w";
  std::vector<std::byte> stored(kColumns * 2);
  encode(type, w, Overflow::special, stored.data());
  WeightView view;
  view.name = &kName;
  view.rows = 1;
  view.columns = kColumns;
  view.type = type;
  view.codes = stored.data();
  view.row_bytes = stored.size();
  float y = 0;
  cpu::row_dots(view, 0, 1, cpu::DotInput(x, view, true), &y);
  return y;
}

TEST(RowDot, RoundsWeightsOfEveryMagnitude) {
  struct Exponents {
    ElementType type;
    int w, x;
  };
  std::vector<Exponents> all = {{ElementType::F16, 0, 0}, {ElementType::F16, 14, 3}};
  for (const int w : {-110, -66, -65, -64, -63, -1, 0, 1, 58, 59, 60, 61, 110, 120, 126}) {
    for (const int x : {-62, -61, -60, -59, 0, 59, 60, 61})
      if (std::abs(w + x) < 110) all.push_back({ElementType::BF16, w, x});
  }
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const Exponents& at : all) {
      const std::vector<float> w = weights(at.w), x = inputs(at.x);
      EXPECT_EQ(product(at.type, w, x), expected(w, x, at.w)) << target << " 2^" << at.w << " 2^" << at.x;
    }
  }
  use_simd_target("");
}

TEST(RowDot, WhatIsNotFiniteMakesNaN) {
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const ElementType type : {ElementType::BF16, ElementType::F16}) {
      // Highway's own conversion of F16, where there is no instruction, takes infinity for 65536.
      if (type == ElementType::F16 && !target.starts_with("AVX")) continue;
      for (const std::size_t at : {std::size_t{40}, kColumns - 1}) {
        for (const float bad : {std::numeric_limits<float>::infinity(), NAN}) {
          std::vector<float> w = weights(0);
          w[at] = bad;
          EXPECT_TRUE(std::isnan(product(type, w, inputs(0)))) << target << " " << at;
        }
      }
    }
  }
  use_simd_target("");
}

}  // namespace
}  // namespace assay
