// 8-bit activations and products against torch (data/make_op_fixtures.py).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/numeric/codec.h"
#include "refimpl/ops/reference.h"
#include "refimpl/ops/w8a8.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"

namespace assay {
namespace {

using test::Numbers;

struct Fixture {
  std::map<std::string, Numbers> tensors =
      test::read_tensors(test::source_dir() / "data/fixtures/ops.safetensors");
  const Numbers& operator[](const std::string& name) const { return tensors.at(name); }
  Matrix matrix(const std::string& name, Ops& ops) const {
    const Numbers& x = tensors.at(name);
    return ops.upload(x.values, x.shape.at(0), x.shape.at(1));
  }
};

std::vector<double> codes_of(const QuantizedMatrix& q) {
  std::vector<double> codes;
  for (const std::byte code : q.codes) codes.push_back(std::to_integer<int>(code));
  return codes;
}

TEST(Quantize, CodesScalesAndValuesAreTorchs) {
  const Fixture fixture;
  ReferenceOps ops({Precision::f32}, 1);
  const Matrix x = fixture.matrix("x", ops);
  const std::vector<QuantizeRule> rules = {
      {.codes = ElementType::F8_E4M3, .block_rows = 1, .block_columns = 128},
      {.codes = ElementType::F8_E4M3, .block_rows = 1, .block_columns = 128, .power_of_two = true},
      {.codes = ElementType::F8_E5M2, .block_rows = 1, .block_columns = 128},
      {.codes = ElementType::I8, .block_rows = 1, .block_columns = 0},
      {.codes = ElementType::I8, .block_rows = 0, .block_columns = 1},
      {.codes = ElementType::F8_E4M3, .block_rows = 0, .block_columns = 0},
      {.codes = ElementType::I8, .block_rows = 2, .block_columns = 64},
  };
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string name = "quantize." + std::to_string(i);
    const QuantizedMatrix q = ops.quantize(x, rules[i]);
    EXPECT_EQ(codes_of(q), fixture[name + ".codes"].values) << name;
    EXPECT_EQ(std::vector<double>(q.scales.begin(), q.scales.end()), fixture[name + ".scales"].values)
        << name;
    EXPECT_EQ(ops.download(ops.dequantize(q)), fixture[name + ".values"].values) << name;
  }
}

TEST(Quantize, RefusesWhatNoCodeHolds) {
  ReferenceOps ops({Precision::f32}, 1);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const Matrix x = ops.upload(std::vector<double>{1, bad}, 1, 2);
    EXPECT_THROW(ops.quantize(x, {}), Error);
  }
}

// A stored weight out of the fixture's numbers.
struct ScaledWeight {
  ScaledWeight(const Fixture& fixture, const std::string& of, const std::string& scale, ElementType type)
      : name(of) {
    const Numbers& w = fixture[of];
    const std::vector<float> values(w.values.begin(), w.values.end());
    codes.resize(values.size());
    encode(type, values, Overflow::saturate, codes.data());
    scales.assign(fixture[scale].values.begin(), fixture[scale].values.end());
    view.name = &name;
    view.rows = w.shape.at(0);
    view.columns = w.shape.at(1);
    view.kind = FormKind::scaled;
    view.type = type;
    view.codes = codes.data();
    view.row_bytes = view.columns;
    view.scales = std::as_bytes(std::span(scales)).data();
    view.scale_columns = fixture[scale].shape.at(1);
  }
  std::string name;
  std::vector<std::byte> codes;
  std::vector<float> scales;
  WeightView view;
};

double to_bfloat16(double x) {
  return Arithmetic{Precision::bf16}.round(x);
}

