// The comparator itself, against the faults that published acceptance rules let through.
#include "kernels/harness/measure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/numeric/codec.h"
#include "kernels/harness/inputs.h"

namespace assay {
namespace {

constexpr std::size_t kRows = 48, kColumns = 64, kTerms = 512;

float to_bf16(double x) {
  return decode(kBF16, encode(kBF16, static_cast<float>(x), Overflow::special));
}

// A BF16 GEMM [48, 512] × [64, 512]ᵀ, its truth, and a correct kernel's output.
struct Gemm {
  std::vector<float> a, b, out;
  std::vector<double> truth, absolute, budget;

  explicit Gemm(InputKind kind) : a(kRows * kTerms), b(kColumns * kTerms) {
    fill_inputs(kind, {.rows = kRows, .columns = kTerms, .terms = kTerms, .seed = 1}, a);
    // One-hot rows on both sides would hardly ever meet.
    const InputKind other = kind == InputKind::one_hot ? InputKind::zero_mean : kind;
    fill_inputs(other, {.rows = kColumns, .columns = kTerms, .terms = kTerms, .seed = 2}, b);
    for (float& x : a) x = to_bf16(x);
    for (float& x : b) x = to_bf16(x);
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kColumns; ++j) {
        double sum = 0, size = 0;
        float accumulated = 0;
        for (std::size_t k = 0; k < kTerms; ++k) {
          const double product = static_cast<double>(a[i * kTerms + k]) * b[j * kTerms + k];
          sum += product;
          size += std::fabs(product);
          accumulated += a[i * kTerms + k] * b[j * kTerms + k];
        }
        truth.push_back(sum);
        absolute.push_back(size);
        out.push_back(to_bf16(accumulated));
      }
    }
    budget.resize(truth.size());
    linear_budget({.terms = kTerms, .out = ElementType::BF16}, truth, absolute, budget);
    if (kind == InputKind::exact) {  // every sum is an integer: what is left is rounding to BF16
      for (double& x : truth) x = to_bf16(x);
      budget.clear();
    }
  }
  CaseStatus verdict() const { return judge(measure(out, truth, budget, ElementType::BF16)); }
  double dot(std::size_t i, std::size_t j, std::size_t terms) const {
    double sum = 0;
    for (std::size_t k = 0; k < terms; ++k) sum += static_cast<double>(a[i * kTerms + k]) * b[j * kTerms + k];
    return sum;
  }
};

struct Fault {
  std::string name;
  std::function<void(Gemm&)> plant;
};

void for_all(Gemm& g, const std::function<float(std::size_t, std::size_t, float)>& change) {
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kColumns; ++j)
      g.out[i * kColumns + j] = change(i, j, g.out[i * kColumns + j]);
  }
}

const std::vector<Fault>& gemm_faults() {
  static const std::vector<Fault> faults = {
      {"one NaN", [](Gemm& g) { g.out[777] = std::numeric_limits<float>::quiet_NaN(); }},
      {"one element zero", [](Gemm& g) { g.out[g.out[901] != 0 ? 901 : 902] = 0; }},
      {"one negative element times 0.1",
       [](Gemm& g) {
         for (float& x : g.out) {
           if (x < 0) {
             x = to_bf16(x * 0.1F);
             return;
           }
         }
         g.out[5] = to_bf16(g.out[5] * 0.1F);
       }},
      {"a tile of zeros",
       [](Gemm& g) {
         for_all(g, [](std::size_t i, std::size_t j, float x) { return i < 16 && j < 16 ? 0.0F : x; });
       }},
      {"two rows swapped",
       [](Gemm& g) {
         for (std::size_t j = 0; j < kColumns; ++j)
           std::swap(g.out[3 * kColumns + j], g.out[4 * kColumns + j]);
       }},
      {"a block of columns times 1.05",
       [](Gemm& g) {
         for_all(g, [](std::size_t, std::size_t j, float x) { return j < 4 ? to_bf16(x * 1.05F) : x; });
       }},
      {"all times 1.01",
       [](Gemm& g) { for_all(g, [](std::size_t, std::size_t, float x) { return to_bf16(x * 1.01F); }); }},
      {"the last 32 terms dropped",
       [](Gemm& g) {
         for_all(g, [&](std::size_t i, std::size_t j, float) { return to_bf16(g.dot(i, j, kTerms - 32)); });
       }},
      {"the last term dropped",
       [](Gemm& g) {
         for_all(g, [&](std::size_t i, std::size_t j, float) { return to_bf16(g.dot(i, j, kTerms - 1)); });
       }},
      {"the accumulator rounded to BF16 every 128 terms",
       [](Gemm& g) {
         for_all(g, [&](std::size_t i, std::size_t j, float) {
           float sum = 0;
           for (std::size_t k = 0; k < kTerms; ++k) {
             sum += g.a[i * kTerms + k] * g.b[j * kTerms + k];
             if (k % 128 == 127) sum = to_bf16(sum);
           }
           return sum;
         });
       }},
      {"all times 1.0039",
       [](Gemm& g) { for_all(g, [](std::size_t, std::size_t, float x) { return to_bf16(x * 1.0039F); }); }},
  };
  return faults;
}

