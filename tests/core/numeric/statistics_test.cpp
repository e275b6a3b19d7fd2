// Against a count one value at a time over decode()'s output, with the C library's classes.
#include "core/numeric/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/numeric/codec.h"
#include "core/numeric/simd_targets.h"
#include "tests/core/numeric/fixtures.h"

namespace assay {
namespace {

std::vector<ElementType> all_types() {
  std::vector<ElementType> types;
  for (int i = 0; i < kElementTypes; ++i) types.push_back(static_cast<ElementType>(i));
  return types;
}

// The smallest normal number of the stored type; of float32 for blocks; 0 for what has no subnormals.
double smallest_normal(ElementType type) {
  switch (type) {
    case ElementType::F64: return 0x1p-1022;
    case ElementType::F16: return 0x1p-14;
    case ElementType::F8_E4M3: return 0x1p-6;
    case ElementType::F8_E4M3FNUZ: return 0x1p-7;
    case ElementType::F8_E5M2: return 0x1p-14;
    case ElementType::F8_E5M2FNUZ: return 0x1p-15;
    case ElementType::F6_E2M3:
    case ElementType::F4: return 1;
    case ElementType::F6_E3M2: return 0.25;
    case ElementType::F8_E8M0: return 0;
    default: return info(type).is_float ? 0x1p-126 : 0;
  }
}

Numbers counted_one_by_one(ElementType type, std::span<const std::byte> stored) {
  std::vector<double> values(stored.size() / info(type).block_bytes * values_per_block(type));
  decode(type, stored, values.data());
  Numbers n;
  n.count = values.size();
  double min = HUGE_VAL, max = -HUGE_VAL;
  for (const double x : values) {
    n.nan += std::isnan(x);
    n.inf += std::isinf(x);
    n.zero += x == 0;
    n.subnormal += x != 0 && std::abs(x) < smallest_normal(type);
    n.negative += x < 0;
    if (std::isfinite(x)) min = std::min(min, x), max = std::max(max, x);
  }
  if (n.finite() == 0) return n;
  n.min = min + 0.0;
  n.max = max + 0.0;
  n.amax = std::max(std::abs(min), std::abs(max));
  return n;
}

std::string shown(const Numbers& n) {
  std::ostringstream text;
  text << "count " << n.count << " nan " << n.nan << " inf " << n.inf << " zero " << n.zero << " subnormal "
       << n.subnormal << " negative " << n.negative << " min " << n.min << " max " << n.max << " amax "
       << n.amax;
  return text.str();
}

// Uniform bytes, with runs of 0x00, 0x80 and 0xFF so that wide types have zeros, -0 and NaN as well.
std::vector<std::byte> noise(ElementType type, std::size_t blocks, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(blocks * info(type).block_bytes);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t at = 0; at + 16 <= bytes.size(); at += 16 + random() % 200) {
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), random() % 16,
                std::array{std::byte{0}, std::byte{0x80}, std::byte{0xFF}}[random() % 3]);
  }
  return bytes;
}

Numbers whole(ElementType type, std::span<const std::byte> bytes) {
  TensorStatistics statistics(type);
  statistics.update(bytes);
  return statistics.numbers();
}

class StatisticsOnTarget : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};
INSTANTIATE_TEST_SUITE_P(EveryTarget, StatisticsOnTarget, testing::ValuesIn(simd_targets()),
                         [](const auto& test) { return test.param; });

TEST_P(StatisticsOnTarget, EqualACountOneByOne) {
  for (const ElementType type : all_types()) {
    for (const std::size_t blocks : {1u, 7u, 300u}) {
      const std::vector<std::byte> bytes = noise(type, blocks, 17);
      const Numbers expected = counted_one_by_one(type, bytes), actual = whole(type, bytes);
      EXPECT_EQ(actual, expected) << name(type) << "\n" << shown(actual) << "\n" << shown(expected);
    }
  }
}

// Longer than the rounds after which the narrow counters are emptied (255 vectors of bytes, 65,535 of
// halves).
TEST_P(StatisticsOnTarget, NarrowCountersDoNotOverflow) {
  for (const ElementType type : {ElementType::F8_E4M3, ElementType::U8, ElementType::BF16}) {
    const std::vector<std::byte> zeros(5u << 20, std::byte{0});
    const Numbers n = whole(type, zeros);
    EXPECT_EQ(n.zero, zeros.size() / info(type).block_bytes) << name(type);
  }
}

TEST_P(StatisticsOnTarget, SeeEveryCodeOfSixteenBits) {
  for (const ElementType type : {ElementType::F16, ElementType::BF16}) {
    std::vector<std::byte> codes;
    for (int code = 0; code < 65536; ++code) {
      codes.push_back(static_cast<std::byte>(code));
      codes.push_back(static_cast<std::byte>(code >> 8));
    }
    EXPECT_EQ(whole(type, codes), counted_one_by_one(type, codes)) << name(type);
  }
}

