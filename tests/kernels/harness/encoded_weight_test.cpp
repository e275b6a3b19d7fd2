// Made weights in stored forms that have encoders of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/model/formats/format.h"
#include "core/system/error.h"
#include "kernels/harness/made_weight.h"
#include "tests/cli/trits_format.h"

namespace assay {
namespace {

const FillOptions kSmall = {.rows = 6, .columns = 64, .seed = 5};

std::vector<float> plain_numbers() {
  return MadeWeight(weight_form("F32"), InputKind::zero_mean, kSmall).values();
}

// compressed-tensors: s = amax / 7.5 of a row, in the type of the weights, q = round(w / s) within -8 … 7.
TEST(EncodedWeight, Int4OfARow) {
  const MadeWeight made(weight_form("INT4_CHANNEL"), InputKind::zero_mean, kSmall);
  const std::vector<float> before = plain_numbers(), after = made.values();
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t row = 0; row < 6; ++row) {
    float amax = 0;
    for (std::size_t c = 0; c < 64; ++c) amax = std::max(amax, std::fabs(before[row * 64 + c]));
    const float step = amax / 7.5F;
    for (std::size_t c = 0; c < 64; ++c) {
      const float q = std::clamp(std::nearbyint(before[row * 64 + c] / step), -8.0F, 7.0F);
      EXPECT_EQ(after[row * 64 + c], q * step) << row << ", " << c;
    }
  }
}

TEST(EncodedWeight, OfAFormatJustAdded) {
  EXPECT_THROW(weight_form("TRITS"), Error);
  const AddedFormat line(test::trits::kFormat);
  const MadeWeight made(weight_form("TRITS"), InputKind::zero_mean, kSmall);
  const std::vector<float> before = plain_numbers(), after = made.values();
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t row = 0; row < 6; ++row) {
    float amax = 0;
    for (std::size_t c = 0; c < 64; ++c) amax = std::max(amax, std::fabs(before[row * 64 + c]));
    for (std::size_t c = 0; c < 64; ++c) {
      const float value = before[row * 64 + c];
      EXPECT_EQ(after[row * 64 + c], std::fabs(value) > amax / 2 ? std::copysign(amax, value) : 0.0F);
    }
  }
}

TEST(EncodedWeight, RefusesWhatItCannotHold) {
  EXPECT_THROW(MadeWeight(weight_form("MXFP8"), InputKind::zero_mean, {.rows = 2, .columns = 40}), Error);
  EXPECT_THROW(MadeWeight(weight_form("MXFP8"), InputKind::exact, kSmall), Error);
  EXPECT_THROW(weight_form("INT8_sideways"), Error);
}

}  // namespace
}  // namespace assay
