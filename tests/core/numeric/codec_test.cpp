// Expected values: ml_dtypes, numpy, torch and gguf-py, through data/make_codec_fixtures.py.
#include "core/numeric/codec.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <vector>

#include "core/system/error.h"
#include "tests/core/numeric/fixtures.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::bits_of;
using test::codec_fixture;
using test::Crc32;
using test::float_of;

const ElementType kSmall[] = {ElementType::F8_E4M3,     ElementType::F8_E5M2, ElementType::F8_E4M3FNUZ,
                              ElementType::F8_E5M2FNUZ, ElementType::F6_E2M3, ElementType::F6_E3M2,
                              ElementType::F4};

// The code of one value, whatever its type.
std::uint32_t code_of(ElementType type, float x, Overflow overflow = Overflow::special) {
  if (type == ElementType::F8_E8M0) return encode_e8m0(x, PowerRounding::nearest);
  return encode(*float_format(type), x, overflow);
}

// Known answers at compile time: both codecs are constexpr.
static_assert(decode(kE4M3FN, 0x7E) == 448.0f && decode(kE4M3FN, 0x01) == 0x1p-9f);
static_assert(decode(kE5M2, 0x7B) == 57344.0f && decode(kE5M2, 0x01) == 0x1p-16f);
static_assert(decode(kE4M3FNUZ, 0x7F) == 240.0f && decode(kE5M2FNUZ, 0x7F) == 57344.0f);
static_assert(decode(kE2M3, 0x1F) == 7.5f && decode(kE3M2, 0x1F) == 28.0f && decode(kE2M1, 0x7) == 6.0f);
static_assert(encode(kE4M3FN, 464.0f, Overflow::special) == 0x7E);  // a tie, to even
static_assert(encode(kE4M3FN, 464.1f, Overflow::special) == 0x7F);
static_assert(encode(kE4M3FN, -1e9f, Overflow::saturate) == 0xFE);

TEST(Codec, EveryCodeDecodesAsMlDtypesHasIt) {
  for (const ElementType type : kSmall) {
    const std::vector<std::uint32_t> expected = codec_fixture("decode_" + std::string(name(type)));
    ASSERT_EQ(expected.size(), float_format(type)->sign_code() * 2);
    for (std::uint32_t code = 0; code < expected.size(); ++code) {
      EXPECT_EQ(bits_of(decode(*float_format(type), code)), expected[code]) << name(type) << " code " << code;
    }
  }
  const std::vector<std::uint32_t> e8m0 = codec_fixture("decode_F8_E8M0");
  for (int code = 0; code < 256; ++code) {
    EXPECT_EQ(bits_of(decode_e8m0(static_cast<std::uint8_t>(code))), e8m0[code]) << code;
  }
}

TEST(Codec, TiesNeighboursSpecialsAndNaNsEncodeAsMlDtypesHasThem) {
  for (const ElementType type :
       {kSmall[0], kSmall[1], kSmall[2], kSmall[3], kSmall[4], kSmall[5], kSmall[6], ElementType::F8_E8M0}) {
    const std::vector<std::uint32_t> pairs = codec_fixture("encode_" + std::string(name(type)));
    ASSERT_GE(pairs.size(), 100u);
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      EXPECT_EQ(code_of(type, float_of(pairs[i])), pairs[i + 1])
          << name(type) << " of " << float_of(pairs[i]);
    }
  }
}

TEST(Codec, All65536HalvesAndBrainFloatsDecode) {
  for (const auto& [type, format] : {std::pair{"decode_F16", kF16}, std::pair{"decode_BF16", kBF16}}) {
    Crc32 crc;
    for (std::uint32_t code = 0; code < 65536; ++code) crc.add(bits_of(decode(format, code)));
    EXPECT_EQ(crc.value(), test::codec_table_crc(type)) << type;
  }
}

// 786,432 floats: every upper half of a float32 with lower halves beside the ties.
TEST(Codec, EveryUpperHalfOfAFloatEncodes) {
  for (const ElementType type :
       {ElementType::F16, ElementType::BF16, ElementType::F8_E4M3, ElementType::F8_E5M2,
        ElementType::F8_E4M3FNUZ, ElementType::F8_E5M2FNUZ, ElementType::F8_E8M0, ElementType::F6_E2M3,
        ElementType::F6_E3M2, ElementType::F4}) {
    const bool wide = info(type).block_bytes == 2;
    const bool has_nan = wide || info(type).block_elements == 1;
    Crc32 crc;
    for (const std::uint32_t bits : test::float_patterns()) {
      if (!has_nan && std::isnan(float_of(bits))) continue;
      const std::uint32_t code = code_of(type, float_of(bits));
      if (wide)
        crc.add(static_cast<std::uint16_t>(code));
      else
        crc.add(static_cast<std::uint8_t>(code));
    }
    EXPECT_EQ(crc.value(), test::codec_table_crc("encode_" + std::string(name(type)))) << name(type);
  }
}

TEST(Codec, EveryFiniteCodeSurvivesARoundTrip) {
  for (const ElementType type : {ElementType::F16, ElementType::BF16, ElementType::F8_E4M3,
                                 ElementType::F8_E5M2, ElementType::F8_E4M3FNUZ, ElementType::F8_E5M2FNUZ,
                                 ElementType::F6_E2M3, ElementType::F6_E3M2, ElementType::F4}) {
    const FloatFormat& format = *float_format(type);
    for (std::uint32_t code = 0; code < 2 * format.sign_code(); ++code) {
      const float value = decode(format, code);
      if (std::isnan(value)) continue;
      EXPECT_EQ(encode(format, value, Overflow::special), code) << name(type);
    }
  }
}

