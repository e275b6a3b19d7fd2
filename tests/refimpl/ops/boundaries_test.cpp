// The ends of loops and of ranges in refimpl/ops: what a change by one would shift.
#include <gtest/gtest.h>

#include <vector>

#include "refimpl/ops/arithmetic.h"
#include "refimpl/ops/reference.h"
#include "refimpl/sampling/law.h"

namespace assay {
namespace {

TEST(Boundaries, PrecisionsAreFoundByTheirNames) {
  for (const Precision p : {Precision::f64, Precision::f32, Precision::bf16, Precision::fp8_block,
                            Precision::int8, Precision::int16, Precision::int8_block}) {
    EXPECT_FALSE(name(p).empty());
    EXPECT_EQ(precision_from_text(name(p)), p);
  }
  EXPECT_FALSE(precision_from_text("f16"));
  EXPECT_FALSE(precision_from_text(""));
}

WeightView view_of(const std::vector<float>& values, std::size_t rows, std::size_t columns) {
  static const std::string kName = "w";
  WeightView w;
  w.name = &kName;
  w.type = ElementType::F32;
  w.rows = rows;
  w.columns = columns;
  w.codes = reinterpret_cast<const std::byte*>(values.data());
  w.row_bytes = columns * sizeof(float);
  return w;
}

// Results lie among other numbers, which are not the operation's to round.
class Amid : public ReferenceOps {
 public:
  using ReferenceOps::ReferenceOps;
  Matrix allocate(std::size_t rows, std::size_t columns) override {
    last = ReferenceOps::allocate(rows, columns + 1);
    for (std::size_t r = 0; r < rows; ++r) last.row<float>(r)[columns] = kBehind;
    return last.part(0, columns);
  }
  static constexpr float kBehind = 1.0F + 0x1p-20F;  // no bfloat16
  Matrix last;
};

TEST(Boundaries, AnEmbeddingWritesItsRowsAlone) {
  const std::vector<float> table = {1, 2, 3, 4, 5, 6};
  Amid ops({Precision::bf16}, 1);
  ops.embed(std::vector<TokenId>{1, 0}, view_of(table, 2, 3));
  for (std::size_t r = 0; r < 2; ++r) EXPECT_EQ(ops.last.row<float>(r)[3], Amid::kBehind);
}

// More weights than are decoded at a time (2^16), inputs first: the same as outputs first.
TEST(Boundaries, InputMajorWeightsOfSeveralBlocks) {
  constexpr std::size_t kIn = 300, kOut = 333;
  std::vector<float> by_output(kOut * kIn), by_input(kIn * kOut);
  for (std::size_t o = 0; o < kOut; ++o)
    for (std::size_t i = 0; i < kIn; ++i)
      by_input[i * kOut + o] = by_output[o * kIn + i] = static_cast<float>((7 * o + 3 * i) % 101) - 50;
  ReferenceOps ops({Precision::f32}, 1);
  std::vector<double> x(2 * kIn);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 13) - 6;
  const Matrix input = ops.upload(x, 2, kIn);
  WeightView transposed = view_of(by_input, kIn, kOut);
  transposed.input_major = true;
  EXPECT_EQ(ops.download(ops.linear(input, transposed)),
            ops.download(ops.linear(input, view_of(by_output, kOut, kIn))));
}

// Of equal logits the earlier one comes first, however many there are.
TEST(Boundaries, EqualLogitsKeepTheirOrder) {
  const std::vector<double> logits(97, 0.5);
  for (const std::size_t k : {1, 2, 40}) {
    const std::vector<double> p =
        sampling_law(logits, {.temperature = 1, .top_k = k, .top_p = 1, .min_p = 0});
    for (std::size_t i = 0; i < p.size(); ++i) EXPECT_EQ(p[i] > 0, i < k) << k << ": " << i;
  }
}

}  // namespace
}  // namespace assay
