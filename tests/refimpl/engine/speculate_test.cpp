// Drawn texts with guesses checked against those without, seed by seed; more of them by ASSAY_SEEDS=N.
#include "refimpl/engine/speculate.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

std::uint64_t seeds() {
  const char* wanted = std::getenv("ASSAY_SEEDS");
  return wanted == nullptr ? 120 : std::strtoull(wanted, nullptr, 10);
}

// No token twice in a row.
class NoRepeats : public TokenConstraint {
 public:
  void restrict(TokenMask& mask) const override {
    if (!ids_.empty()) mask.remove(ids_.back());
  }
  void push(TokenId id) override { ids_.push_back(id); }
  void pop(std::size_t count) override { ids_.resize(ids_.size() - count); }
  std::unique_ptr<TokenConstraint> fork() const override { return std::make_unique<NoRepeats>(*this); }

 private:
  std::vector<TokenId> ids_;
};

TEST(Speculation, DrawnTextsAreThoseOfPlainDecoding) {
  const Weights weights(test::source_dir() / "data/tinylm", 1);
  const auto ops = reference_kernels().make({Precision::f32}, 1);
  const auto model = make_model(weights, {});
  TextEngine plain(*model, *ops);
  std::size_t drafted = 0, accepted = 0, stopped = 0;
  for (std::uint64_t seed = 0; seed < seeds(); ++seed) {
    GenerationRequest request = {.prompt = {0, 54, 259, 223, 316, 267, 84},
                                 .max_new_tokens = 10,
                                 .sampling = {.temperature = 0.4 + 0.3 * static_cast<double>(seed % 5),
                                              .top_k = seed % 3 == 0 ? std::size_t{20} : 0,
                                              .top_p = seed % 4 == 0 ? 0.9 : 1,
                                              .min_p = seed % 7 == 0 ? 0.05 : 0,
                                              .repetition_penalty = seed % 2 == 0 ? 1.2 : 1,
                                              .presence_penalty = seed % 5 == 0 ? 0.5 : 0,
                                              .logit_bias = {{16, 2}},
                                              .min_tokens = seed % 4,
                                              .stop_tokens = {16},
                                              .seed = seed}};
    if (seed % 3 == 1) request.constraint = std::make_shared<NoRepeats>();
    const Speculation guessed = speculate(*model, *ops, request);
    const Generation truth = plain.generate({request}).front();
    ASSERT_EQ(guessed.made.ids, truth.ids) << "seed " << seed;
    ASSERT_EQ(guessed.made.finish_reason, truth.finish_reason) << "seed " << seed;
    drafted += guessed.drafted;
    accepted += guessed.accepted;
    stopped += truth.finish_reason == FinishReason::stop ? 1 : 0;
  }
  EXPECT_GT(accepted, drafted / 10);
  EXPECT_LT(accepted, drafted);
  EXPECT_GT(stopped, seeds() / 10);
  EXPECT_LT(stopped, seeds());
}

// A stop string that comes with the first of two tokens ends the text there.
TEST(Speculation, AStopEarlyInARunIsNotMissed) {
  const Weights weights(test::source_dir() / "data/tinylm", 1);
  const auto ops = reference_kernels().make({Precision::f32}, 1);
  const auto model = make_model(weights, {});
  for (int at = 1; at <= 8; ++at) {
    const GenerationRequest request = {
        .prompt = {0, 54, 259, 223, 316, 267, 84}, .max_new_tokens = 12, .watch_text = [at] {
          return [at, seen = 0](TokenId) mutable { return ++seen == at; };
        }};
    const Speculation guessed = speculate(*model, *ops, request);
    EXPECT_EQ(guessed.made.ids.size(), static_cast<std::size_t>(at));
    EXPECT_EQ(guessed.made.finish_reason, FinishReason::stop);
  }
}

}  // namespace
}  // namespace assay