class GemmRule : public ::testing::TestWithParam<InputKind> {};

TEST_P(GemmRule, AcceptsACorrectKernel) {
  EXPECT_EQ(Gemm(GetParam()).verdict(), CaseStatus::passed);
}

// Each kind of input need not show every fault (BF16 rounding hides a dropped zero); together they must.
TEST(GemmFaults, AreEachCaughtBySomeInput) {
  for (const Fault& fault : gemm_faults()) {
    std::string caught_by;
    for (const InputKind kind : {InputKind::zero_mean, InputKind::positive_mean, InputKind::exact}) {
      Gemm g(kind);
      fault.plant(g);
      if (g.verdict() == CaseStatus::failed) caught_by += std::string(name(kind)) + " ";
    }
    EXPECT_NE(caught_by, "") << fault.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GemmRule, ::testing::ValuesIn(kInputKinds),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(Measure, ANanIsNeverWithinBudget) {
  const std::vector<float> out = {1, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<double> truth = {1, 2}, budget = {1e9, 1e9};
  const ErrorMeasure m = measure(out, truth, budget, ElementType::F32);
  EXPECT_EQ(judge(m), CaseStatus::failed);
  EXPECT_EQ(m.pattern_faults, 1u);
  EXPECT_EQ(m.worst, 1u);
}

TEST(Measure, InfinitiesMustAgreeInSign) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> out = {inf, -inf};
  const std::vector<double> truth = {inf, inf}, budget = {1, 1};
  EXPECT_EQ(measure(out, truth, budget, ElementType::F32).pattern_faults, 1u);
}

TEST(Measure, ATruthOfZerosProvesNothing) {
  const std::vector<float> out = {0, 0};
  const std::vector<double> truth = {0, 0};
  EXPECT_EQ(judge(measure(out, truth, {}, ElementType::F32)), CaseStatus::mistrusted);
}

TEST(Measure, CountsUnitsInTheLastPlace) {
  // BF16 has 8 significant bits: above 1 its neighbours are 2^-7 apart.
  const std::vector<float> out = {1.0F, 1.0F + 0x1p-7F, 1.0F + 0x1p-5F, -1.0F};
  const std::vector<double> truth = {1, 1, 1, 1}, budget = {1, 1, 1, 1};
  const ErrorMeasure m = measure(out, truth, budget, ElementType::BF16);
  EXPECT_EQ(m.ulps[0], 1u);
  EXPECT_EQ(m.ulps[1], 1u);
  EXPECT_EQ(m.ulps[3], 1u);
  EXPECT_EQ(m.ulps[6], 1u);  // across zero: 2 × 16,256 codes
}

TEST(Inputs, ExactSumsAreExact) {
  for (const std::uint64_t terms : {1ull, 64ull, 4096ull, 65536ull}) {
    const ExactFill fill = exact_fill(terms, 24, 448);
    const double largest_sum =
        static_cast<double>(terms) * fill.density * static_cast<double>(fill.largest * fill.largest);
    EXPECT_LE(largest_sum, 0x1p24) << terms;
    EXPECT_GE(fill.largest, 1);
  }
}

TEST(Inputs, AreTheSameEverywhere) {
  InputStream stream(1234567);
  // The published test vector of SplitMix64 for this seed.
  EXPECT_EQ(stream.next(), 6457827717110365317ull);
  EXPECT_EQ(stream.next(), 3203168211198807973ull);
}

}  // namespace
}  // namespace assay
