// Where a kernel's rows, blocks and pieces end, and what no integer can hold: found by changing the source
// (docs/mutate.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/numeric/simd_targets.h"
#include "core/system/error.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/int8_input.h"
#include "kernels/cpu/int_input.h"
#include "kernels/cpu/moe.h"
#include "kernels/cpu/quantize.h"
#include "kernels/cpu/softmax.h"
#include "kernels/harness/made_weight.h"

namespace assay {
namespace {

// More rows than a thread's piece has, and fewer columns than rows.
struct NarrowRows {
  static constexpr std::size_t kRows = 2 * cpu::kSoftmaxPiece / 3 + 5, kColumns = 3;
  static double logit(std::size_t row, std::size_t column) {
    return static_cast<double>(row % 17) / 4 - static_cast<double>(column * (row % 5));
  }
  static double expected(std::size_t row, std::size_t column) {
    double sum = 0;
    for (std::size_t c = 0; c < kColumns; ++c) sum += std::exp(logit(row, c));
    return std::exp(logit(row, column)) / sum;
  }
  static Matrix made(Ops& ops) {
    std::vector<double> values(kRows * kColumns);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = logit(i / kColumns, i % kColumns);
    return ops.upload(values, kRows, kColumns);
  }
};

void expect_softmax(const std::vector<double>& y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double expected = NarrowRows::expected(i / NarrowRows::kColumns, i % NarrowRows::kColumns);
    // exp, a sum of three and a quotient: 8 roundings of float32 are more than enough
    ASSERT_NEAR(y[i], expected, 8 * 0x1p-24 * expected) << "row " << i / NarrowRows::kColumns;
  }
}

TEST(CpuBoundaries, SoftmaxTakesTheRowsOfEveryPieceOnce) {
  CpuOps ops(Arithmetic{Precision::f32}, 2);
  const Matrix x = NarrowRows::made(ops), y = ops.allocate(NarrowRows::kRows, NarrowRows::kColumns);
  cpu::online_softmax(x, y, 2);
  expect_softmax(ops.download(y));
  cpu::online_softmax(x, x, 2);  // in place, where a row taken twice would show
  expect_softmax(ops.download(x));
}

// The last block of each row is one number, which is its own largest: it comes back but for two roundings.
TEST(CpuBoundaries, ABlockOfOneNumberHasItsOwnScale) {
  constexpr std::size_t kRows = 3, kBlock = 64, kColumns = kBlock + 1;
  std::vector<double> values(kRows * kColumns, 1.0);
  for (std::size_t r = 0; r < kRows; ++r) values[r * kColumns + kBlock] = 1e-3 * static_cast<double>(r + 1);
  CpuOps ops(Arithmetic{Precision::f32}, 1);
  const Matrix x = ops.upload(values, kRows, kColumns), y = ops.allocate(kRows, kColumns);
  const QuantizedMatrix q = cpu::quantize_rows(x, {.codes = ElementType::I8, .block_columns = kBlock}, 1);
  EXPECT_EQ(q.scales.size(), 2 * kRows);
  cpu::dequantize_rows(q, y, 1);
  const std::vector<double> back = ops.download(y);
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], values[i], 4 * 0x1p-24 * values[i]) << i;
}

TEST(CpuBoundaries, NoScaleHoldsWhatIsNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const float broken : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(96, 1.0F);
      x[32 + 5] = broken;
      const cpu::Int8Input eight(x);
      const cpu::IntInput sixteen(x, false);
      EXPECT_TRUE(std::isnan(eight.scales[1])) << target << " " << broken;
      EXPECT_TRUE(std::isnan(sixteen.scales[1])) << target << " " << broken;
      EXPECT_FALSE(std::isnan(eight.scales[0]) || std::isnan(eight.scales[2])) << target;
      EXPECT_FALSE(std::isnan(sixteen.scales[0]) || std::isnan(sixteen.scales[2])) << target;
    }
  }
  use_simd_target("");
}

