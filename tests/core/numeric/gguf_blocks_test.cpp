// Expected values: gguf-py's dequantize(), through data/make_block_fixtures.py, and blocks that llama.cpp
// quantized.
#include "core/numeric/gguf_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "core/numeric/simd_targets.h"
#include "core/system/error.h"
#include "tests/core/numeric/fixtures.h"
#include "tests/support/fenced.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::bits_of;

std::vector<float> dequantized(ElementType type, std::string_view blocks) {
  test::Fenced<char> stored{std::span(blocks)};
  test::Fenced<float> out(blocks.size() / info(type).block_bytes * info(type).block_elements);
  dequantize(type, std::as_bytes(stored.all()), out.data());
  return {out.all().begin(), out.all().end()};
}

// Each test on every instruction set of this machine.
class GgufBlocks : public testing::TestWithParam<std::tuple<ElementType, std::string>> {
 protected:
  void SetUp() override { use_simd_target(std::get<1>(GetParam())); }
  void TearDown() override { use_simd_target(""); }
};

TEST_P(GgufBlocks, DequantizeToTheBitsOfGgufPy) {
  const ElementType type = std::get<0>(GetParam());
  const std::string file = test::fixture("blocks/" + std::string(name(type)) + ".bin");
  const std::size_t stored = 4 * info(type).block_bytes;
  const std::vector<float> actual = dequantized(type, std::string_view(file).substr(0, stored));
  const std::vector<std::uint32_t> expected = test::words(std::string_view(file).substr(stored));
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(
            test::float_of(expected[i]))) {  // which of several NaNs a sum yields is the processor's choice
      EXPECT_TRUE(std::isnan(actual[i])) << i;
    } else {
      EXPECT_EQ(bits_of(actual[i]), expected[i])
          << i << ": " << actual[i] << ", not " << test::float_of(expected[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllOfGgufPy, GgufBlocks,
    testing::Combine(testing::Values(ElementType::Q4_0, ElementType::Q4_1, ElementType::Q5_0,
                                     ElementType::Q5_1, ElementType::Q8_0, ElementType::Q2_K,
                                     ElementType::Q3_K, ElementType::Q4_K, ElementType::Q5_K,
                                     ElementType::Q6_K, ElementType::IQ2_XXS, ElementType::IQ2_XS,
                                     ElementType::IQ2_S, ElementType::IQ3_XXS, ElementType::IQ3_S,
                                     ElementType::IQ1_S, ElementType::IQ1_M, ElementType::IQ4_NL,
                                     ElementType::IQ4_XS, ElementType::TQ1_0, ElementType::TQ2_0,
                                     ElementType::MXFP4, ElementType::NVFP4),
                     testing::ValuesIn(simd_targets())),
    [](const auto& test) {
      return std::string(name(std::get<0>(test.param))) + "_" + std::get<1>(test.param);
    });

// gguf-py has no decoder for these four; blocks by hand, from the layouts in ggml-common.h. 0x3800 is a half
// 0.5.
TEST(GgufBlocksByHand, EightBitTypesScaleTheirBytes) {
  std::string q8_1("\x00\x38\x34\x12", 4), q8_k("\x00\x00\x00\x3F", 4);  // the sum in Q8_1 plays no part
  for (int i = 0; i < 32; ++i) q8_1 += static_cast<char>(i - 16);
  for (int i = 0; i < 256; ++i) q8_k += static_cast<char>(i - 128);
  q8_k += std::string(32, '\x55');
  const std::vector<float> a = dequantized(ElementType::Q8_1, q8_1), b = dequantized(ElementType::Q8_K, q8_k);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(a[i], 0.5f * static_cast<float>(i - 16));
  for (int i = 0; i < 256; ++i) EXPECT_EQ(b[i], 0.5f * static_cast<float>(i - 128));
}

TEST(GgufBlocksByHand, OneAndTwoBitTypes) {
  const std::string q1_0 = std::string("\x00\x38\x05", 3) + std::string(14, '\0') + "\x80";
  const std::vector<float> a = dequantized(ElementType::Q1_0, q1_0);
  ASSERT_EQ(a.size(), 128u);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(a[i], i == 0 || i == 2 || i == 127 ? 0.5f : -0.5f) << i;

  const std::string q2_0 =
      std::string("\x00\x38\xE4", 3) + std::string(15, '\x55');  // 0xE4: codes 0, 1, 2, 3
  const std::vector<float> b = dequantized(ElementType::Q2_0, q2_0);
  ASSERT_EQ(b.size(), 64u);
  EXPECT_EQ((std::vector<float>(b.begin(), b.begin() + 4)), (std::vector<float>{-0.5f, 0.0f, 0.5f, 1.0f}));
  for (int i = 4; i < 64; ++i) EXPECT_EQ(b[i], 0.0f) << i;
}

TEST(GgufBlocks, PlainTypesAreRefused) {
  float out[4];
  EXPECT_THROW(dequantize(ElementType::F32, {}, out), Error);
}

// llama.cpp's own quantizer, input beside output: values uniform in [-1, 1], so what comes back is close by
// about the step of the type. A swapped nibble or group is wrong by about 0.8 (root mean square).
TEST(GgufBlocks, BlocksThatLlamaCppQuantizedComeBackClose) {
  ASSAY_CASE_OR_SKIP(folder, "gguf/quants-golden");
  struct Case {
    const char* file;
    ElementType type;
    double rms;  // of the error; the step over sqrt(12), with a third to spare
  };
  for (const Case& c :
       {Case{"q4_0_64", ElementType::Q4_0, 0.05}, Case{"q4_1_64", ElementType::Q4_1, 0.05},
        Case{"q5_0_64", ElementType::Q5_0, 0.025}, Case{"q5_1_64", ElementType::Q5_1, 0.025},
        Case{"q8_0_64", ElementType::Q8_0, 0.003}, Case{"iq4_nl_64", ElementType::IQ4_NL, 0.07},
        Case{"q2_k_512", ElementType::Q2_K, 0.25}, Case{"q3_k_512", ElementType::Q3_K, 0.13},
        Case{"q4_k_512", ElementType::Q4_K, 0.05}, Case{"q5_k_512", ElementType::Q5_K, 0.025},
        Case{"q6_k_512", ElementType::Q6_K, 0.013}}) {
    for (const char* variant : {"noim", "im"}) {
      const std::string stem = std::string(c.file) + "_" + variant;
      const std::vector<float> actual =
          dequantized(c.type, test::read_file(folder / (stem + "_expected.bin")));
      const std::vector<std::uint32_t> input = test::words(test::read_file(folder / (stem + "_input.bin")));
      ASSERT_EQ(actual.size(), input.size());
      double sum = 0;
      for (std::size_t i = 0; i < input.size(); ++i) sum += std::pow(actual[i] - test::float_of(input[i]), 2);
      EXPECT_LT(std::sqrt(sum / static_cast<double>(input.size())), c.rms) << stem;
    }
  }
}

}  // namespace
}  // namespace assay
