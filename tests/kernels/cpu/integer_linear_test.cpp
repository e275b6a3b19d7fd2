// Products in integers, under every instruction set this processor has: the harness sees the best one only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/numeric/simd_targets.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cpu/int8_input.h"
#include "kernels/cpu/int_input.h"
#include "kernels/harness/made_weight.h"
#include "kernels/harness/measure.h"
#include "kernels/operands/int16.h"
#include "kernels/operands/int8_block.h"
#include "kernels/operands/rounded_operands.h"

namespace assay {
namespace {

// Two parts of a panel's terms, two pieces of panels.
constexpr std::size_t kInputs = 768, kOutputs = 163;

std::vector<float> inputs(std::size_t tokens, InputKind kind) {
  std::vector<float> values(tokens * kInputs);
  fill_inputs(kind, {.rows = tokens, .columns = kInputs, .terms = kInputs, .seed = 3}, values);
  return values;
}

Matrix upload(Ops& ops, const std::vector<float>& values, std::size_t tokens) {
  return ops.upload(std::vector<double>(values.begin(), values.end()), tokens, kInputs);
}

// Truth multiplies what the activations became.
void expect_within_budget(const std::string& form, Precision precision, std::size_t tokens, InputKind kind,
                          const std::string& target) {
  const MadeWeight w(weight_form(form), InputKind::zero_mean,
                     {.rows = kOutputs, .columns = kInputs, .terms = kInputs, .seed = 7});
  CpuOps cpu(Arithmetic{precision}, 2);
  ReferenceOps wide(Arithmetic{Precision::f64}, 2);
  const std::vector<float> x = inputs(tokens, kind);
  std::vector<float> rounded_x = x, magnitudes = w.values();
  if (const auto how = rounded_operands(w.view(), Arithmetic{precision})) {
    how->inputs.round(rounded_x);  // of whole groups a row
    if (how->weights) how->weights->round(magnitudes);
  }
  const std::vector<double> multiplied(rounded_x.begin(), rounded_x.end());
  std::vector<double> sizes(multiplied);
  for (double& value : sizes) value = std::fabs(value);
  const MadeWeight rounded(magnitudes, kOutputs, kInputs);
  for (float& value : magnitudes) value = std::fabs(value);
  const MadeWeight absolute(magnitudes, kOutputs, kInputs);

  const std::vector<double> out = cpu.download(cpu.linear(upload(cpu, x, tokens), w.view(), {}, {}));
  const std::vector<double> truth =
      wide.download(wide.linear(wide.upload(multiplied, tokens, kInputs), rounded.view(), {}, {}));
  const std::vector<double> scale =
      wide.download(wide.linear(wide.upload(sizes, tokens, kInputs), absolute.view(), {}, {}));
  std::vector<double> budget(truth.size());
  linear_budget({.terms = kInputs, .out = ElementType::F32}, truth, scale, budget);
  const std::vector<float> narrow_out(out.begin(), out.end());
  const ErrorMeasure m = measure(narrow_out, truth, budget, ElementType::F32);
  EXPECT_EQ(judge(m), CaseStatus::passed) << form << " " << name(precision) << ", " << tokens << " tokens, "
                                          << target << ": " << describe_worst(m, narrow_out, truth, budget);
}

TEST(IntegerLinear, IsWithinFloat32BudgetsUnderEveryInstructionSet) {
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const char* form : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"}) {
      for (const std::size_t tokens : {1, 13}) {
        for (const InputKind kind : {InputKind::zero_mean, InputKind::heavy_tailed}) {
          expect_within_budget(form, Precision::int16, tokens, kind, target);
          expect_within_budget(form, Precision::int8_block, tokens, kind, target);
          expect_within_budget(form, Precision::f32, tokens, kind, target);
        }
      }
    }
    for (const char* form : {"BF16", "F16"}) {
      for (const std::size_t tokens : {1, 13}) {
        for (const InputKind kind : {InputKind::zero_mean, InputKind::heavy_tailed})
          expect_within_budget(form, Precision::int16, tokens, kind, target);
      }
    }
  }
  use_simd_target("");
}

