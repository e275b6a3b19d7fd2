// Stored weights as numbers: rows of a part, scales of blocks, global scales, float64.
#include "refimpl/ops/weight_view.h"

#include <gtest/gtest.h>

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
#include "refimpl/ops/int16_activations.h"
#include "refimpl/ops/int8_block_activations.h"
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

// Which weights an arithmetic in integers takes: their type, that their bytes are at hand, row by row.
TEST(WeightView, IntegersTakeWhatTheyCan) {
  const std::vector<std::uint16_t> bytes(2 * 64);
  const Arithmetic int16{Precision::int16}, int8{Precision::int8_block};
  WeightView weight = plain(bytes, 2, ElementType::BF16);
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

// Under int16 every row of a float weight becomes 12 bits under its own scales: 0.3 in steps of 2^-11, of
// 2^-9.
TEST(WeightView, EveryRowOfAFloatWeightIsRounded) {
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
  ReferenceOps ops({Precision::int16}, 1);
  EXPECT_EQ(ops.download(ops.linear(ops.upload(second, 1, 64), weight, {}, {})),
            (std::vector<double>{614 * 0x1p-11, 154 * 0x1p-9}));
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

// Rows of two groups and a half: every number is what its own group's integers stand for.
TEST(WeightView, EightBitBlocksOfEveryRow) {
  const std::size_t columns = 80;
  std::vector<double> x(2 * columns);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = (i % 7) * 0.5 - 1.5 + 127.0 * (i % 32 == 3 ? i / 32 + 1 : 0);
  ReferenceOps ops({Precision::f32}, 1);
  const std::vector<double> y = ops.download(rounded_to_int8_block(ops, ops.upload(x, 2, columns)));
  for (std::size_t r = 0; r < 2; ++r) {
    for (std::size_t first = 0; first < columns; first += 32) {
      const std::size_t end = std::min(columns, first + 32);
      float largest = 0;
      for (std::size_t c = first; c < end; ++c)
        largest = std::max(largest, std::abs(static_cast<float>(x[r * columns + c])));
      const float step = largest / 127;
      for (std::size_t c = first; c < end; ++c) {
        const double code = std::nearbyint(static_cast<float>(x[r * columns + c]) * (1 / step));
        EXPECT_EQ(y[r * columns + c], static_cast<float>(code) * step) << r << " " << c;
      }
    }
  }
}

TEST(Fallbacks, AreSaidByOperationAndForm) {
  Fallbacks none;
  EXPECT_EQ(none.line(), "");
  none.ops["linear"] = {.calls = 5, .by_reference = 0, .forms = {}};
  EXPECT_EQ(none.line(), "");
  EXPECT_TRUE(to_json(none).empty());
  Fallbacks some = none;
  some.ops["mla"] = {.calls = 340, .by_reference = 12, .forms = {"MXFP4", "Q4_K"}};
  EXPECT_EQ(some.line(),
            "no chosen kernel takes, and the reference computed: mla (12 of 340 calls; MXFP4, Q4_K)");
  EXPECT_EQ(to_json(some).size(), 1U);
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
