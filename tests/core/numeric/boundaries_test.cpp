// The ends of loops and of ranges in core/numeric: what a change by one would shift.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/numeric/codec.h"
#include "core/numeric/codec_simd.h"
#include "core/numeric/gguf_blocks.h"
#include "core/numeric/gguf_nvfp4.h"
#include "core/numeric/gguf_quantize.h"
#include "tests/core/numeric/fixtures.h"
#include "tests/support/fenced.h"

namespace assay {
namespace {

TEST(Boundaries, BooleansAreWhatIsNotZero) {
  const std::vector<float> values = {0, 1, -0.0F, 0.25F, -3, std::nanf("")};
  std::vector<std::byte> out(values.size());
  encode(ElementType::BOOL, values, Overflow::saturate, out.data());
  const std::vector<std::byte> due = {std::byte{0}, std::byte{1}, std::byte{0},
                                      std::byte{1}, std::byte{1}, std::byte{1}};
  EXPECT_EQ(out, due);
}

// Two values a byte: scales count values.
TEST(Boundaries, ScalesOfPairsOfCodes) {
  std::vector<std::byte> codes(24);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(37 * i + 11);
  const std::vector<float> scales = {0.5F, 3, -0.25F};
  std::vector<float> plain(48);
  decode(ElementType::F4, codes, plain.data());
  test::Fenced<float> scaled(48);
  simd::decode_scaled(ElementType::F4, codes, 16, scales.data(), scaled.data());
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(scaled.data()[i], plain[i] * scales[i / 16]) << i;
}

// A factor that is a power of two changes no digit: the blocks' own decoder is the truth.
TEST(Boundaries, Nvfp4UnderAFurtherFactor) {
  const std::string file = test::fixture("quantize/NVFP4.bin");
  const std::size_t size = info(ElementType::NVFP4).block_bytes, count = file.size() / size;
  test::Fenced<char> blocks{std::span(file).first(count * size)};
  std::vector<float> plain(count * info(ElementType::NVFP4).block_elements);
  dequantize(ElementType::NVFP4, std::as_bytes(blocks.all()), plain.data());
  test::Fenced<float> out(plain.size());
  dequantize_nvfp4(std::as_bytes(blocks.all()), 4, out.data());
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(out.data()[i], 4 * plain[i]) << i;
}

// A block whose scale is beyond its half is refused, whichever block of the row it is.
TEST(Boundaries, ScalesBeyondTheirHalf) {
  for (const ElementType type :
       {ElementType::Q4_0, ElementType::Q4_1, ElementType::Q5_0, ElementType::Q5_1, ElementType::Q8_0,
        ElementType::Q4_K, ElementType::Q6_K, ElementType::IQ4_NL}) {
    const std::size_t block = info(type).block_elements;
    for (const std::size_t bad : {0, 1, 2}) {
      std::vector<float> values(3 * block);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = i / block == bad ? 4e9F - i : 1.0F + i % 7;
      std::vector<std::byte> out(*storage_bytes(type, values.size()));
      const auto fault = gguf_quantize(type, values, out.data());
      ASSERT_TRUE(fault) << name(type) << " block " << bad;
      EXPECT_EQ(fault->kind, QuantizeFault::Kind::too_large) << name(type);
      EXPECT_EQ(fault->index / block, bad) << name(type);
    }
  }
}

}  // namespace
}  // namespace assay
