// Budgets that planted faults have to exceed: of quantized operands, of FP8 tensor cores, of stored bfloat16.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/harness/examine.h"
#include "kernels/harness/operand_rounding.h"
#include "kernels/operands/int16.h"

namespace assay {
namespace {

// A kernel and its truth both take their activations for integers of `bits`: what comes of that.
Comparison both_round_to(int bits, const std::string& id) {
  const auto operands = cases_of<LinearCall>().make(CaseId::parse(id));
  ReferenceOps ops(operands->arithmetic, 1);
  Truth truth = operands->truth_of(*rounded_operands(operands->call(ops).weight, operands->arithmetic), 1);
  ReferenceOps wide = truth_ops(1);
  LinearCall call = operands->call(wide);
  for (std::size_t r = 0; r < call.x.rows(); ++r) {
    const std::span row(call.x.row<double>(r), call.x.columns());
    std::vector<float> rounded(row.begin(), row.end());
    round_to_int16(rounded, bits);
    std::copy(rounded.begin(), rounded.end(), row.begin());
  }
  truth[0].values = wide.download(run_reference(wide, call));
  const std::vector<double>& y = truth[0].values;
  return compare_parts(truth, {{"y", truth[0].rows, truth[0].columns, {y.begin(), y.end()}}});
}

TEST(OperandBudget, AWrongConstantOfTheKernelDoesNotExcuseItself) {
  for (const char* id : {"linear:Q8_0:act=int16:m=17:k=768:n=35:in=zero:seed=1",
                         "linear:Q8_0:act=int16:m=17:k=768:n=35:in=heavy:seed=1"}) {
    EXPECT_NE(both_round_to(15, id).check, "operands") << id;
    EXPECT_EQ(both_round_to(11, id).check, "operands") << id;
  }
}

// What is promised is what kernels do: no number is off by more than half of the steps that are declared, and
// some by nearly that.
TEST(OperandBudget, KernelsRoundToTheStepsTheyDeclare) {
  const std::vector<std::byte> codes(2 * 256);
  for (const auto& [type, precision] : {std::pair(ElementType::Q8_0, Precision::int16),
                                        {ElementType::BF16, Precision::int16},
                                        {ElementType::Q4_K, Precision::int8_block}}) {
    WeightView weight;
    weight.codes = codes.data();
    weight.type = type;
    weight.rows = 1;
    weight.columns = 256;
    const RoundedOperands how = *rounded_operands(weight, Arithmetic{precision});
    for (const std::optional<OperandRounding>& rounding : {std::optional(how.inputs), how.weights}) {
      if (!rounding) continue;
      std::vector<float> row(1024);
      fill_inputs(InputKind::zero_mean, {.rows = 1, .columns = 1024, .terms = 1024, .seed = 5}, row);
      const std::vector<double> steps = steps_of(*rounding, std::vector<double>(row.begin(), row.end()));
      std::vector<float> rounded = row;
      rounding->round(rounded);
      double worst = 0;
      for (std::size_t i = 0; i < row.size(); ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(row[i]) - rounded[i]) / steps[i]);
      EXPECT_LE(worst, 0.5 + 0x1p-15) << info(type).name;  // 1/scale in float32 is off by 2^-24 of 127 steps
      EXPECT_GE(worst, 0.49) << info(type).name;
    }
  }
}

TEST(OperandBudget, StepsAreThoseOfTheFormats) {
  const std::vector<double> row = {1.0, -0.75, 0.01, 0};
  const OperandRounding int16 = {OperandRounding::Step::power_of_two, 15, 32};
  EXPECT_EQ(steps_of(int16, row), std::vector<double>(4, 0x1p-14));
  EXPECT_EQ(steps_of(kInt8Inputs, row), std::vector<double>(4, 1.0 / 127));
  const std::vector<double> fp8 = steps_of(kFp8Inputs, row);  // in units of 1/448
  EXPECT_DOUBLE_EQ(fp8[0] * 448, 32);                         // of 256 … 448
  EXPECT_DOUBLE_EQ(fp8[2] * 448, 0.5);                        // of 4 … 8
  EXPECT_DOUBLE_EQ(fp8[3] * 448, 0x1p-9);
}

TEST(TensorCoreBudget, SumsThatArePromotedAreJudgedByTheirPieces) {
  const TruthPart part = {.rows = 1,
                          .columns = 1,
                          .values = {0},
                          .per_roundoff = {accumulation_factor(7168) * 3},
                          .products = {3}};
  const double all = part.budget({.accumulator = 0x1p-14})[0],
               promoted = part.budget({.accumulator = 0x1p-14, .promoted = 128})[0];
  const double lambda = 4 * std::sqrt(128.0);
  EXPECT_DOUBLE_EQ(promoted, 3 * (lambda * 0x1p-14 + 4 * std::sqrt(7168.0) * 0x1p-24) + 0x1p-149);
  EXPECT_GT(all, 7 * promoted);
}

TEST(StoredBudget, ABfloat16ResultIsANumberOfBfloat16) {
  const Truth truth = {
      {.type = ElementType::BF16, .rows = 1, .columns = 2, .values = {1.0, 3.0}, .per_roundoff = {1, 1}}};
  EXPECT_EQ(compare_parts(truth, {{"y", 1, 2, {1.0F, 3.0F}}}).status, CaseStatus::passed);
  EXPECT_EQ(compare_parts(truth, {{"y", 1, 2, {1.0F, 3.0001F}}}).check, "type");
}

}  // namespace
}  // namespace assay
