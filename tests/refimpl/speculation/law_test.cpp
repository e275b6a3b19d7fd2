// The law of speculated text: enumerated through the engine's own decisions, and drawn a million times.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "core/system/error.h"
#include "core/system/sanitizer.h"
#include "refimpl/claims/law_oracle.h"
#include "refimpl/ops/kernel_set.h"
#include "refimpl/sampling/rejection.h"
#include "refimpl/speculation/model_drafter.h"

namespace assay {
namespace {

void expect_true_laws(const std::shared_ptr<const AcceptanceRule>& rule, std::size_t least_ways) {
  std::size_t ways = 0;
  for (const LawCase& test : law_cases(rule)) {
    const LawResult result = compare_laws(test);
    EXPECT_LE(result.error, 1e-12) << test.name;
    EXPECT_TRUE(test.name != "from known blocks" || result.counts.hit_tokens > 0);
    EXPECT_TRUE(test.name != "preempted" || result.counts.preemptions > 0);
    ways += result.ways;
  }
  testing::Test::RecordProperty("ways", std::to_string(ways));
  EXPECT_GT(ways, least_ways);
}

TEST(SpeculatedLaw, OfRejectionIsTheTargets) {
  expect_true_laws(std::make_shared<RejectionSampling>(), 30000);
}
TEST(SpeculatedLaw, OfSampleAndMatchIsTheTargets) {
  expect_true_laws(std::make_shared<SampleAndMatch>(), 1000);
}

// The engine's own random numbers; more by ASSAY_DRAWS=N, 10⁶ for one.
TEST(SpeculatedLaw, DrawsFollowIt) {
  const char* wanted = std::getenv("ASSAY_DRAWS");
  const std::size_t draws = wanted != nullptr ? std::strtoull(wanted, nullptr, 10)
                            : kSanitized      ? 4000
                                              : 100000;
  const auto ops = reference_kernels().make({Precision::f64}, 1);
  const StubModel target(1, 4), draft(2, 4);
  const SamplingParams sampling = {.temperature = 1, .frequency_penalty = 0.5};
  const TextLaw truth = true_law(target, sampling, 3);
  for (const TreeShape& shape : {TreeShape{1, 1}, TreeShape{2, 1}}) {
    TextLaw counts;
    constexpr std::size_t kTogether = 500;
    for (std::size_t first = 0; first < draws; first += kTogether) {
      ServingEngine engine(target, *ops,
                           {.cache = {.blocks = 8 * kTogether,
                                      .block_tokens = 4,
                                      .tokens_a_step = 1 << 20,
                                      .texts_at_once = 1 << 20,
                                      .chunk = 1 << 20},
                            .speculation = {.source = std::make_shared<ModelDrafts>(draft, *ops),
                                            .shape = shape,
                                            .rule = std::make_shared<RejectionSampling>()}});
      ServingRequest request = {.text = {.prompt = {1, 0, 1}, .max_new_tokens = 3, .sampling = sampling},
                                .samples = kTogether};
      request.text.sampling.seed = first;
      const std::size_t number = engine.submit(request);
      while (engine.step()) {
      }
      for (std::size_t sample = 0; sample < kTogether; ++sample) ++counts[engine.result(number, sample).ids];
    }
    double chi_square = 0;
    std::size_t freedom = 0;
    for (const auto& [text, weight] : truth) {
      const double expected = weight * static_cast<double>(draws);
      chi_square += std::pow(counts[text] - expected, 2) / expected;
      ++freedom;
    }
    const auto k = static_cast<double>(freedom - 1);
    RecordProperty("chi square, " + std::to_string(shape.front()),
                   std::to_string(chi_square) + " of " + std::to_string(k));
    // Wilson and Hilferty: one in a thousand beyond.
    EXPECT_LT(chi_square, k * std::pow(1 - 2 / (9 * k) + 3.09 * std::sqrt(2 / (9 * k)), 3));
  }
}

TEST(SpeculatedLaw, WhatIsLeft) {
  const std::vector<double> p = {0.5, 0.5}, q = {1, 0};
  EXPECT_THROW(acceptance(p, q, 1), Error);
  EXPECT_THROW(acceptance(p, q, 7), Error);
  EXPECT_EQ(acceptance(p, q, 0), 0.5);
  EXPECT_EQ(residual_law(p, p), p);
  EXPECT_EQ(residual_law(p, q), (std::vector<double>{0, 1}));
}

}  // namespace
}  // namespace assay
