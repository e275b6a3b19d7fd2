// Stored weights as numbers: rows of a part, scales of blocks, global scales, float64.
#include "refimpl/ops/weight_view.h"
#include "core/system/json.h"

#include <gtest/gtest.h>

#include <thread>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "core/formats/checkpoint.h"
#include "core/model/stored_form.h"
#include "core/model/stored_reader.h"
#include "core/numeric/codec.h"
#include "core/system/error.h"
#include "refimpl/ops/fallbacks.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/w8a8.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

const std::string kName = "w";

template <class T>
WeightView plain(const std::vector<T>& values, std::size_t rows, ElementType type) {
  WeightView view;
  view.name = &kName;
  view.rows = rows;
  view.columns = values.size() / rows;
  view.type = type;
  view.codes = std::as_bytes(std::span(values)).data();
  view.row_bytes = view.columns * sizeof(T);
  return view;
}

std::vector<double> decoded(const WeightView& weight, std::size_t first, std::size_t count) {
  std::vector<double> out(count * weight.columns);
  decode_rows(weight, first, count, out.data());
  return out;
}

TEST(WeightView, ADoubleKeepsAllItsBits) {
  const std::vector<double> values = {0.1, 0.2, 0.3, 0.4, 0.5, 1 / 3.0};
  const WeightView weight = plain(values, 3, ElementType::F64);
  EXPECT_EQ(decoded(weight, 0, 3), values);
  EXPECT_EQ(decoded(weight, 1, 2), (std::vector<double>{0.3, 0.4, 0.5, 1 / 3.0}));
  EXPECT_EQ(decoded(weight.row_range(2, 1), 0, 1), (std::vector<double>{0.5, 1 / 3.0}));
  EXPECT_EQ(decode_vector(weight), values);
  EXPECT_THROW(decoded(weight, 3, 1), Error);
}

TEST(WeightView, RowsBeyondTheLastAreRefused) {
  const std::vector<float> values = {1, 2, 3, 4};
  const WeightView weight = plain(values, 2, ElementType::F32);
  EXPECT_EQ(decoded(weight, 2, 0), std::vector<double>());
  EXPECT_THROW(decoded(weight, 2, 1), Error);
  EXPECT_THROW(decoded(weight, 3, 0), Error);
  EXPECT_THROW(weight.row_range(1, 2), Error);
  EXPECT_NO_THROW(weight.row_range(0, 2));
  std::array<float, 2> narrow = {};
  EXPECT_THROW(decode_rows(weight, 2, 1, narrow.data()), Error);
}

// Five rows under scales for two rows and three columns: row 4 has the third row of scales, of a part as
// well.
TEST(WeightView, ScalesFollowTheRowsOfAPart) {
  const std::vector<std::int8_t> codes(5 * 6, 1);
  const std::vector<float> scales = {2, 3, 5, 7, 11, 13};  // [3, 2]
  WeightView weight = plain(codes, 5, ElementType::I8);
  weight.kind = FormKind::scaled;
  weight.scales = std::as_bytes(std::span(scales)).data();
  weight.block_rows = 2;
  weight.block_columns = 3;
  weight.scale_columns = 2;
  EXPECT_EQ(decoded(weight, 4, 1), (std::vector<double>{11, 11, 11, 13, 13, 13}));
  EXPECT_EQ(decoded(weight.row_range(1, 3), 0, 2), (std::vector<double>{2, 2, 2, 3, 3, 3, 5, 5, 5, 7, 7, 7}));
  EXPECT_EQ(decoded(weight.row_range(1, 4).row_range(1, 2), 0, 1), (std::vector<double>{5, 5, 5, 7, 7, 7}));
  weight.global_scale = 4;
  EXPECT_EQ(decoded(weight, 0, 1).front(), 2);
  weight.global = GlobalScale::multiply;
  EXPECT_EQ(decoded(weight, 0, 1).front(), 8);
  weight.global = GlobalScale::divide;
  EXPECT_EQ(decoded(weight, 0, 1).front(), 0.5);
}