// The sums are float32 in an order of their own: one place of bfloat16, and what cancels.
TEST(Products, OfFp8BlocksAsDeepseekDefinesThem) {
  const Fixture fixture;
  ScaledWeight weight(fixture, "fp8.weight", "fp8.weight_scale_inv", ElementType::F8_E4M3);
  weight.view.block_rows = weight.view.block_columns = 128;
  ReferenceOps ops({Precision::fp8_block}, 1);
  const std::vector<double> y = ops.download(
      ops.linear(fixture.matrix("linear.x", ops), weight.view, {}, ResultRounding::as_arithmetic));
  const std::vector<double>& expected = fixture["fp8.y"].values;
  ASSERT_EQ(y.size(), expected.size());
  for (std::size_t i = 0; i < y.size(); ++i)
    ASSERT_LE(std::abs(y[i] - expected[i]), std::abs(expected[i]) / 256 + 1e-4) << i;
}

TEST(Products, OfInt8AreExactButForTheirScales) {
  const Fixture fixture;
  ScaledWeight weight(fixture, "int8.weight", "int8.weight_scale", ElementType::I8);
  weight.view.block_columns = weight.view.columns;
  ReferenceOps ops({Precision::int8}, 1);
  const std::vector<double> y = ops.download(
      ops.linear(fixture.matrix("linear.x", ops), weight.view, {}, ResultRounding::as_arithmetic));
  std::vector<double> expected = fixture["int8.y"].values;
  for (double& value : expected) value = to_bfloat16(value);
  EXPECT_EQ(y, expected);
}

// A product is rounded to bfloat16 before its bias is added, and once more after.
TEST(Products, AreRoundedBeforeABias) {
  const Fixture fixture;
  const Numbers& numbers = fixture["linear.bias"];
  const std::vector<float> bias(numbers.values.begin(), numbers.values.end());
  const std::string name = "bias";
  WeightView bias_view;
  bias_view.name = &name;
  bias_view.rows = 1;
  bias_view.columns = bias.size();
  bias_view.row_bytes = bias.size() * sizeof(float);
  bias_view.codes = std::as_bytes(std::span(bias)).data();
  const auto differing = [&](Precision precision, const WeightView& weight, const std::string& expected) {
    ReferenceOps ops({precision}, 1);
    const std::vector<double> y = ops.download(
        ops.linear(fixture.matrix("linear.x", ops), weight, bias_view, ResultRounding::as_arithmetic));
    std::size_t count = 0;
    for (std::size_t i = 0; i < y.size(); ++i) count += y[i] == fixture[expected].values[i] ? 0 : 1;
    return count;
  };
  ScaledWeight int8(fixture, "int8.weight", "int8.weight_scale", ElementType::I8);
  int8.view.block_columns = int8.view.columns;
  EXPECT_EQ(differing(Precision::int8, int8.view, "int8.y_with_bias"), 0U);
  ScaledWeight fp8(fixture, "fp8.weight", "fp8.weight_scale_inv", ElementType::F8_E4M3);
  fp8.view.block_rows = fp8.view.block_columns = 128;
  EXPECT_LE(differing(Precision::fp8_block, fp8.view, "fp8.y_with_bias"),
            4U);  // of 800: sums in another order
}

// Unless the arithmetic asks for 8 bits, the same weights are decoded and multiplied as numbers.
TEST(Products, InFloat32AreOfDecodedWeights) {
  const Fixture fixture;
  ScaledWeight weight(fixture, "int8.weight", "int8.weight_scale", ElementType::I8);
  weight.view.block_columns = weight.view.columns;
  ReferenceOps ops({Precision::f32}, 1);
  const std::vector<double> y = ops.download(
      ops.linear(fixture.matrix("linear.x", ops), weight.view, {}, ResultRounding::as_arithmetic));
  const std::vector<double>& x = fixture["linear.x"].values;
  const std::vector<double>& codes = fixture["int8.weight"].values;
  const std::size_t inputs = weight.view.columns, outputs = weight.view.rows;
  for (std::size_t o = 0; o < outputs; ++o) {
    double sum = 0;
    for (std::size_t i = 0; i < inputs; ++i)
      sum += x[i] * static_cast<double>(static_cast<float>(codes[o * inputs + i]) * weight.scales[o]);
    ASSERT_NEAR(y[o], sum, 1e-5);
  }
}

}  // namespace
}  // namespace assay