TEST(Codec, SaturationKeepsSignAndNaN) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    FloatFormat format;
    float largest;
  };
  for (const auto& [format, largest] :
       {Case{kF16, 65504}, Case{kBF16, 0x1.FEp127f}, Case{kE5M2, 57344}, Case{kE4M3FN, 448},
        Case{kE4M3FNUZ, 240}, Case{kE5M2FNUZ, 57344}, Case{kE3M2, 28}, Case{kE2M3, 7.5f}, Case{kE2M1, 6}}) {
    for (const float x : {inf, std::numeric_limits<float>::max()}) {
      EXPECT_EQ(decode(format, encode(format, x, Overflow::saturate)), largest);
      EXPECT_EQ(decode(format, encode(format, -x, Overflow::saturate)), -largest);
    }
    if (format.special == Special::none) continue;
    EXPECT_TRUE(std::isnan(decode(format, encode(format, nan, Overflow::saturate))));
  }
  // PTX ISA, cvt.satfinite: NaN becomes the positive largest number where there is no NaN.
  EXPECT_EQ(decode(kE2M1, encode(kE2M1, -nan, Overflow::saturate)), 6.0f);
}

TEST(Codec, PowersOfTwoRoundAsAsked) {
  using enum PowerRounding;
  EXPECT_EQ(encode_e8m0(6, down), 127 + 2);
  EXPECT_EQ(encode_e8m0(6, up), 127 + 3);
  EXPECT_EQ(encode_e8m0(6, nearest), 127 + 3);  // a tie, up
  EXPECT_EQ(encode_e8m0(5.9f, nearest), 127 + 2);
  for (const PowerRounding rounding : {nearest, down, up}) {
    EXPECT_EQ(encode_e8m0(8, rounding), 130);
    EXPECT_EQ(encode_e8m0(0x1p-127f, rounding), 0);
    EXPECT_EQ(encode_e8m0(0x1p-140f, rounding), 0);  // no smaller power to go to
    for (const float none : {0.0f, -1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
      EXPECT_EQ(encode_e8m0(none, rounding), 0xFF) << none;
    }
  }
  EXPECT_EQ(encode_e8m0(0x1.8p-127f, down), 0);
  EXPECT_EQ(encode_e8m0(0x1.8p-127f, up), 1);
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

TEST(Codec, PackedTypesComeOutInOrder) {
  std::vector<float> out(4);
  decode(ElementType::F4, bytes({0x21, 0xF7}), out.data());
  EXPECT_EQ(out, (std::vector<float>{0.5f, 1.0f, 6.0f, -6.0f}));
  // Codes 1, 2, 4, 0x3F of six bits each: 1 | 2 << 6 | 4 << 12 | 63 << 18 = 0xFC4081.
  decode(ElementType::F6_E2M3, bytes({0x81, 0x40, 0xFC}), out.data());
  EXPECT_EQ(out, (std::vector<float>{0.125f, 0.25f, 0.5f, -7.5f}));
  std::vector<std::byte> back(3);
  encode(ElementType::F6_E2M3, out, Overflow::saturate, back.data());
  EXPECT_EQ(back, bytes({0x81, 0x40, 0xFC}));
}

TEST(Codec, IntegersKeepTheirValue) {
  double wide[2];
  decode(ElementType::I64, bytes({255, 255, 255, 255, 255, 255, 31, 0, 0, 0, 0, 0, 0, 0, 0, 128}), wide);
  EXPECT_EQ(wide[0], 9007199254740991.0);  // 2^53 - 1
  EXPECT_EQ(wide[1], -0x1p63);
  float narrow[2];
  decode(ElementType::I8, bytes({0x80, 0x7F}), narrow);
  EXPECT_EQ(narrow[0], -128.0f);
  EXPECT_EQ(narrow[1], 127.0f);

  const float values[] = {2.5f, 3.5f, -2.5f, 1000.0f, -1000.0f, std::nanf(""), -0.5f};
  std::array<std::byte, 7> stored;
  encode(ElementType::I8, values, Overflow::saturate, stored.data());
  EXPECT_EQ((std::vector<std::byte>(stored.begin(), stored.end())), bytes({2, 4, 0xFE, 127, 0x80, 0, 0}));
  const float huge[] = {1e30f};
  std::array<std::byte, 8> eight;
  encode(ElementType::U64, huge, Overflow::saturate, eight.data());
  for (const std::byte byte : eight) EXPECT_EQ(byte, std::byte{0xFF});
}

TEST(Codec, ComplexIsTwoFloats) {
  EXPECT_EQ(values_per_block(ElementType::C64), 2u);
  const float complex[] = {1.5f, -2.0f};
  std::array<std::byte, 8> stored;
  encode(ElementType::C64, complex, Overflow::special, stored.data());
  double back[2];
  decode(ElementType::C64, stored, back);
  EXPECT_EQ(back[1], -2.0);
}

TEST(Codec, PartialBlocksAreRefused) {
  float out[4];
  EXPECT_THROW(decode(ElementType::BF16, bytes({1, 2, 3}), out), Error);
  EXPECT_THROW(decode(ElementType::Q4_0, bytes({1, 2, 3}), out), Error);
  std::byte stored[4];
  const float one[] = {1};
  EXPECT_THROW(encode(ElementType::F4, one, Overflow::special, stored), Error);
  EXPECT_THROW(encode(ElementType::Q4_0, std::vector<float>(32), Overflow::special, stored), Error);
}

}  // namespace
}  // namespace assay