std::vector<double> product_under(const std::string& target, const MadeWeight& w, Precision precision,
                                  std::size_t tokens) {
  use_simd_target(target);
  CpuOps cpu(Arithmetic{precision}, 1);
  const Matrix x = upload(cpu, inputs(tokens, InputKind::heavy_tailed), tokens);
  return cpu.download(cpu.linear(x, w.view(), {}, {}));
}

// From AVX2 on, floats are added in the same order, and integers are exact whichever instructions add them.
TEST(IntegerLinear, NeitherAvx512NorVnniChangesABit) {
  std::vector<std::string> targets;
  for (const std::string& target : simd_targets()) {
    if (target.starts_with("AVX")) targets.push_back(target);
  }
  if (targets.size() < 2) GTEST_SKIP() << "this processor has no AVX-512";
  for (const char* form : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "BF16", "F16"}) {
    const MadeWeight w(weight_form(form), InputKind::heavy_tailed,
                       {.rows = kOutputs, .columns = kInputs, .terms = kInputs, .seed = 11});
    const auto expect_same = [&](Precision precision, std::size_t tokens) {
      const std::vector<double> expected = product_under(targets.back(), w, precision, tokens);
      for (const std::string& target : targets)
        EXPECT_EQ(product_under(target, w, precision, tokens), expected)
            << form << " " << name(precision) << ", " << tokens << " tokens, " << target;
    };
    expect_same(Precision::int16, 19);  // tiles of every height
    if (has_int16_floats(w.view())) continue;
    expect_same(Precision::int8_block, 19);
    expect_same(Precision::int16, 1);  // rows
    expect_same(Precision::int8_block, 1);
    expect_same(Precision::int8_block, 15);  // 8, 4, 2 and 1 at once
    expect_same(Precision::f32, 1);          // by integers of 24 bits
  }
  use_simd_target("");
}

// An outlier where the weight all but vanishes: what its group's integers are off by is not in the budget.
TEST(IntegerLinear, AnOutlierMeetsATinyWeight) {
  for (const char* form : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"}) {
    const MadeWeight w(weight_form(form), InputKind::zero_mean,
                       {.rows = 1, .columns = kInputs, .terms = kInputs, .seed = 7});
    const std::vector<float> weights = w.values();
    std::vector<float> x = inputs(1, InputKind::zero_mean);
    const auto tiniest =
        std::ranges::min_element(weights, {}, [](float value) { return std::fabs(value); }) - weights.begin();
    x[static_cast<std::size_t>(tiniest)] = 1e6F;
    std::vector<double> truth(1), sizes(1), budget(1);
    for (std::size_t k = 0; k < kInputs; ++k) {
      const double term = double{weights[k]} * x[k];
      truth[0] += term;
      sizes[0] += std::fabs(term);
    }
    linear_budget({.terms = kInputs, .out = ElementType::F32}, truth, sizes, budget);
    CpuOps cpu(Arithmetic{Precision::f32}, 1);
    const std::vector<double> out = cpu.download(cpu.linear(upload(cpu, x, 1), w.view(), {}, {}));
    EXPECT_LE(std::fabs(out[0] - truth[0]), budget[0]) << form;
  }
}

TEST(IntInput, RoundsAsTheReferenceDoes) {
  std::vector<float> x = inputs(1, InputKind::heavy_tailed);
  for (std::size_t i = 0; i < 32; ++i) x[i] = 0;                        // nothing to scale by
  for (std::size_t i = 32; i < 64; ++i) x[i] = 1e-40F;                  // subnormal
  for (std::size_t i = 64; i < 96; ++i) x[i] = (i % 2 ? -1.0F : 1.0F);  // a power of two
  x[96] = std::nextafter(2.0F, 0.0F);                                   // rounds to 2^15, which is no code
  x[97] = 2.0F * 12345.5F / 32768;                                      // half a code: to even
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    const cpu::IntInput ints(x, false);
    for (std::size_t g = 0; g < kInputs / 32; ++g) {
      const float scale = int16_scale(std::span(x).subspan(32 * g, 32), 15);
      EXPECT_EQ(ints.scales[g], scale) << target;
      for (std::size_t i = 0; i < 32; ++i)
        EXPECT_EQ(ints.high[g].codes[i], int16_code(x[32 * g + i], scale, 15))
            << target << ", " << 32 * g + i;
    }
  }
  use_simd_target("");
}

