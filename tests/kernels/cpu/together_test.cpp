// Products of one x made side by side: the bits that each has by itself, whatever lies beside it and is shared with it.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/numeric/simd_targets.h"
#include "kernels/harness/made_weight.h"
#include "kernels/selection/select.h"

namespace assay {
namespace {

constexpr std::size_t kInputs = 512;

struct Weights {
  std::vector<std::unique_ptr<MadeWeight>> made;
  std::vector<WeightView> biases;

  explicit Weights(const std::vector<std::string>& forms) {
    for (std::size_t i = 0; i < forms.size(); ++i) add(forms[i], 37 + 24 * i, kInputs, i);
    add("F32", 1, made.front()->view().outputs(), 9);  // a bias of the first
    biases.resize(forms.size());
    biases.front() = made.back()->view();
  }
  void add(const std::string& form, std::size_t rows, std::size_t columns, std::size_t seed) {
    made.push_back(std::make_unique<MadeWeight>(
        weight_form(form), InputKind::heavy_tailed,
        FillOptions{.rows = rows, .columns = columns, .terms = columns, .seed = 20 + seed}));
  }
};

void expect_the_same(const std::vector<std::string>& forms, Precision precision, const std::string& kernels) {
  const Weights w(forms);
  for (const std::size_t tokens : {1, 8, 15, 19, 70}) {
    for (const int jobs : {1, 3}) {
      const auto fallbacks = std::make_shared<Fallbacks>();
      const auto ops = select_kernels(builtin_kernels(), kernels, Arithmetic{precision}, jobs, fallbacks);
      std::vector<float> x(tokens * kInputs);
      fill_inputs(InputKind::heavy_tailed, {.rows = tokens, .columns = kInputs, .terms = kInputs, .seed = 3},
                  x);
      const Matrix in = ops->upload(std::vector<double>(x.begin(), x.end()), tokens, kInputs);
      std::vector<LinearCall> calls;
      for (std::size_t i = 0; i < forms.size(); ++i) calls.push_back({in, w.made[i]->view(), w.biases[i]});
      const std::vector<Matrix> together = ops->run_together(calls);
      ASSERT_EQ(together.size(), calls.size());
      if (kernels != "reference") {
        EXPECT_EQ(fallbacks->ops().at("linear").calls, calls.size());
      }
      for (std::size_t i = 0; i < calls.size(); ++i)
        EXPECT_EQ(ops->download(together[i]), ops->download(ops->run(calls[i])))
            << kernels << " " << name(precision) << ", " << forms[i] << " beside " << forms.front() << ", "
            << tokens << " tokens, " << jobs << " threads";
    }
  }
}

void under_every_target(const std::vector<std::string>& forms, Precision precision) {
  for (const std::string& target : simd_targets()) {
    use_simd_target(target);
    SCOPED_TRACE(target);
    for (const char* kernels : {"cpu", "cpu-invariant"}) expect_the_same(forms, precision, kernels);
  }
  use_simd_target("");
}

TEST(Together, InFloat32) {
  under_every_target({"F32", "BF16", "F32", "Q4_K"}, Precision::f32);
}
TEST(Together, InBfloat16) {
  under_every_target({"BF16", "BF16", "F32", "Q8_0"}, Precision::bf16);
}
TEST(Together, InIntegersOf16Bits) {
  under_every_target({"BF16", "F16", "BF16", "Q4_K", "Q6_K"}, Precision::int16);
}
TEST(Together, InIntegersOf8Bits) {
  under_every_target({"Q4_K", "Q4_K", "Q6_K", "Q8_0", "Q4_0"}, Precision::int8_block);
  under_every_target({"Q8_0", "Q8_0", "Q5_1", "Q6_K", "Q5_K"}, Precision::int8_block);
}

// What the CPU's kernels do not take, and the reference: one after the other.
TEST(Together, ByTheReference) {
  expect_the_same({"F32", "BF16", "Q4_K"}, Precision::f64, "reference");
  expect_the_same({"F32", "BF16", "Q4_K"}, Precision::f64, "cpu");
}

}  // namespace
}  // namespace assay