// What only a reader decodes (GPTQ's packed integers): parts of it, and parts of parts.
TEST(WeightView, RowsOfAReaderOfAPart) {
  const Checkpoint checkpoint = open_checkpoint(test::source_dir() / "data/fixtures/convert/forms/gptq", 1);
  const StoredTensors stored = find_stored(checkpoint, read_quantization(checkpoint));
  const auto packed = std::find_if(
      stored.tensors.begin(), stored.tensors.end(),
      [](const LogicalTensor& tensor) { return tensor.form.kind != FormKind::plain && tensor.rows > 8; });
  ASSERT_NE(packed, stored.tensors.end());
  const CheckpointReader files(checkpoint);
  const StoredReader reader(files, *packed);
  WeightView weight;
  weight.name = &packed->name;
  weight.rows = packed->rows;
  weight.columns = packed->columns;
  weight.reader = &reader;
  const std::vector<double> all = decoded(weight, 0, weight.rows);
  const auto row = [&](std::size_t r) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(r * weight.columns);
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(weight.columns));
  };
  EXPECT_NE(row(4), row(1));
  EXPECT_EQ(decoded(weight.row_range(3, 4), 1, 1), row(4));
  EXPECT_EQ(decoded(weight.row_range(3, 5).row_range(2, 2), 1, 1), row(6));
  EXPECT_THROW(decoded(weight, weight.rows, 1), Error);
}

TEST(WeightView, BlocksOfIntegers) {
  for (const ElementType type : {ElementType::Q4_0, ElementType::Q4_1, ElementType::Q5_0, ElementType::Q5_1,
                                 ElementType::Q8_0, ElementType::Q4_K, ElementType::Q5_K, ElementType::Q6_K})
    EXPECT_TRUE(is_integer_block(type)) << info(type).name;
  for (const ElementType type : {ElementType::Q2_K, ElementType::Q3_K, ElementType::IQ4_NL, ElementType::F32})
    EXPECT_FALSE(is_integer_block(type)) << info(type).name;
}

TEST(WeightView, EightBitProductsTakeWhatTheyCan) {
  const std::vector<std::int8_t> codes(4, 1);
  const std::vector<float> scales = {1, 1};
  WeightView weight = plain(codes, 2, ElementType::I8);
  weight.kind = FormKind::scaled;
  weight.scales = std::as_bytes(std::span(scales)).data();
  weight.scale_columns = 1;
  const Arithmetic int8{Precision::int8}, fp8{Precision::fp8_block}, half{Precision::bf16};
  EXPECT_TRUE(is_w8a8(weight, int8));
  EXPECT_FALSE(is_w8a8(weight, fp8) || is_w8a8(weight, half));
  weight.scale_columns = 2;
  EXPECT_FALSE(is_w8a8(weight, int8));
  for (const ElementType type : {ElementType::F8_E4M3, ElementType::F8_E5M2}) {
    weight.type = type;
    EXPECT_TRUE(is_w8a8(weight, fp8));
    EXPECT_FALSE(is_w8a8(weight, int8));
  }
  weight.weight_only = true;
  EXPECT_FALSE(is_w8a8(weight, fp8));
  weight.weight_only = false;
  weight.input_major = true;
  EXPECT_FALSE(is_w8a8(weight, fp8));
}

// Two tokens, scales 1 and 2; inputs are whole blocks of 128, or one more. Every sum is exact.
class Fp8Inputs : public testing::TestWithParam<std::size_t> {};
TEST_P(Fp8Inputs, HaveTheirTokensScales) {
  const std::size_t kInputs = GetParam();
  std::vector<std::byte> codes(kInputs);
  std::vector<float> ones(kInputs, 1);
  std::fill(ones.begin() + 128, ones.end(), kInputs == 256 ? 1.0F : 0.0F);
  encode(ElementType::F8_E4M3, ones, Overflow::special, codes.data());
  const std::vector<float> scales = {1, 2};
  WeightView weight = plain(codes, 1, ElementType::F8_E4M3);
  weight.kind = FormKind::scaled;
  weight.scales = std::as_bytes(std::span(scales)).data();
  weight.block_rows = weight.block_columns = 128;
  weight.scale_columns = 2;
  std::vector<double> x(2 * kInputs, 448);
  std::fill(x.begin() + kInputs, x.end(), 896);
  ReferenceOps ops({Precision::fp8_block}, 1);
  EXPECT_EQ(ops.download(ops.linear(ops.upload(x, 2, kInputs), weight, {}, {})),
            kInputs == 256 ? (std::vector<double>{448 * 128 * 3, 2 * 448 * 128 * 3})
                           : (std::vector<double>{448 * 128, 2 * 448 * 128}));
}
INSTANTIATE_TEST_SUITE_P(, Fp8Inputs, testing::Values(129, 256));

TEST(WeightView, ARowLongerThanABlockOfDecodedWeights) {
  const std::vector<float> ones(2 * 65537, 1);
  const WeightView weight = plain(ones, 2, ElementType::F32);
  ReferenceOps ops({Precision::f32}, 1);
  const Matrix x = ops.upload(std::vector<double>(65537, 1), 1, 65537);
  EXPECT_EQ(ops.download(ops.linear(x, weight, {}, {})), (std::vector<double>{65537, 65537}));
}

