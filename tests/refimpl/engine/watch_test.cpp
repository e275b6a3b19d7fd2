// Stop strings and grammars in every engine: each text has a watch and a constraint of its own.
#include <gtest/gtest.h>

#include "refimpl/engine/serving.h"
#include "refimpl/ops/kernel_set.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

// Ends a text at its third token.
std::function<TextWatch()> third_token() {
  return [] { return [seen = 0](TokenId) mutable { return ++seen == 3; }; };
}

// Allows tokens of one parity, by turns.
class Turns : public TokenConstraint {
 public:
  void restrict(TokenMask& mask) const override {
    for (TokenId id = 0; id < mask.size(); ++id)
      if (id % 2 != made_ % 2) mask.remove(id);
  }
  void push(TokenId) override { ++made_; }
  void pop(std::size_t count) override { made_ -= count; }
  std::unique_ptr<TokenConstraint> fork() const override { return std::make_unique<Turns>(*this); }

 private:
  std::size_t made_ = 0;
};

TEST(TextWatches, EachTextHasItsOwn) {
  const Weights weights(test::source_dir() / "data/tinylm", 1);
  const auto ops = reference_kernels().make({Precision::f32}, 1);
  const auto model = make_model(weights, {});
  const GenerationRequest request = {.prompt = {0, 54, 259, 223},
                                     .max_new_tokens = 20,
                                     .sampling = {.temperature = 2},
                                     .constraint = std::make_shared<Turns>(),
                                     .watch_text = third_token()};
  const auto check = [](const Generation& made) {
    ASSERT_EQ(made.ids.size(), 3U);
    EXPECT_EQ(made.finish_reason, FinishReason::stop);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(made.ids[i] % 2, i % 2);
  };
  TextEngine engine(*model, *ops);
  for (int time = 0; time < 2; ++time)
    for (const Generation& made : engine.generate({request, request})) check(made);
  ServingOptions options;
  options.cache.blocks = 64;
  ServingEngine serving(*model, *ops, options);
  const std::size_t first = serving.submit({.text = request, .samples = 3});
  const std::size_t second = serving.submit({.text = request});
  while (serving.step()) {
  }
  for (std::size_t sample = 0; sample < 3; ++sample) check(serving.result(first, sample));
  check(serving.result(second));
}

}  // namespace
}  // namespace assay
