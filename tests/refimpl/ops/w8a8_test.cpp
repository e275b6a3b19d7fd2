// W8A8 linear layers. The int8 numbers are numpy's: codes by rint, an integer product, two float32 scales,
// bfloat16 by ml_dtypes. FP8 is held to DeepSeek's code by tests/refimpl/models/deepseek_test.cpp.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "refimpl/ops/reference.h"

namespace assay {
namespace {

TEST(W8a8, Int8TokenByChannel) {
  constexpr std::array<std::int8_t, 18> kCodes = {18, -23, -94, -116, -127, -115, -90, 127, -79,
                                                  39, 64,  -68, -56,  -17,  -60,  121, -82, 101};
  constexpr std::array<float, 3> kScales = {0.0078125F, 0.00390625F, 0.0009765625F};
  const std::string name = "w";
  WeightView weight;
  weight.name = &name;
  weight.rows = 3;
  weight.columns = weight.row_bytes = 6;
  weight.kind = FormKind::scaled;
  weight.type = ElementType::I8;
  weight.codes = std::as_bytes(std::span(kCodes)).data();
  weight.scales = std::as_bytes(std::span(kScales)).data();
  weight.block_columns = 6;
  weight.scale_columns = 1;

  ReferenceOps ops({Precision::int8}, 1);
  const std::vector<double> x = {1.75,  3.125,  -4.875, 3.125, -0.375, 0.125,
                                 1.375, -2.125, 4.875,  -4.5,  -2.25,  -1.125};
  const std::vector<double> y = ops.download(ops.linear(ops.upload(x, 2, 6), weight, {}, {}));
  EXPECT_EQ(y, (std::vector<double>{0.73046875, 2.765625, 0.546875, 4.3125, -4, -0.78515625}));
}

TEST(W8a8, WithoutScalesItIsBf16) {
  const std::string name = "w";
  const std::array<float, 2> row = {1.0F, 0.5F};
  WeightView weight;
  weight.name = &name;
  weight.rows = 1;
  weight.columns = 2;
  weight.row_bytes = 8;
  weight.codes = std::as_bytes(std::span(row)).data();
  ReferenceOps ops({Precision::int8}, 1);
  EXPECT_EQ(ops.download(ops.linear(ops.upload(std::vector<double>{3, 0.25}, 1, 2), weight, {}, {})),
            std::vector<double>{3.125});
}

}  // namespace
}  // namespace assay
