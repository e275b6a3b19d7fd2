// Products in bfloat16, under every instruction set this processor has: the same bits as the sums written
// out, and by AVX512_BF16, whose manual says as much, at least the same sums within what their roundings may
// be off.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/numeric/codec.h"
#include "core/numeric/simd_targets.h"
#include "kernels/cpu/bf16_tile_avx512.h"
#include "kernels/cpu/gemm_bf16.h"
#include "kernels/cpu/linear.h"
#include "kernels/harness/made_weight.h"
#include "refimpl/ops/reference.h"

namespace assay {
namespace {

constexpr Arithmetic kArithmetic = {Precision::bf16};

float rounded(float x) {
  return decode(kBF16, encode(kBF16, x, Overflow::special));
}

// Numbers of many sizes, of both signs.
std::vector<float> numbers(std::size_t count, std::uint32_t seed, float smallest) {
  std::vector<float> values(count);
  std::uint32_t state = seed;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    const float size = std::ldexp(smallest, static_cast<int>(state >> 28));
    value = rounded(size * (static_cast<float>(state >> 8 & 0xFFFF) / 32768.0F - 1));
  }
  return values;
}

struct SumOfPairs {
  float sum = 0;
  double roundings = 0;  // twice what those of two orders of adding may come to: terms · 2^-24 · Σ|x·w| each
};

// Of each pair the second product is added first (kernels/cpu/gemm_bf16.h).
SumOfPairs sum_of_pairs(const float* x, const float* w, std::size_t terms) {
  SumOfPairs s;
  const auto add = [&](std::size_t k) {
    if (k >= terms) return;
    s.sum = std::fma(x[k], w[k], s.sum);
    s.roundings += std::fabs(double{x[k]} * w[k]);
  };
  for (std::size_t k = 0; k < terms; k += 2) {
    add(k + 1);
    add(k);
  }
  s.roundings *= static_cast<double>(terms) * 0x1p-23;
  return s;
}

struct Product {
  std::size_t tokens, inputs, outputs;
  float smallest = 0x1p-8F;
  std::string form = "BF16";
};

void expect_sums_written_out(const Product& p, const std::string& target) {
  ReferenceOps ops(kArithmetic, 1);
  const std::vector<float> x = numbers(p.tokens * p.inputs, 1, p.smallest);
  MadeWeight made(weight_form(p.form), InputKind::zero_mean,
                  {.rows = p.outputs, .columns = p.inputs, .terms = p.inputs, .seed = 7});
  std::vector<float> w = made.values();
  for (float& value : w) value = rounded(value);
  Matrix y = ops.allocate(p.tokens, p.outputs);
  cpu::linear_by(cpu::LinearWay::gemm_bf16,
                 ops.upload(std::vector<double>(x.begin(), x.end()), p.tokens, p.inputs), made.view(), y, 2);
  const bool by_instruction = cpu::has_bf16_products() && p.smallest >= 0x1p-56F;
  std::size_t wrong = 0;
  for (std::size_t t = 0; t < p.tokens; ++t) {
    for (std::size_t o = 0; o < p.outputs; ++o) {
      const SumOfPairs due = sum_of_pairs(&x[t * p.inputs], &w[o * p.inputs], p.inputs);
      const float out = y.row<float>(t)[o];
      const bool same = std::bit_cast<std::uint32_t>(out) == std::bit_cast<std::uint32_t>(due.sum);
      wrong += !same && !(by_instruction && std::fabs(out - due.sum) <= due.roundings);
    }
  }
  EXPECT_EQ(wrong, 0u) << target << ", " << p.form << " [" << p.tokens << ", " << p.inputs << ", "
                       << p.outputs << "]";
}

TEST(Bf16Linear, AddsPairsInOrderUnderEveryInstructionSet) {
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const Product& p : std::vector<Product>{{1, 1, 1},
                                                 {1, 2, 3},
                                                 {13, 31, 37},
                                                 {25, 512, 64},
                                                 {5, 1025, 161},
                                                 {3, 96, 9, 1, "F32"},
                                                 {7, 256, 35, 1, "FP8_128x128"},
                                                 {7, 256, 35, 1, "Q4_K"}})
      expect_sums_written_out(p, target);
  }
  use_simd_target("");
}

// What VDPBF16PS would take for zero.
TEST(Bf16Linear, KeepsTheSmallestNumbers) {
  expect_sums_written_out({7, 64, 33, 0x1p-120F}, "");
  expect_sums_written_out({7, 64, 33, 0x1p-133F}, "");
}

// Numbers of bfloat16 as a checkpoint has them.
struct StoredBf16 {
  std::string name = "w";
  std::vector<std::byte> codes;
  WeightView view;

  StoredBf16(const std::vector<float>& values, std::size_t rows) : codes(2 * values.size()) {
    encode(ElementType::BF16, values, Overflow::special, codes.data());
    view.name = &name;
    view.type = ElementType::BF16;
    view.rows = rows;
    view.columns = values.size() / rows;
    view.row_bytes = 2 * view.columns;
    view.codes = codes.data();
  }
};

