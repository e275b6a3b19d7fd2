// Who guesses, and what a step makes of it: guesses saved by each source, and the same text.
#include <gtest/gtest.h>

#include <cstdlib>

#include "refimpl/claims/noisy_model.h"
#include "refimpl/engine/speculate.h"
#include "refimpl/ops/kernel_set.h"
#include "refimpl/speculation/layer_drafter.h"
#include "refimpl/speculation/lookup_drafter.h"
#include "refimpl/speculation/model_drafter.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

std::uint64_t drawn_seeds() {
  const char* wanted = std::getenv("ASSAY_SEEDS");
  return wanted == nullptr ? 60 : std::strtoull(wanted, nullptr, 10);
}

struct LoadedDraft {
  explicit LoadedDraft(const std::string& name)
      : weights(test::source_dir() / "data/models" / name, 1),
        ops(reference_kernels().make({Precision::f32}, 1)),
        model(make_model(weights, {})),
        noisy(*model) {}
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  NoisyModel noisy;
};

GenerationRequest drawn_request(std::uint64_t seed) {
  return {.prompt = {3, 14, 15, 9, 26, 5, 3, 14, 15},
          .max_new_tokens = 12,
          .sampling = {.temperature = seed % 4 == 0 ? 0 : 0.3 + 0.3 * static_cast<double>(seed % 4),
                       .top_k = seed % 3 == 0 ? std::size_t{20} : 0,
                       .top_p = seed % 5 == 0 ? 0.9 : 1,
                       .min_p = seed % 7 == 0 ? 0.05 : 0,
                       .repetition_penalty = seed % 2 == 0 ? 1.2 : 1,
                       .frequency_penalty = seed % 5 == 1 ? 0.5 : 0,
                       .stop_tokens = {16, 17},
                       .seed = seed}};
}

// Sample and match: the text of plain decoding, whoever guesses.
TEST(Drafters, DrawnTextsAreThoseOfPlainDecoding) {
  const LoadedDraft loaded("deepseek-v3");
  const auto layers = std::make_shared<LayerDrafts>(*loaded.model, *loaded.ops);
  const auto drafts = std::make_shared<ModelDrafts>(loaded.noisy, *loaded.ops);
  const SpeculationOptions ways[] = {{.source = std::make_shared<LookupDrafts>(), .shape = {1, 1, 1}},
                                     {.source = drafts, .shape = {1, 1, 1}},
                                     {.source = drafts, .shape = {3, 2, 1}},
                                     {.source = layers, .shape = {1}},
                                     {.source = layers, .shape = {1, 1, 1}},
                                     {.source = layers, .shape = {2, 2}}};
  std::vector<std::size_t> guessed(std::size(ways)), accepted(std::size(ways));
  TextEngine plain(*loaded.model, *loaded.ops);
  for (std::uint64_t seed = 0; seed < drawn_seeds(); ++seed) {
    const GenerationRequest request = drawn_request(seed);
    const Generation truth = plain.generate({request}).front();
    for (std::size_t way = 0; way < std::size(ways); ++way) {
      const Speculation made = speculate(*loaded.model, *loaded.ops, request, {}, ways[way]);
      ASSERT_EQ(made.made.ids, truth.ids) << "seed " << seed << ", way " << way;
      ASSERT_EQ(made.made.finish_reason, truth.finish_reason) << "seed " << seed << ", way " << way;
      guessed[way] += made.drafted;
      accepted[way] += made.accepted;
    }
  }
  for (std::size_t way = 0; way < std::size(ways); ++way) {
    RecordProperty("way " + std::to_string(way),
                   std::to_string(accepted[way]) + " of " + std::to_string(guessed[way]));
    EXPECT_LT(accepted[way], guessed[way]) << way;
  }
  EXPECT_GT(accepted[1], guessed[1] / 4);
  EXPECT_GT(accepted[2], 0U);
}

// A draft that is the model itself is always right: every step makes as many tokens as it may.
TEST(Drafters, TheModelItselfGuessesRight) {
  const LoadedDraft loaded("llama");
  const auto drafts = std::make_shared<ModelDrafts>(*loaded.model, *loaded.ops);
  for (const double temperature : {0.0, 1.0}) {
    GenerationRequest request = drawn_request(1);
    request.sampling = {.temperature = temperature, .seed = 5};
    request.max_new_tokens = 13;
    const Speculation made =
        speculate(*loaded.model, *loaded.ops, request, {}, {.source = drafts, .shape = {1, 1, 1}});
    EXPECT_EQ(made.accepted, made.drafted);
    EXPECT_EQ(made.steps, 4U);  // the prompt, and three of four tokens each
    EXPECT_EQ(acceptance(made.counts), 1);
    EXPECT_EQ(made.counts.guessing_tokens, 12U);
  }
}

TEST(Drafters, TokensExpectedOfAStep) {
  EXPECT_NEAR(expected_tokens(2.0 / 3, 3), 2.4074, 1e-4);
  EXPECT_EQ(expected_tokens(1, 3), 4);
  EXPECT_EQ(expected_tokens(0, 3), 1);
}

}  // namespace
}  // namespace assay
