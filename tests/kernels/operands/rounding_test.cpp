// Activations as 16- and 8-bit integers keep the bits that their headers promise: no fewer, and no more.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "core/numeric/codec.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/operands/int16.h"
#include "kernels/operands/int8_block.h"
#include "kernels/operands/rounded_operands.h"

namespace assay {
namespace {

std::vector<double> float32_numbers(std::size_t count) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> number(-3, 3);
  std::vector<double> numbers(count);
  for (double& x : numbers) x = number(random);
  return numbers;
}

// y = x · 1: what is left of x is what its integers stand for. A matrix of ones on its diagonal is exact in
// any type.
std::vector<double> through_identity(ElementType type, Precision precision, const std::vector<double>& x) {
  constexpr std::size_t kWidth = 64;
  std::vector<float> identity(kWidth * kWidth);
  for (std::size_t i = 0; i < kWidth; ++i) identity[i * kWidth + i] = 1;
  std::vector<std::byte> codes(identity.size() * 2);
  encode(type, identity, Overflow::special, codes.data());
  const std::string name = "identity";
  WeightView weight;
  weight.name = &name;
  weight.rows = weight.columns = kWidth;
  weight.row_bytes = kWidth * 2;
  weight.type = type;
  weight.codes = codes.data();
  CpuOps ops(Arithmetic{precision}, 1);
  return ops.download(
      ops.linear(ops.upload(x, x.size() / kWidth, kWidth), weight, {}, ResultRounding::as_arithmetic));
}

// Of each group of 32: the largest error, in units of the group's largest power of two.
double worst(const std::vector<double>& x, const std::vector<double>& y) {
  double most = 0;
  for (std::size_t first = 0; first < x.size(); first += 32) {
    double largest = 0, error = 0;
    for (std::size_t i = first; i < first + 32; ++i) {
      largest = std::max(largest, std::abs(x[i]));
      error = std::max(error, std::abs(x[i] - y[i]));
    }
    most = std::max(most, error / std::exp2(std::floor(std::log2(largest))));
  }
  return most;
}

// 14 bits below the largest power of two: half a step is 2^-14 of it.
TEST(IntActivations, OfFloatingPointWeightsHave14Bits) {
  const std::vector<double> x = float32_numbers(64 * 20);
  for (const ElementType type : {ElementType::BF16, ElementType::F16}) {
    const double error = worst(x, through_identity(type, Precision::int16, x));
    EXPECT_LE(error, 0x1p-14);
    EXPECT_GE(error, 0x1.8p-15);
  }
}

TEST(IntActivations, OfIntegerWeightsHave15Bits) {
  WeightView weight;
  const std::byte code{};
  weight.codes = &code;
  weight.type = ElementType::Q4_K;
  EXPECT_EQ(int16_input_bits(weight), 15);
  EXPECT_EQ(kInt16WeightBits, 12);
  EXPECT_EQ(kInt8BlockBits, 7);
}

TEST(IntActivations, AScaleIsAPowerOfTwoAndNeverTooSmall) {
  EXPECT_EQ(int16_scale(std::array{1.0F, -0.5F}, 15), 0x1p-14F);
  EXPECT_EQ(int16_scale(std::array{1.99F, -0.5F}, 15), 0x1p-14F);
  EXPECT_EQ(int16_scale(std::array{0.0F, -2.0F}, 14), 0x1p-12F);
  EXPECT_EQ(int16_scale(std::array{1e-40F}, 15), 0x1p-126F);
  EXPECT_EQ(int16_scale(std::array{0.0F}, 12), 0x1p-126F);
  EXPECT_TRUE(std::isnan(int16_scale(std::array{1.0F, -INFINITY}, 15)));
  EXPECT_TRUE(std::isnan(int16_scale(std::array{std::nanf(""), 1.0F}, 15)));
}

TEST(IntActivations, CodesAreRoundedToEvenAndStayInRange) {
  EXPECT_EQ(int16_code(2.5F, 1, 15), 2);
  EXPECT_EQ(int16_code(-3.5F, 1, 15), -4);
  EXPECT_EQ(int16_code(32767.9F, 1, 15), 32767);
  EXPECT_EQ(int16_code(-40000, 1, 15), -32767);
  EXPECT_EQ(int16_code(5000, 1, 12), 4095);
  EXPECT_EQ(int16_code(1, std::nanf(""), 15), 0);
}

TEST(IntActivations, EightBitsAreAHundredAndTwentySeventhOfTheLargest) {
  const std::array group = {0.5F, -2.54F, 1.0F};
  const float scale = int8_block_scale(group);
  EXPECT_EQ(scale, 2.54F / 127);
  EXPECT_EQ(int8_block_code(-2.54F, scale), -127);
  EXPECT_EQ(int8_block_code(1.0F, scale), 50);
  EXPECT_TRUE(std::isnan(int8_block_scale(std::array{INFINITY})));
}

// Which weights an arithmetic in integers takes: their type, that their bytes are at hand, row by row.
TEST(IntActivations, TakenAreThoseThatCanBe) {
  static const std::string kName = "w";
  const std::vector<std::uint16_t> bytes(2 * 64);
  const Arithmetic int16{Precision::int16}, int8{Precision::int8_block};
  WeightView weight;
  weight.name = &kName;
  weight.rows = 2;
  weight.columns = 64;
  weight.row_bytes = 128;
  weight.type = ElementType::BF16;
  weight.codes = std::as_bytes(std::span(bytes)).data();
  EXPECT_TRUE(has_int16_floats(weight) && takes_int16(weight, int16) && !takes_int8_block(weight, int8));
  EXPECT_FALSE(takes_int16(weight, int8) || has_integer_rows(weight));
  weight.type = ElementType::F16;
  EXPECT_TRUE(takes_int16(weight, int16));
  weight.type = ElementType::F32;
  EXPECT_FALSE(takes_int16(weight, int16));
  weight.type = ElementType::BF16;
  weight.columns = 48;  // not whole groups
  EXPECT_FALSE(takes_int16(weight, int16));
  weight.columns = 64;
  weight.weight_only = true;
  EXPECT_FALSE(takes_int16(weight, int16));
  weight.weight_only = false;
  for (const bool integers : {false, true}) {
    weight.type = integers ? ElementType::Q6_K : ElementType::BF16;
    const auto taken = [&] { return takes_int16(weight, int16) || takes_int8_block(weight, int8); };
    ASSERT_TRUE(taken());
    EXPECT_EQ(has_integer_rows(weight), integers);
    EXPECT_EQ(int16_input_bits(weight), integers ? 15 : 14);
    weight.input_major = true;
    EXPECT_FALSE(taken());
    weight.input_major = false;
    weight.kind = FormKind::scaled;
    EXPECT_FALSE(taken());
    weight.kind = FormKind::plain;
    const std::byte* codes = weight.codes;
    weight.codes = nullptr;
    EXPECT_FALSE(taken());
    weight.codes = codes;
  }
}

// Under int16 every row of a float weight becomes 12 bits under its own scales: 0.3 in steps of 2^-11, of
// 2^-9.
TEST(IntActivations, EveryRowOfAFloatWeightIsRounded) {
  static const std::string kName = "w";
  std::vector<float> values(2 * 64);
  values[0] = 1;
  values[1] = values[64 + 1] = 0.3F;
  values[64] = 4;
  std::vector<std::byte> codes(values.size() * 2);
  encode(ElementType::F16, values, Overflow::special, codes.data());
  WeightView weight;
  weight.name = &kName;
  weight.rows = 2;
  weight.columns = 64;
  weight.row_bytes = 128;
  weight.type = ElementType::F16;
  weight.codes = codes.data();
  std::vector<double> second(64);
  second[1] = 1;
  CpuOps ops(Arithmetic{Precision::int16}, 1);
  EXPECT_EQ(ops.download(ops.linear(ops.upload(second, 1, 64), weight, {}, {})),
            (std::vector<double>{614 * 0x1p-11, 154 * 0x1p-9}));
}

// A row of two groups and a half: every number is what its own group's integers stand for.
TEST(IntActivations, EightBitBlocksOfARow) {
  std::vector<float> x(80);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t group = i / 32;
    x[i] =
        static_cast<float>(i % 7) * 0.5F - 1.5F + (i % 32 == 3 ? 127.0F * static_cast<float>(group + 1) : 0);
  }
  std::vector<float> y = x;
  round_to_int8_block(y);
  for (std::size_t first = 0; first < x.size(); first += 32) {
    const std::size_t end = std::min(x.size(), first + 32);
    float largest = 0;
    for (std::size_t i = first; i < end; ++i) largest = std::max(largest, std::abs(x[i]));
    const float step = largest / 127;
    for (std::size_t i = first; i < end; ++i)
      EXPECT_EQ(y[i], static_cast<float>(std::nearbyint(x[i] * (1 / step))) * step) << i;
  }
}