TEST(Int8Input, RoundsAsTheReferenceDoes) {
  std::vector<float> x = inputs(1, InputKind::heavy_tailed);
  for (std::size_t i = 0; i < 32; ++i) x[i] = 0;                        // nothing to scale by
  for (std::size_t i = 32; i < 64; ++i) x[i] = 1e-40F;                  // subnormal
  for (std::size_t i = 64; i < 96; ++i) x[i] = i % 2 ? -127.0F : 0.5F;  // half a code: to even
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    const cpu::Int8Input ints(x);
    for (std::size_t g = 0; g < kInputs / 32; ++g) {
      const float scale = int8_block_scale(std::span(x).subspan(32 * g, 32));
      EXPECT_EQ(ints.scales[g], scale) << target;
      int sum = 0;
      for (std::size_t i = 0; i < 32; ++i) {
        const std::int8_t code = int8_block_code(x[32 * g + i], scale);
        EXPECT_EQ(ints.groups[g].codes[i], code) << target << ", " << 32 * g + i;
        EXPECT_LE(std::fabs(x[32 * g + i] - static_cast<float>(code) * scale), 0.501F * scale);
        sum += code;
      }
      EXPECT_EQ(ints.sums_of_16[2 * g] + ints.sums_of_16[2 * g + 1], sum) << target;
      EXPECT_EQ(ints.sums_of_32[g], static_cast<float>(sum) * scale) << target;
    }
  }
  use_simd_target("");
}

// Blocks that fill a row of 256, all bytes but those of the scales in half precision the same: a value is
// then `number`.
struct UniformBlocks {
  ElementType type;
  std::size_t bytes, blocks, scale_at;
  int byte, number;
};
std::vector<std::byte> row_of(const UniformBlocks& of) {
  std::vector<std::byte> row(of.bytes * of.blocks, static_cast<std::byte>(of.byte));
  for (std::size_t b = 0; b < of.blocks; ++b) {
    std::byte* scale = row.data() + of.bytes * b + of.scale_at;
    scale[0] = std::byte{0};
    scale[1] = std::byte{0x3C};  // 1 in half precision
    if (of.type == ElementType::Q4_K || of.type == ElementType::Q5_K) scale[2] = scale[3] = std::byte{0};
  }
  return row;
}

// The largest codes by the largest inputs: sums of products in 16 bits must not be cut off.
TEST(IntegerLinear, LargestCodesByLargestInputs) {
  constexpr std::size_t kColumns = 256;
  static const std::string kName = "w";
  const UniformBlocks all[] = {
      {ElementType::Q8_0, 34, 8, 0, -128, -128},     {ElementType::Q8_0, 34, 8, 0, 127, 127},
      {ElementType::Q4_0, 18, 8, 0, 0xFF, 7},        {ElementType::Q5_0, 22, 8, 0, 0xFF, 15},
      {ElementType::Q4_K, 144, 1, 0, 0xFF, 63 * 15}, {ElementType::Q5_K, 176, 1, 0, 0xFF, 63 * 31},
      {ElementType::Q6_K, 210, 1, 208, 0xFF, -31}};  // its scales are bytes, -1
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const UniformBlocks& of : all) {
      const std::vector<std::byte> blocks = row_of(of);
      WeightView w;
      w.name = &kName;
      w.rows = 1;
      w.columns = kColumns;
      w.type = of.type;
      w.codes = blocks.data();
      w.row_bytes = blocks.size();
      CpuOps cpu(Arithmetic{Precision::int8_block}, 1);
      for (const double x : {-127.0, 127.0}) {
        for (const std::size_t tokens : {1, 19}) {  // rows, and panels
          const Matrix y =
              cpu.linear(cpu.upload(std::vector<double>(tokens * kColumns, x), tokens, kColumns), w, {}, {});
          for (const double value : cpu.download(y))
            EXPECT_EQ(value, of.number * x * kColumns) << target << ", " << of.bytes << " bytes, " << tokens;
        }
      }
    }
  }
  use_simd_target("");
}

