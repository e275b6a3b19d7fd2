// Sums of products against the order that is promised, to the bit: short ones, tails of every length, and any number of rows.
#include "core/numeric/dot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace assay {
namespace {

template <class X, class W>
double eight_sums(const X* x, const W* w, std::size_t n) {
  double s[8] = {};
  for (std::size_t i = 0; i < n; ++i) {
    const double product = static_cast<double>(x[i]) * static_cast<double>(w[i]);
    s[i % 8] += product;
  }
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

// Numbers of many magnitudes, whose sums are another number in another order.
template <class T>
std::vector<T> numbers(std::size_t count, unsigned seed) {
  std::vector<T> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    all[i] = static_cast<T>(
        std::ldexp(static_cast<double>(static_cast<int>(seed)) / 7, static_cast<int>(seed >> 27) - 40));
  }
  return all;
}

template <class T>
void holds_for_every_length() {
  for (std::size_t n = 0; n < 70; ++n) {
    for (std::size_t rows = 0; rows < 6; ++rows) {
      const std::vector<T> x = numbers<T>(n, 1), w = numbers<T>(n * rows, 2);
      std::vector<double> sums(rows + 1, -1);
      dot_rows(x.data(), w.data(), n, rows, sums.data());
      for (std::size_t r = 0; r < rows; ++r) {
        const double right = eight_sums(x.data(), w.data() + r * n, n);
        EXPECT_EQ(sums[r], right) << n << " terms, row " << r << " of " << rows;
        EXPECT_EQ(dot(x.data(), w.data() + r * n, n), right);
      }
      EXPECT_EQ(sums[rows], -1);
    }
  }
}

TEST(Dot, OfFloatsIsInItsOrder) {
  holds_for_every_length<float>();
}

TEST(Dot, OfDoublesIsInItsOrder) {
  holds_for_every_length<double>();
}

TEST(Dot, OfDoublesAndFloatsIsInItsOrder) {
  for (std::size_t n = 0; n < 70; ++n) {
    const std::vector<double> x = numbers<double>(n, 1);
    const std::vector<float> w = numbers<float>(n, 2);
    EXPECT_EQ(dot(x.data(), w.data(), n), eight_sums(x.data(), w.data(), n)) << n;
  }
}

// A fused product of doubles would not be rounded before it is added: (1 + u)(1 - u) - 1 = -u².
TEST(Dot, ProductsAreRoundedBeforeTheyAreAdded) {
  std::vector<double> x(16), w(16);
  x[0] = 1, w[0] = -1;
  x[8] = 1 + 0x1p-30, w[8] = 1 - 0x1p-30;
  EXPECT_EQ(dot(x.data(), w.data(), x.size()), 0);
}

}  // namespace
}  // namespace assay