// Rounding operands is left to kernels: here they are multiplied as they are.
TEST(WeightView, IntegerPrecisionsAreFloat32OfTheReference) {
  std::vector<std::uint16_t> codes(64, 0x3C00);
  codes[1] = 0x34CD;  // 0.3
  const WeightView weight = plain(codes, 1, ElementType::F16);
  std::vector<double> x(64, 1.0 / 3);
  x[5] = 1000;
  std::vector<std::vector<double>> results;
  for (const Precision precision : {Precision::f32, Precision::int16, Precision::int8_block}) {
    ReferenceOps ops({precision}, 1);
    results.push_back(ops.download(ops.linear(ops.upload(x, 1, 64), weight, {}, {})));
  }
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

// One scale a row of the weight, one for 128 inputs of a token: sums end where either changes.
TEST(WeightView, AnFp8ChannelMeetsEveryScaleOfAToken) {
  constexpr std::size_t kInputs = 384;
  std::vector<std::byte> codes(kInputs);
  encode(ElementType::F8_E4M3, std::vector<float>(kInputs, 1.0F), Overflow::special, codes.data());
  const std::vector<float> scales = {1};
  WeightView weight = plain(codes, 1, ElementType::F8_E4M3);
  weight.kind = FormKind::scaled;
  weight.scales = std::as_bytes(std::span(scales)).data();
  weight.block_columns = kInputs;
  weight.scale_columns = 1;
  std::vector<double> x(kInputs, 448);
  std::fill(x.begin() + 128, x.begin() + 256, 2 * 448);
  std::fill(x.begin() + 256, x.end(), 4 * 448);
  ReferenceOps ops({Precision::fp8_block}, 1);
  EXPECT_EQ(ops.download(ops.linear(ops.upload(x, 1, kInputs), weight, {}, {})),
            std::vector<double>{448 * 128 * (1 + 2 + 4)});
}

TEST(Fallbacks, AreSaidByOperationAndForm) {
  Fallbacks counted;
  EXPECT_EQ(counted.line(), "");
  for (int i = 0; i < 5; ++i) counted.count("linear");
  EXPECT_EQ(counted.line(), "");
  EXPECT_TRUE(to_json(counted).empty());
  for (int i = 0; i < 328; ++i) counted.count("mla");
  for (int i = 0; i < 12; ++i) counted.count_by_reference("mla", i % 2 == 0 ? "MXFP4" : "Q4_K");
  EXPECT_EQ(counted.line(),
            "no chosen kernel takes, and the reference computed: mla (12 of 340 calls; MXFP4, Q4_K)");
  EXPECT_EQ(to_json(counted).size(), 1U);
}

// Ranks are threads that count in the same place.
TEST(Fallbacks, AreCountedByManyThreads) {
  Fallbacks counted;
  constexpr int kThreads = 4, kCalls = 5000;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < kCalls; ++i) {
          counted.count("op " + std::to_string(i % 40));
          counted.count_by_reference("linear", std::to_string(i % 7));
        }
      });
  }
  const auto ops = counted.ops();
  ASSERT_EQ(ops.size(), 41U);
  EXPECT_EQ(ops.at("linear").by_reference, kThreads * kCalls);
  EXPECT_EQ(ops.at("linear").forms.size(), 7U);
  EXPECT_EQ(ops.at("op 3").calls, kThreads * kCalls / 40);
}

TEST(Norms, OfGroupsAlongARow) {
  const std::vector<float> ones = {1, 1};
  const WeightView weight = plain(ones, 1, ElementType::F32);
  ReferenceOps ops({Precision::f64}, 1);
  const Matrix x = ops.upload(std::vector<double>{1, 3, 10, 4}, 1, 4);
  EXPECT_EQ(ops.download(ops.layer_norm(x, weight, {}, 0)), (std::vector<double>{-1, 1, 1, -1}));
}

TEST(Norms, RefuseAWeightThatDoesNotDivideARow) {
  const std::vector<float> values = {1, 1, 1};
  const WeightView weight = plain(values, 1, ElementType::F32);
  ReferenceOps ops({Precision::f32}, 1);
  const Matrix x = ops.upload(std::vector<double>(8, 1.0), 2, 4);
  EXPECT_THROW(ops.rms_norm(x, weight, 1e-6, NormForm::weight_last), Error);
  EXPECT_THROW(ops.layer_norm(x, weight, {}, 1e-6), Error);
  EXPECT_THROW(ops.rms_norm(x, {}, 1e-6, NormForm::weight_last), Error);
}

}  // namespace
}  // namespace assay
