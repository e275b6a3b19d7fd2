// The trained tinylm against data/tinylm/golden.json and LOSSES.md, and the engine's claims on it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/system/sanitizer.h"
#include "refimpl/claims/claims.h"
#include "refimpl/engine/engine.h"
#include "refimpl/engine/speculate.h"
#include "refimpl/ops/reference.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

struct Tiny {
  explicit Tiny(const std::string& name, const Arithmetic& arithmetic = {Precision::f64})
      : weights(test::source_dir() / "data" / name, 1),
        ops(reference_kernels().make(arithmetic, 1)),
        model(make_model(weights, {})) {
    const auto document =
        nlohmann::json::parse(test::read_file(test::source_dir() / "data/tinylm/golden.json"));
    prompt = document.at("prompt_ids").get<std::vector<TokenId>>();
    golden = document.at(name);
  }

  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
  std::vector<TokenId> prompt;
  nlohmann::json golden;
};

class TinyModels : public testing::TestWithParam<const char*> {};

TEST_P(TinyModels, LastLogitsAreTorchs) {
  Tiny tiny(GetParam());
  const auto expected = tiny.golden.at("last").at("logits_f64").get<std::vector<double>>();
  TextEngine(*tiny.model, *tiny.ops)
      .generate({{.prompt = tiny.prompt, .max_new_tokens = 1}},
                [&](std::size_t, TokenId, std::span<const double> logits) {
                  ASSERT_EQ(logits.size(), expected.size());
                  for (std::size_t i = 0; i < expected.size(); ++i)
                    EXPECT_NEAR(logits[i], expected[i], 5.01e-10) << i;  // written to nine decimals
                });
}

TEST_P(TinyModels, GreedyTextIsTorchs) {
  Tiny tiny(GetParam(), {Precision::f32});
  const auto expected = tiny.golden.at("greedy").get<std::vector<TokenId>>();
  const auto made = TextEngine(*tiny.model, *tiny.ops)
                        .generate({{.prompt = tiny.prompt, .max_new_tokens = expected.size()}});
  EXPECT_EQ(made.front().ids, expected);
}

TEST_P(TinyModels, SpeculationSaysTheSameInFewerSteps) {
  Tiny tiny(GetParam(), {Precision::f32});
  const GenerationRequest request = {.prompt = tiny.prompt, .max_new_tokens = 64};
  const auto plain = TextEngine(*tiny.model, *tiny.ops).generate({request}).front();
  const Speculation guessed = speculate(*tiny.model, *tiny.ops, request);
  EXPECT_EQ(guessed.made.ids, plain.ids);
  EXPECT_EQ(guessed.made.finish_reason, plain.finish_reason);
  EXPECT_GT(guessed.acceptance(), 0.5);  // trained to: an untrained layer guesses one in 448
  EXPECT_LT(guessed.steps, 1 + 64 * 3 / 4);
}

TEST_P(TinyModels, ClaimsHoldInEveryPrecision) {
  for (const Precision precision : {Precision::f64, Precision::f32, Precision::bf16}) {
    if (kSanitized && precision != Precision::f32) continue;  // minutes
    Tiny tiny(GetParam(), {precision});
    const auto claims = run_claims(tiny.weights, {}, reference_kernels(), {precision}, 1, tiny.prompt);
    EXPECT_GE(claims.size(), 18U);
    for (const Claim& claim : claims) EXPECT_TRUE(claim.holds()) << claim.name << ' ' << claim.error;
  }
}

INSTANTIATE_TEST_SUITE_P(Data, TinyModels, testing::Values("tinylm", "tinylm-bf16"), [](const auto& info) {
  return std::string(info.param).size() > 6 ? "bf16" : "fp8";
});

// A wrong reference must be refuted: the claims compare, they do not merely run.
class LeakyOps : public ReferenceOps {
 public:
  using ReferenceOps::ReferenceOps;
  // A row's result depends on how many rows there are: what batch-dependent kernels do.
  using ReferenceOps::run;
  Matrix run(const RmsNormCall& call) override {
    RmsNormCall other = call;
    other.epsilon *= static_cast<double>(1 + call.x.rows());
    return ReferenceOps::run(other);
  }
};

TEST(Claims, AKernelThatDependsOnTheBatchIsRefuted) {
  Tiny tiny("tinylm");
  const KernelSet leaky = {"leaky", true, [](const Arithmetic& arithmetic, int jobs) {
                             return std::make_unique<LeakyOps>(arithmetic, jobs);
                           }};
  std::map<std::string, bool> holds;
  for (const Claim& claim : run_claims(tiny.weights, {}, leaky, {Precision::f64}, 1, tiny.prompt))
    holds[claim.name] = claim.holds();
  EXPECT_FALSE(holds.at("prefill_by_token"));
  EXPECT_FALSE(holds.at("batch"));
  EXPECT_TRUE(holds.at("online_softmax"));
}

TEST(Engine, RefusesWhatCannotBe) {
  Tiny tiny("tinylm", {Precision::f32});
  TextEngine engine(*tiny.model, *tiny.ops);
  EXPECT_THROW(engine.generate({{.prompt = {}}}), Error);
  EXPECT_THROW(engine.generate({{.prompt = {448}}}), Error);
  EXPECT_THROW(engine.generate({{.prompt = std::vector<TokenId>(257, 5)}}), Error);
}

TEST(Engine, StopsWhereTheContextEnds) {
  Tiny tiny("tinylm", {Precision::f32});
  const auto made = TextEngine(*tiny.model, *tiny.ops)
                        .generate({{.prompt = std::vector<TokenId>(250, 5), .max_new_tokens = 100}})
                        .front();
  EXPECT_EQ(made.finish_reason, FinishReason::context);
  EXPECT_EQ(made.ids.size(), 7U);  // the last needs no place of its own
}

TEST(Engine, SamplingFollowsItsSeed) {
  Tiny tiny("tinylm", {Precision::f32});
  TextEngine engine(*tiny.model, *tiny.ops);
  const auto draw = [&](std::uint64_t seed) {
    return engine
        .generate(
            {{.prompt = tiny.prompt, .max_new_tokens = 24, .sampling = {.temperature = 1.5, .seed = seed}}})
        .front()
        .ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

}  // namespace
}  // namespace assay
