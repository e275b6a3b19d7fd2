// What cases are made of, and the memory that notices what a kernel does to it.
#include "kernels/harness/inputs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/harness/guarded_ops.h"
#include "kernels/harness/kept_weights.h"
#include "kernels/harness/normal_numbers.h"

namespace assay {
namespace {

TEST(NormalNumbers, AreTheStreamsHoweverManyWereThereBefore) {
  constexpr std::uint64_t kSeed = 0x1234567;
  InputStream stream(kSeed);
  const NormalNumbers few = normal_numbers(kSeed, 10), many = normal_numbers(kSeed, 3 * few->size());
  ASSERT_GE(many->size(), 3 * few->size());
  for (std::size_t i = 0; i < many->size(); ++i) {
    ASSERT_EQ((*many)[i], stream.normal()) << i;
    if (i < few->size()) {
      ASSERT_EQ((*few)[i], (*many)[i]);
    }
  }
}

TEST(InputStream, SkipsWhatItWouldHaveGiven) {
  InputStream one(7), other(7);
  for (int i = 0; i < 5; ++i) one.next();
  other.skip(5);
  EXPECT_EQ(one.state(), other.state());
  EXPECT_EQ(one.next(), other.next());
}

// Of the gains of columns some are far from 1; without them the numbers are those of the stream behind the gains.
TEST(FillInputs, OutliersAreWholeColumns) {
  const FillOptions options = {.rows = 40, .columns = 33, .seed = 5};
  std::vector<float> values(40 * 33);
  fill_inputs(InputKind::heavy_tailed, options, values);
  std::size_t wide = 0;
  for (std::size_t c = 0; c < 33; ++c) {
    double square = 0;
    for (std::size_t r = 0; r < 40; ++r) square += double{values[r * 33 + c]} * values[r * 33 + c];
    wide += square / 40 > 100;
  }
  EXPECT_EQ(wide, 1u);
}

TEST(KeptWeights, AreThoseMadeAnewAndOnlyForTheSameRequest) {
  const FillOptions options = {.rows = 6, .columns = 64, .seed = 9};
  const MadeWeightPtr kept = kept_weight("Q8_0", InputKind::zero_mean, options);
  EXPECT_EQ(kept, kept_weight("Q8_0", InputKind::zero_mean, options));
  EXPECT_EQ(kept->values(), MadeWeight(weight_form("Q8_0"), InputKind::zero_mean, options).values());
  FillOptions other = options;
  other.seed = 10;
  EXPECT_NE(kept->values(), kept_weight("Q8_0", InputKind::zero_mean, other)->values());
  EXPECT_NE(kept, kept_weight("Q4_0", InputKind::zero_mean, options));
  EXPECT_NE(kept->values(), kept_weight("Q8_0", InputKind::positive_mean, options)->values());
}

// A case that was asked for its shape alone leaves no zeros for the next one.
TEST(KeptWeights, ThoseWithoutNumbersAreNotKept) {
  const FillOptions options = {.rows = 5, .columns = 32, .seed = 77};
  {
    const ShapesOnly shapes;
    kept_weight("F32", InputKind::zero_mean, options);
  }
  EXPECT_NE(kept_weight("F32", InputKind::zero_mean, options)->values(), std::vector<float>(5 * 32));
}

class Guarded : public testing::TestWithParam<std::size_t> {
 protected:
  GuardedOps ops_{Arithmetic{Precision::f32}, 1, GetParam()};
};

TEST_P(Guarded, EveryChangedNumberIsNoticed) {
  const Matrix x = ops_.upload(std::vector<double>(7 * 13, 1.5), 7, 13);
  ops_.seal();
  ASSERT_FALSE(ops_.changed_input());
  for (std::size_t r = 0; r < 7; ++r) {
    for (std::size_t c = 0; c < 13; ++c) {
      float& value = x.row<float>(r)[c];
      value = -value;
      EXPECT_TRUE(ops_.changed_input()) << r << ", " << c;
      value = -value;
    }
  }
}

// Signs are the highest bits: sums that only multiply lose two of them.
TEST_P(Guarded, AllSignsChangedAreNoticed) {
  const Matrix x = ops_.upload(std::vector<double>(4 * 16, 1.5), 4, 16);
  ops_.seal();
  for (std::size_t first = 0; first < 2; ++first) {
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t c = first; c < 16; c += 2) x.row<float>(r)[c] *= -1;
    EXPECT_TRUE(ops_.changed_input()) << first;
    for (std::size_t r = 0; r < 4; ++r)
      for (std::size_t c = first; c < 16; c += 2) x.row<float>(r)[c] *= -1;
  }
  EXPECT_FALSE(ops_.changed_input());
}

TEST_P(Guarded, WhatIsWrittenBesideAMatrixIsFound) {
  const Matrix x = ops_.allocate(3, 5);
  ASSERT_FALSE(ops_.damage());
  float* first = x.row<float>(0);
  for (const std::ptrdiff_t at :
       {std::ptrdiff_t{-1}, std::ptrdiff_t{-20}, static_cast<std::ptrdiff_t>(2 * x.stride() + 5 + GetParam()),
        static_cast<std::ptrdiff_t>(2 * x.stride() + 20 + GetParam())}) {
    const float before = first[at];
    first[at] = 0;
    EXPECT_TRUE(ops_.damage()) << at;
    first[at] = before;
  }
  if (GetParam() != 0) {
    first[5] = 0;
    EXPECT_EQ(ops_.damage(), "the padding behind row 0 of a 3 × 5 matrix");
  }
}

TEST_P(Guarded, EveryElementIsNanBeforeItIsWritten) {
  const Matrix x = ops_.allocate(3, 5);
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 5; ++c) EXPECT_TRUE(std::isnan(x.row<float>(r)[c]));
}

INSTANTIATE_TEST_SUITE_P(Paddings, Guarded, testing::Values(0, 5, 16));

}  // namespace
}  // namespace assay