TEST(IntInput, NaNAndInfinityMakeNaN) {
  for (const auto& [bad, precision] :
       {std::pair(NAN, Precision::int16), std::pair(INFINITY, Precision::int16),
        std::pair(NAN, Precision::int8_block), std::pair(INFINITY, Precision::int8_block)}) {
    std::vector<float> x(kInputs, 1.0F);
    x[40] = bad;
    CpuOps cpu(Arithmetic{precision}, 1);
    const MadeWeight w(weight_form("Q8_0"), InputKind::zero_mean, {.rows = 3, .columns = kInputs});
    for (const double y : cpu.download(cpu.linear(upload(cpu, x, 1), w.view(), {}, {})))
      EXPECT_TRUE(std::isnan(y));
  }
}

// Of a weight, too, under every instruction set: processors without F16C have no infinities in half precision.
TEST(IntegerLinear, WeightsThatAreNotFiniteAreSeen) {
  static const std::string kName = "w";
  constexpr std::size_t kColumns = 1024;  // in groups one by one, and sixteen at a time
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const auto& [type, one] : {std::pair(ElementType::F16, 0x3C00), {ElementType::BF16, 0x3F80}}) {
      const int infinity = type == ElementType::F16 ? 0x7C00 : 0x7F80;
      for (const int bad : {infinity, infinity | 0x8000, infinity + 1, 0xFFFF}) {
        std::vector<std::uint16_t> codes(2 * kColumns, static_cast<std::uint16_t>(one));
        codes[kColumns + 70] = static_cast<std::uint16_t>(bad);
        WeightView w;
        w.name = &kName;
        w.rows = 2;
        w.columns = kColumns;
        w.type = type;
        w.codes = std::as_bytes(std::span(codes)).data();
        w.row_bytes = 2 * kColumns;
        for (const Precision precision : {Precision::f32, Precision::int16}) {
          for (const std::size_t tokens : {1, 19}) {
            CpuOps cpu(Arithmetic{precision}, 1);
            const Matrix y = cpu.linear(
                cpu.upload(std::vector<double>(tokens * kColumns, 1), tokens, kColumns), w, {}, {});
            const std::vector<double> values = cpu.download(y);
            for (std::size_t t = 0; t < tokens; ++t) {
              EXPECT_EQ(values[2 * t], kColumns) << target;
              const bool seen =
                  precision == Precision::int16 || bad > (infinity | 0x8000) || bad == infinity + 1
                      ? std::isnan(values[2 * t + 1])
                      : values[2 * t + 1] == (bad == infinity ? INFINITY : -INFINITY);
              EXPECT_TRUE(seen) << target << " " << info(type).name << " " << name(precision) << ", " << bad
                                << ": " << values[2 * t + 1];
            }
          }
        }
      }
    }
  }
  use_simd_target("");
}

// A block's scale likewise.
TEST(IntegerLinear, ScalesThatAreNotFiniteAreSeen) {
  static const std::string kName = "w";
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    for (const int bad : {0x7C00, 0x7E00}) {
      std::vector<std::byte> blocks = row_of({ElementType::Q8_0, 34, 16, 0, 1, 1});
      blocks[34 * 5] = static_cast<std::byte>(bad & 0xFF);
      blocks[34 * 5 + 1] = static_cast<std::byte>(bad >> 8);
      WeightView w;
      w.name = &kName;
      w.rows = 1;
      w.columns = 512;
      w.type = ElementType::Q8_0;
      w.codes = blocks.data();
      w.row_bytes = blocks.size();
      for (const Precision precision : {Precision::f32, Precision::int16, Precision::int8_block}) {
        for (const std::size_t tokens : {1, 19}) {
          CpuOps cpu(Arithmetic{precision}, 1);
          const Matrix x = cpu.upload(std::vector<double>(tokens * 512, 1), tokens, 512);
          for (const double y : cpu.download(cpu.linear(x, w, {}, {})))
            EXPECT_FALSE(std::isfinite(y)) << target << " " << name(precision) << ", " << tokens << " tokens";
        }
      }
    }
  }
  use_simd_target("");
}

}  // namespace
}  // namespace assay