WeightView blocks_of(ElementType type, const std::string& name, const std::byte& codes) {
  WeightView weight;
  weight.name = &name;
  weight.rows = 1;
  weight.columns = 256;
  weight.type = type;
  weight.codes = &codes;
  return weight;
}

// ggml has an input's scale over as many inputs as a block of the weight has: Q8_0 beside blocks of 32, Q8_K beside those of 256.
TEST(IntActivations, OfGgmlAreInBlocksOfTheWeight) {
  const std::string name = "weight";
  const std::byte codes{};
  const Arithmetic int8{Precision::int8_block};
  for (const auto& [type, group] : {std::pair{ElementType::Q8_0, 32U},
                                    {ElementType::Q4_0, 32U},
                                    {ElementType::Q4_K, 256U},
                                    {ElementType::Q6_K, 256U},
                                    {ElementType::IQ4_XS, 256U}}) {
    const auto how = operands_of_ggml(blocks_of(type, name, codes), int8);
    ASSERT_TRUE(how) << info(type).name;
    EXPECT_EQ(how->inputs.group, group) << info(type).name;
  }
  // Ours are always of 32.
  EXPECT_EQ(rounded_operands(blocks_of(ElementType::Q4_K, name, codes), int8)->inputs.group, 32U);
  EXPECT_FALSE(operands_of_ggml(blocks_of(ElementType::Q4_K, name, codes), Arithmetic{Precision::f32}));
  EXPECT_FALSE(operands_of_ggml(blocks_of(ElementType::BF16, name, codes), int8));

  // One large number takes its steps from 31 others, or from 255.
  std::vector<float> row(256, 0.01F);
  row[0] = 127;
  std::vector<float> of_32 = row, of_256 = row;
  operands_of_ggml(blocks_of(ElementType::Q8_0, name, codes), int8)->inputs.round(of_32);
  operands_of_ggml(blocks_of(ElementType::Q4_K, name, codes), int8)->inputs.round(of_256);
  EXPECT_EQ(of_32[31], 0);
  EXPECT_NEAR(of_32[32], 0.01, 1e-9);
  EXPECT_EQ(of_256[255], 0);
  EXPECT_EQ(of_256[0], 127);
}

}  // namespace
}  // namespace assay
