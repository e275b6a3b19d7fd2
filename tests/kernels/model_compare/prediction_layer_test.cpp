// The layer for multi-token prediction: read beside the model, compared tap by tap, its faults named.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/model_compare/model_compare.h"
#include "kernels/model_compare/model_mutants.h"
#include "kernels/model_compare/passing_ops.h"
#include "kernels/registry/registry.h"
#include "kernels/selection/select.h"
#include "refimpl/ops/reference.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"

namespace assay {
namespace {

using MakeOps = std::function<std::unique_ptr<Ops>(const Arithmetic&, int)>;
MakeOps kernels(const std::string& selection) {
  return [selection](const Arithmetic& arithmetic, int jobs) {
    return select_kernels(builtin_kernels(), selection, arithmetic, jobs);
  };
}

fs::path folder(const std::string& name) {
  return test::source_dir() / "data" / name;
}

ModelCompareRequest request_of(const Weights& reference, const Weights& test, MakeOps make = kernels("cpu")) {
  ModelCompareRequest request = {.reference = {&reference, {Precision::f64}, kernels("reference")},
                                 .test = {&test, {Precision::f32}, std::move(make)},
                                 .options = {},
                                 .tokens = {},
                                 .greedy = 0,
                                 .jobs = 2};
  for (std::size_t i = 0; i < 20; ++i)
    request.tokens.push_back(static_cast<TokenId>((7 * i * i + 3 * i + 2) % 90));
  return request;
}

std::string first_divergence(const ModelComparison& result) {
  return result.first_divergence ? result.taps[*result.first_divergence].name : "none";
}

// What transformers' main model and a layer beside it say of every position (data/README.md), however much of
// the text is read token by token.
TEST(PredictionLayer, SaysTheSameStepByStep) {
  const auto golden = test::read_tensors(folder("models/deepseek-v3/golden/transformers.safetensors"));
  const std::vector<double>& ids = golden.at("tokens").values;
  const std::vector<double>& truth = golden.at("mtp_logits.f64").values;
  const std::vector<TokenId> tokens(ids.begin(), ids.end());
  const Weights weights(folder("models/deepseek-v3"), 1);
  const auto model = make_model(weights, {});
  ReferenceOps ops({Precision::f64}, 1);
  double size = 0;
  for (const double x : truth) size = std::max(size, std::fabs(x));
  for (const std::size_t decode : {0, 1, 5, 23}) {
    const TextLogits said = read_text(*model, ops, {tokens, decode, true}, {});
    ASSERT_EQ(said.draft.size(), truth.size());
    EXPECT_EQ(said.main.size(), truth.size() / (tokens.size() - 1) * tokens.size());
    for (std::size_t i = 0; i < truth.size(); ++i)
      ASSERT_TRUE(std::fabs(said.draft[i] - truth[i]) <= 1e-12 * size) << decode << ": " << i;
  }
  EXPECT_TRUE(read_text(*model, ops, {tokens, 5, false}, {}).draft.empty());
}

TEST(PredictionLayer, IsComparedTapByTap) {
  const Weights weights(folder("models/deepseek-v3"), 1);
  const ModelComparison result = compare_models(request_of(weights, weights));
  EXPECT_EQ(result.status, CaseStatus::passed) << testing::PrintToString(result.reasons);
  std::vector<std::string> kinds;
  for (const TapReport& tap : result.taps) {
    if (tap.place != "mtp.0") continue;
    kinds.push_back(tap.kind);
    EXPECT_GT(tap.local.prefill.elements, 0u) << tap.name;
    EXPECT_EQ(4 * tap.local.prefill.elements, 15 * tap.local.decode.elements) << tap.name;  // 19 rows
  }
  EXPECT_EQ(kinds.front(), "projected");
  EXPECT_EQ(kinds.back(), "logits");
  ASSERT_TRUE(result.draft);
  EXPECT_EQ(result.draft->positions, 19u);
  EXPECT_GT(result.draft->kl_max, 0);
  EXPECT_LT(result.draft->kl_max, 1e-8);
}

// A factor on what one linear of the layer behind the model's three gives.
class InTheDraft : public PassingOps {
 public:
  explicit InTheDraft(std::unique_ptr<Ops> inner, std::string weight)
      : PassingOps(*inner), inner_(std::move(inner)), weight_(std::move(weight)) {}
  using PassingOps::run;
  Matrix run(const LinearCall& call) override {
    const Matrix y = PassingOps::run(call);
    return call.weight && call.weight.name->find(weight_) != std::string::npos ? multiply(y, 1 + 1e-5) : y;
  }

 private:
  std::unique_ptr<Ops> inner_;
  std::string weight_;
};

TEST(PredictionLayer, ItsFaultsAreNamed) {
  const Weights weights(folder("models/deepseek-v3"), 1);
  for (const auto& [weight, tap] : {std::pair{"layers.3.self_attn.o_proj", "mtp.0.attn_out"},
                                    std::pair{"layers.3.eh_proj", "mtp.0.projected"}}) {
    const auto make = [name = weight](const Arithmetic& arithmetic, int jobs) {
      return std::make_unique<InTheDraft>(select_kernels(builtin_kernels(), "cpu", arithmetic, jobs), name);
    };
    const ModelComparison result = compare_models(request_of(weights, weights, make));
    EXPECT_EQ(first_divergence(result), tap);
    EXPECT_EQ(result.logits.same_first, 1);
  }
}

TEST(PredictionLayer, ASideWithoutItIsNoted) {
  const test::TempDir dir;
  const test::ProcessResult made =
      test::assay({"convert", folder("tinylm-bf16"), dir / "out", "--to", "f32", "--drop-mtp"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Weights before(folder("tinylm-bf16"), 1), after(dir / "out", 1);
  const ModelComparison result = compare_models(request_of(before, after));
  EXPECT_EQ(result.status, CaseStatus::passed) << testing::PrintToString(result.reasons);
  EXPECT_FALSE(result.draft);
  EXPECT_NE(testing::PrintToString(result.notes).find("only the reference has a layer for multi-token"),
            std::string::npos);
}

}  // namespace
}  // namespace assay