// Every token lists all experts, each token in another order.
TEST(CpuBoundaries, ASoftMixtureNamesEveryExpert) {
  constexpr std::size_t kTokens = 5, kHidden = 32, kWidth = 24, kExperts = 3;
  std::vector<std::unique_ptr<MadeWeight>> made;
  const auto weight = [&](std::size_t rows, std::size_t columns) {
    made.push_back(std::make_unique<MadeWeight>(
        weight_form("F32"), InputKind::zero_mean,
        FillOptions{.rows = rows, .columns = columns, .terms = columns, .seed = 40 + made.size()}));
    return made.back()->view();
  };
  FusedMoeCall call{.form = MoeForm::soft};
  for (std::size_t e = 0; e < kExperts; ++e) {
    call.experts.gate.push_back(weight(kWidth, kHidden));
    call.experts.up.push_back(weight(kWidth, kHidden));
    call.experts.down.push_back(weight(kHidden, kWidth));
  }
  call.routing.top_k = kExperts;
  std::vector<double> shares;
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t i = 0; i < kExperts; ++i) {
      call.routing.experts.push_back(static_cast<std::int32_t>((t + i) % kExperts));
      shares.push_back(static_cast<double>(1 + t + i) / 16);
    }
  }
  const MadeWeight tokens(weight_form("F32"), InputKind::zero_mean,
                          {.rows = kTokens, .columns = kHidden, .terms = kHidden, .seed = 9});
  const std::vector<float> stored = tokens.values();
  const std::vector<double> x(stored.begin(), stored.end());
  const auto mixed_by = [&](Ops& ops) {
    call.x = ops.upload(x, kTokens, kHidden);
    call.routing.weights = ops.upload(shares, kTokens, kExperts);
    return ops.download(ops.run(call));
  };
  ReferenceOps wide(Arithmetic{Precision::f64}, 1);
  const std::vector<double> truth = mixed_by(wide);
  CpuOps cpu(Arithmetic{Precision::f32}, 2);
  call.x = cpu.upload(x, kTokens, kHidden);
  call.routing.weights = cpu.upload(shares, kTokens, kExperts);
  const std::vector<double> found =
      cpu.download(cpu::grouped_moe(cpu, call.x, call.routing, call.experts, MoeForm::soft));
  // Sums of 32 and 24 products and of 3 mixed, of which the largest has the size of the largest result:
  // 4 (sqrt(32) + sqrt(24) + sqrt(3)) < 64 roundings of float32.
  double largest = 0;
  for (const double value : truth) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < truth.size(); ++i) EXPECT_NEAR(found[i], truth[i], 64 * 0x1p-24 * largest) << i;
  call.routing.top_k = kExperts - 1;
  EXPECT_THROW(cpu::grouped_moe(cpu, call.x, call.routing, call.experts, MoeForm::soft), Error);
}

TEST(CpuBoundaries, MixturesOfInputMajorMatricesAreLeftToTheReference) {
  const MadeWeight made(std::vector<float>(16, 1.0F), 4, 4);
  WeightView turned = made.view();
  turned.input_major = true;
  ExpertWeights apart, fused;
  apart.gate = apart.up = apart.down = {made.view(), made.view()};
  fused.gate_up = fused.down = {made.view()};
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const Arithmetic arithmetic{precision};
    EXPECT_TRUE(cpu::grouped_moe_takes(apart, arithmetic));
    for (std::vector<WeightView> ExpertWeights::*part :
         {&ExpertWeights::gate, &ExpertWeights::up, &ExpertWeights::down}) {
      ExpertWeights one = apart;
      (one.*part)[1] = turned;
      EXPECT_FALSE(cpu::grouped_moe_takes(one, arithmetic));
    }
    EXPECT_TRUE(cpu::grouped_moe_takes(fused, arithmetic));
    ExpertWeights one = fused;
    one.gate_up = {turned};
    EXPECT_FALSE(cpu::grouped_moe_takes(one, arithmetic));
  }
  EXPECT_FALSE(cpu::grouped_moe_takes(apart, Arithmetic{Precision::f64}));
}

// More inputs than are decoded at once.
TEST(CpuBoundaries, AnInputMajorProductGoesOnBehindItsFirstStrip) {
  constexpr std::size_t kInputs = 3000, kOutputs = 512, kTokens = 2;
  const MadeWeight made(weight_form("F32"), InputKind::exact,
                        {.rows = kInputs, .columns = kOutputs, .terms = kInputs, .seed = 5});
  const MadeWeight tokens(weight_form("F32"), InputKind::exact,
                          {.rows = kTokens, .columns = kInputs, .terms = kInputs, .seed = 6});
  WeightView weight = made.view();
  weight.input_major = true;
  const std::vector<float> stored = tokens.values();
  const std::vector<double> x(stored.begin(), stored.end());
  CpuOps cpu(Arithmetic{Precision::f32}, 2);
  ReferenceOps wide(Arithmetic{Precision::f64}, 1);
  const auto by = [&](Ops& ops) {
    return ops.download(ops.linear(ops.upload(x, kTokens, kInputs), weight, {}, {}));
  };
  EXPECT_EQ(by(cpu), by(wide));  // exact: sums of small integers
}

}  // namespace
}  // namespace assay