// A row by a token in sixteen sums (kernels/cpu/bf16_rows_avx512.h).
float row_in_sixteen_sums(const float* x, const float* w, std::size_t terms) {
  float sums[16] = {};
  for (std::size_t k = 0; k < (terms + 31) / 32 * 32; k += 2) {
    float& sum = sums[k / 2 % 16];
    if (k + 1 < terms) sum = std::fma(x[k + 1], w[k + 1], sum);
    if (k < terms) sum = std::fma(x[k], w[k], sum);
  }
  float blocks[4];
  for (std::size_t b = 0; b < 4; ++b) {
    const float* of = sums + 4 * b;
    blocks[b] = (of[0] + of[2]) + (of[1] + of[3]);
  }
  return (blocks[0] + blocks[1]) + (blocks[2] + blocks[3]);
}

// Of numbers so small that the two fused instructions take them: bit for bit. Else within what roundings may be off.
void expect_rows_written_out(const Product& p) {
  ReferenceOps ops(kArithmetic, 1);
  const std::vector<float> x = numbers(p.tokens * p.inputs, 3, p.smallest),
                           w = numbers(p.outputs * p.inputs, 5, 0x1p-8F);
  const StoredBf16 stored(w, p.outputs);
  Matrix y = ops.allocate(p.tokens, p.outputs);
  cpu::linear_by(cpu::LinearWay::gemv_bf16,
                 ops.upload(std::vector<double>(x.begin(), x.end()), p.tokens, p.inputs), stored.view, y, 2);
  std::size_t wrong = 0;
  for (std::size_t t = 0; t < p.tokens; ++t) {
    for (std::size_t o = 0; o < p.outputs; ++o) {
      const float *token = &x[t * p.inputs], *row = &w[o * p.inputs];
      const float due = row_in_sixteen_sums(token, row, p.inputs), out = y.row<float>(t)[o];
      const bool exact = cpu::multiplies_pairs() && p.smallest < 0x1p-60F;
      const bool same = std::bit_cast<std::uint32_t>(out) == std::bit_cast<std::uint32_t>(due);
      wrong += !same && (exact || !(std::fabs(out - due) <= sum_of_pairs(token, row, p.inputs).roundings));
    }
  }
  EXPECT_EQ(wrong, 0u) << "[" << p.tokens << ", " << p.inputs << ", " << p.outputs << "]";
}

TEST(Bf16Rows, AddSixteenSumsInOrder) {
  for (const std::size_t tokens : {1, 2, 3, 4, 5, 8, 9, 16, 19}) {
    for (const std::size_t inputs : {1, 31, 32, 96, 1025}) {
      expect_rows_written_out({tokens, inputs, 7});
      expect_rows_written_out({tokens, inputs, 7, 0x1p-120F});
    }
  }
}

// What a token gets beside others it gets by itself, whichever of them are too small for the instruction.
TEST(Bf16Rows, GiveATokenTheBitsOfOneAlone) {
  ReferenceOps ops(kArithmetic, 1);
  constexpr std::size_t kTokens = 21, kInputs = 130, kOutputs = 11;
  std::vector<float> x = numbers(kTokens * kInputs, 11, 0x1p-8F),
                     w = numbers(kOutputs * kInputs, 13, 0x1p-8F);
  for (std::size_t t = 0; t < kTokens; t += 3) x[t * kInputs + 5] = 0x1p-100F;
  for (std::size_t o = 0; o < kOutputs; o += 4) w[o * kInputs + 129] = 0x1p-130F;
  const StoredBf16 stored(w, kOutputs);
  const Matrix all = ops.upload(std::vector<double>(x.begin(), x.end()), kTokens, kInputs);
  const Matrix together = ops.allocate(kTokens, kOutputs), alone = ops.allocate(kTokens, kOutputs);
  cpu::linear_by(cpu::LinearWay::gemv_bf16, all, stored.view, together, 2);
  for (std::size_t t = 0; t < kTokens; ++t)
    cpu::linear_by(cpu::LinearWay::gemv_bf16, all.row_range(t, 1), stored.view, alone.row_range(t, 1), 1);
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t o = 0; o < kOutputs; ++o)
      EXPECT_EQ(std::bit_cast<std::uint32_t>(together.row<float>(t)[o]),
                std::bit_cast<std::uint32_t>(alone.row<float>(t)[o]))
          << t << ", " << o;
  }
}

TEST(Bf16Linear, CarriesNaNAndInfinity) {
  ReferenceOps ops(kArithmetic, 1);
  const MadeWeight w(std::vector<float>{1, 2, -1, 1}, 2, 2);
  const double infinity = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  Matrix y = ops.allocate(3, 2);
  const std::vector<double> x = {infinity, 0, nan, 1, 1, 1};
  cpu::linear_by(cpu::LinearWay::gemm_bf16, ops.upload(x, 3, 2), w.view(), y, 1);
  EXPECT_EQ(y.row<float>(0)[0], std::numeric_limits<float>::infinity());
  EXPECT_EQ(y.row<float>(0)[1], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(y.row<float>(1)[0]) && std::isnan(y.row<float>(1)[1]));
  EXPECT_EQ(y.row<float>(2)[0], 3);
  EXPECT_EQ(y.row<float>(2)[1], 0);
}

}  // namespace
}  // namespace assay
