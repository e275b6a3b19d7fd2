// The vector codecs against the scalar ones (which codec_test.cpp holds against the outside world), on every
// instruction set of this machine.
#include "core/numeric/codec_simd.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/numeric/simd_targets.h"
#include "core/system/error.h"
#include "tests/core/numeric/fixtures.h"

namespace assay {
namespace {

const ElementType kVectorized[] = {ElementType::BF16,    ElementType::F16,         ElementType::F8_E4M3,
                                   ElementType::F8_E5M2, ElementType::F8_E4M3FNUZ, ElementType::F8_E5M2FNUZ,
                                   ElementType::I8};

class CodecSimd : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { use_simd_target(GetParam()); }
  void TearDown() override { use_simd_target(""); }
};
INSTANTIATE_TEST_SUITE_P(EveryTarget, CodecSimd, testing::ValuesIn(simd_targets()),
                         [](const auto& test) { return test.param; });

TEST_P(CodecSimd, EveryCodeDecodesToTheScalarBits) {
  for (const ElementType type : kVectorized) {
    const std::size_t width = info(type).block_bytes;
    std::vector<std::byte> codes;
    for (std::uint32_t code = 0; code < 1u << (8 * width); ++code) {
      for (std::size_t i = 0; i < width; ++i) codes.push_back(static_cast<std::byte>(code >> (8 * i)));
    }
    for (int i = 0; i < 13; ++i)
      codes.insert(codes.end(), codes.begin(), codes.begin() + width);  // a ragged end
    const std::size_t count = codes.size() / width;
    std::vector<float> expected(count), actual(count);
    decode(type, codes, expected.data());
    simd::decode(type, codes, actual.data());
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(test::bits_of(actual[i]), test::bits_of(expected[i])) << name(type) << " code " << i;
    }
  }
}

TEST_P(CodecSimd, FloatsAroundEveryTieEncodeToTheScalarCodes) {
  std::vector<float> values;
  for (const std::uint32_t bits : test::float_patterns()) values.push_back(test::float_of(bits));
  values.resize(values.size() - 5);
  for (const ElementType type : kVectorized) {
    for (const Overflow overflow : {Overflow::special, Overflow::saturate}) {
      std::vector<std::byte> expected(values.size() * info(type).block_bytes), actual(expected.size());
      encode(type, values, overflow, expected.data());
      simd::encode(type, values, overflow, actual.data());
      ASSERT_EQ(std::memcmp(actual.data(), expected.data(), actual.size()), 0)
          << name(type) << " value "
          << values[static_cast<std::size_t>(
                        std::mismatch(actual.begin(), actual.end(), expected.begin()).first -
                        actual.begin()) /
                    info(type).block_bytes];
    }
  }
}

TEST_P(CodecSimd, ScaledCodesAreRoundedOnce) {
  std::vector<std::byte> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i * 37);
  // Also scales of which 256 times would overflow, subnormal ones, and no numbers at all.
  const float scales[] = {0.3F, -1.7F, 1e-40F, 0x1p125F, std::numeric_limits<float>::infinity(), 3e-39F};
  constexpr std::size_t kBlock = 43;
  for (const ElementType type : {ElementType::F8_E4M3, ElementType::F8_E5M2, ElementType::I8}) {
    std::vector<float> plain(codes.size()), scaled(codes.size());
    decode(type, codes, plain.data());
    simd::decode_scaled(type, codes, kBlock, scales, scaled.data());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const float expected = plain[i] * scales[i / kBlock];
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(scaled[i])) << i;
      else
        EXPECT_EQ(std::bit_cast<std::uint32_t>(scaled[i]), std::bit_cast<std::uint32_t>(expected)) << i;
    }
  }
}

TEST_P(CodecSimd, OtherTypesGoTheScalarWay) {
  const std::byte codes[] = {std::byte{0x21}, std::byte{0xF7}};
  float out[4];
  simd::decode(ElementType::F4, codes, out);
  EXPECT_EQ(out[3], -6.0f);
  std::byte back[2];
  simd::encode(ElementType::F4, out, Overflow::saturate, back);
  EXPECT_EQ(back[1], codes[1]);
}

TEST(SimdTargets, UnknownOnesAreRefused) {
  EXPECT_THROW(use_simd_target("MMX"), Error);
}

}  // namespace
}  // namespace assay
