// FP8 straight to BF16, against decoding to float32 and rounding that: over ragged blocks, in pieces that begin and end
// inside them, and where it leaves values to others.
#include "convert/fp8_cast.h"

#include <functional>
#include <random>

#include "core/model/quantized_layers.h"
#include "core/numeric/codec_simd.h"
#include "tests/convert/convert_support.h"

namespace assay {
namespace {

constexpr std::uint64_t kRows = 200, kColumns = 300, kScaleRows = 2, kScaleColumns = 3;

struct Matrix {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  std::vector<std::uint64_t> shape = {kRows, kColumns}, scale_shape = {kScaleRows, kScaleColumns};

  Matrix() : codes(kRows * kColumns), scales(kScaleRows * kScaleColumns) {
    std::mt19937 random(5);
    for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random() % 0x7F | (random() % 2) << 7);
    for (float& scale : scales) scale = 1e-4F * static_cast<float>(1 + random() % 1000);
  }
};

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

class Fp8Cast : public ::testing::Test {
 protected:
  // Calls check(reader, the matrix) of a checkpoint of it.
  void with(const Matrix& matrix, const std::string& block,
            const std::function<void(const CheckpointReader&, const LogicalTensor&)>& check) {
    test::write_checkpoint(
        folder_.path(),
        {{"a.weight", ElementType::F8_E4M3, matrix.shape, bytes_of(matrix.codes)},
         {"a.weight_scale_inv", ElementType::F32, matrix.scale_shape, bytes_of(matrix.scales)}},
        R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": )" + block + "}}");
    const Checkpoint checkpoint = open_checkpoint(folder_.path(), 1);
    const StoredTensors stored = find_stored(checkpoint, read_quantization(checkpoint));
    ASSERT_EQ(stored.tensors.size(), 1U);
    check(CheckpointReader(checkpoint), stored.tensors[0]);
  }
  static bool casts(const CheckpointReader& reader, const LogicalTensor& tensor) {
    std::vector<std::byte> out(2 * kRows * kColumns);
    ErrorSums sums;
    return cast_fp8_to_bf16(reader, tensor, 0, kRows, out, sums);
  }

  test::TempDir folder_;
};

void expect_same_as_by_float32(const CheckpointReader& reader, const LogicalTensor& tensor) {
  for (const auto& [first, rows] : {std::pair{0, 200}, {0, 20}, {100, 60}, {150, 50}, {199, 1}}) {
    std::vector<float> values(rows * kColumns), after(values.size());
    StoredReader(reader, tensor).decode_rows(first, rows, values);
    std::vector<std::byte> expected(2 * values.size()), made(expected.size());
    simd::encode(ElementType::BF16, values, Overflow::special, expected.data());
    simd::decode(ElementType::BF16, expected, after.data());
    ErrorSums sums, all;
    all.add(values, after);
    ASSERT_EQ(cast_fp8_to_bf16(reader, tensor, first, rows, made, sums), rows > 8) << first;
    if (rows <= 8) continue;  // too little of a block for a table
    EXPECT_EQ(made, expected) << first;
    EXPECT_EQ(sums.elements, all.elements);
    EXPECT_EQ(sums.largest_error, all.largest_error);
    EXPECT_NEAR(sums.relative_frobenius(), all.relative_frobenius(), 1e-6 * all.relative_frobenius());
    EXPECT_NEAR(sums.after_squares, all.after_squares, 1e-6 * all.after_squares);  // 16·2⁻²⁴, in float
  }
}

TEST_F(Fp8Cast, MakesWhatDecodingAndRoundingMake) {
  with(Matrix(), "[128, 128]", expect_same_as_by_float32);
}

// Blocks begin anew in each slice: of two matrices of 100 rows both have one row of blocks, and not the first one and a half.
TEST_F(Fp8Cast, OfStackedMatricesToo) {
  Matrix matrix;
  matrix.shape = {2, kRows / 2, kColumns};
  matrix.scale_shape = {2, 1, kScaleColumns};
  with(matrix, "[128, 128]", expect_same_as_by_float32);
}

TEST_F(Fp8Cast, LeavesToOthersWhatIsToBeLookedAt) {
  const auto expect_left = [&](const Matrix& matrix, const std::string& what) {
    with(matrix, "[128, 128]", [&](const CheckpointReader& reader, const LogicalTensor& tensor) {
      EXPECT_FALSE(casts(reader, tensor)) << what;
    });
  };
  Matrix nan, tiny, large;
  nan.codes[kRows * kColumns - 1] = 0xFF;
  expect_left(nan, "NaN");
  tiny.scales.back() = 1e-38F;
  expect_left(tiny, "a scale under which products are subnormal");
  large.scales.front() = 2;
  expect_left(large, "values of 896");
}

}  // namespace
}  // namespace assay