template <class Word>
std::vector<std::byte> repeated(const std::vector<Word>& words) {
  std::vector<Word> many;
  for (int i = 0; i < 9; ++i) many.insert(many.end(), words.begin(), words.end());
  const auto bytes = std::as_bytes(std::span(many));
  return {bytes.begin(), bytes.end()};
}

// Zero, the smallest and the largest subnormal, the smallest and the largest normal number, infinity, the NaN
// beside it and the last; of both signs.
TEST_P(StatisticsOnTarget, SeeTheEdgesOfEveryClass) {
  const std::vector<std::byte> singles = repeated<std::uint32_t>(
      {0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF, 0x80000000, 0x80000001,
       0x807FFFFF, 0x80800000, 0xFF7FFFFF, 0xFF800000, 0xFF800001, 0xFFFFFFFF});
  constexpr std::uint64_t kSign = 1ull << 63, kInf = 0x7FFull << 52;
  const std::vector<std::byte> doubles = repeated<std::uint64_t>(
      {0, 1, (1ull << 52) - 1, 1ull << 52, kInf - 1, kInf, kInf + 1, kSign - 1, kSign, kSign + 1,
       kSign | 1ull << 52, kSign | (kInf - 1), kSign | kInf, kSign | (kInf + 1), ~0ull});
  EXPECT_EQ(whole(ElementType::F32, singles), counted_one_by_one(ElementType::F32, singles));
  EXPECT_EQ(whole(ElementType::F64, doubles), counted_one_by_one(ElementType::F64, doubles));
}

TEST(Statistics, DoNotDependOnTheCuts) {
  std::mt19937 random(3);
  for (const ElementType type : all_types()) {
    const std::vector<std::byte> bytes = noise(type, 200, 5);
    const Numbers expected = whole(type, bytes);
    TensorStatistics byte_by_byte(type), at_random(type);
    for (const std::byte& byte : bytes) byte_by_byte.update({&byte, 1});
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t length = std::min<std::size_t>(bytes.size() - at, random() % 1000);
      at_random.update(std::span(bytes).subspan(at, length));
      at += length;
    }
    EXPECT_EQ(byte_by_byte.numbers(), expected) << name(type);
    EXPECT_EQ(at_random.numbers(), expected) << name(type);
    EXPECT_EQ(at_random.leftover_bytes(), 0u);
  }
}

// Known answers, from the definitions of the types.
TEST(Statistics, OfAllCodesOfEightBits) {
  std::vector<std::byte> codes;
  for (int code = 0; code < 256; ++code) codes.push_back(static_cast<std::byte>(code));
  const auto expect = [&](ElementType type, const Numbers& expected) {
    const Numbers actual = whole(type, codes);
    EXPECT_EQ(actual, expected) << name(type) << "\n" << shown(actual) << "\n" << shown(expected);
  };
  //                           count nan inf zero subnormal negative min max amax
  expect(ElementType::F8_E4M3, {256, 2, 0, 2, 14, 126, -448, 448, 448});
  expect(ElementType::F8_E5M2, {256, 6, 2, 2, 6, 124, -57344, 57344, 57344});
  expect(ElementType::F8_E4M3FNUZ, {256, 1, 0, 1, 14, 127, -240, 240, 240});
  expect(ElementType::F8_E5M2FNUZ, {256, 1, 0, 1, 6, 127, -57344, 57344, 57344});
  expect(ElementType::F8_E8M0, {256, 1, 0, 0, 0, 0, 0x1p-127, 0x1p127, 0x1p127});
  expect(ElementType::I8, {256, 0, 0, 1, 0, 128, -128, 127, 128});
  expect(ElementType::U8, {256, 0, 0, 1, 0, 0, 0, 255, 255});
  expect(ElementType::BOOL, {256, 0, 0, 1, 0, 0, 0, 255, 255});
  expect(ElementType::F4, {512, 0, 0, 64, 64, 224, -6, 6, 6});
}

TEST(Statistics, OfNothingAndOfNothingFinite) {
  EXPECT_EQ(whole(ElementType::F32, {}), Numbers{});
  const std::vector<std::byte> nans(40, std::byte{0xFF});
  const Numbers n = whole(ElementType::F32, nans);
  EXPECT_EQ(n, (Numbers{.count = 10, .nan = 10})) << shown(n);
}

TEST(Statistics, MinusZeroIsZero) {
  const std::vector<float> zeros(40, -0.0f);
  const Numbers n = whole(ElementType::F32, std::as_bytes(std::span(zeros)));
  EXPECT_EQ(n.zero, 40u);
  EXPECT_EQ(n.negative, 0u);
  EXPECT_FALSE(std::signbit(n.min));
  EXPECT_FALSE(std::signbit(n.max));
}

TEST(Statistics, ACutTensorShows) {
  TensorStatistics statistics(ElementType::Q4_0);
  statistics.update(std::vector<std::byte>(20));
  EXPECT_EQ(statistics.leftover_bytes(), 2u);
  EXPECT_EQ(statistics.numbers().count, 32u);
}

}  // namespace
}  // namespace assay
