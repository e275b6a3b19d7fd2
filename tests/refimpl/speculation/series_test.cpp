// Modules for multi-token prediction in series: what each says, against transformers; and what the drafter makes of them
// while a text grows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "refimpl/ops/kernel_set.h"
#include "refimpl/speculation/layer_drafter.h"
#include "tests/refimpl/models/golden_run.h"
#include "tests/refimpl/models/made_weights.h"

namespace assay {
namespace {

// Guesses what it is told, and remembers the logits of each depth.
class Told : public AcceptanceRule {
 public:
  Chosen choose(std::span<const double>, std::span<const Guess* const>, const Place&) const override {
    return {};
  }
  std::vector<Guess> pick(std::span<const double> logits, std::size_t, const Place& place) const override {
    said.emplace_back(logits.begin(), logits.end());
    return {{.token = text.at(place.sampler.position())}};
  }
  std::vector<TokenId> text;
  mutable std::vector<std::vector<double>> said;
};

struct Series {
  Series()
      : folder(test::source_dir() / "data/fixtures/prediction_series"),
        golden(test::read_tensors(folder / "logits.safetensors")),
        tokens(golden.at("tokens").values.begin(), golden.at("tokens").values.end()),
        weights(folder, 1),
        ops(reference_kernels().make({Precision::f64}, 1)),
        model(make_model(weights, {})) {}
  std::span<const double> truth(std::size_t module, std::size_t row) const {
    const std::size_t width = model->vocabulary();
    return std::span(golden.at("module." + std::to_string(module)).values).subspan(row * width, width);
  }
  std::filesystem::path folder;
  std::map<std::string, test::Numbers> golden;
  std::vector<TokenId> tokens;
  Weights weights;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<LanguageModel> model;
};

double apart(std::span<const double> a, std::span<const double> b) {
  double worst = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

// As the engine tells it: the prompt in pieces, then a token or a few at a time. Guesses are what the text says.
template <class Truth>
void expect_depths_to_say(const LanguageModel& model, Ops& ops, const std::vector<TokenId>& tokens,
                          std::initializer_list<std::size_t> lengths, const Truth& truth) {
  SequenceCache cache(ops, model.cache_widths(), 64);
  Batch batch;
  batch.add(tokens, cache);
  const Matrix hidden = model.hidden(batch, ops, {});
  const auto drafter = LayerDrafts(model, ops).start();
  Told rule;
  rule.text = tokens;
  const KeyedDraws draws({});
  const TreeShape shape(model.draft_layers(), 1);
  std::size_t seen = 0;
  for (const std::size_t n : lengths) {  // tokens 0 … n are sure
    const std::span<const TokenId> text = std::span(tokens).first(n + 1);
    drafter->see(text, seen, hidden.row_range(seen, n - seen));
    seen = n;
    const SequenceSampler sampler({}, text);
    rule.said.clear();
    const GuessTree tree = drafter->guess({text, shape, rule, {sampler, draws}});
    ASSERT_EQ(tree.size(), shape.size());
    EXPECT_EQ(tree.guesses[0].token, tokens[n + 1]);
    ASSERT_EQ(rule.said.size(), shape.size());
    for (std::size_t m = 0; m < shape.size(); ++m)
      EXPECT_LT(apart(rule.said[m], truth(m, n - 1)), 1e-12) << n << " module " << m;
  }
}

TEST(PredictionSeries, EachDepthSaysWhatItsModuleSays) {
  const Series series;
  ASSERT_EQ(series.model->draft_layers(), 2U);
  expect_depths_to_say(*series.model, *series.ops, series.tokens, {4, 5, 8, 9, 13},
                       [&](std::size_t module, std::size_t row) { return series.truth(module, row); });
}

// Step 3.5, whose modules pass on what stands before their norms. What they say is held to transformers in
// prediction_test.cpp.
TEST(PredictionSeries, EachDepthHasTheHeadOfItsModule) {
  const test::TempDir place;
  const auto entries =
      nlohmann::json::parse(test::read_file(test::source_dir() / "data/fixtures/prediction/step3p7.json"));
  test::put_made_model(place.path(), entries[0]["config"].dump());
  const std::vector<TokenId> tokens = entries[0]["tokens"];
  const std::vector<std::vector<double>> said =
      test::Runner(place.path().string(), Precision::f64).drafts(tokens);
  ASSERT_EQ(said.size(), 3U);
  const Weights weights(place.path(), 1);
  ReferenceOps ops({Precision::f64}, 1);
  const auto model = make_model(weights, {});
  const std::size_t width = model->vocabulary();
  expect_depths_to_say(*model, ops, tokens, {4, 5}, [&](std::size_t module, std::size_t row) {
    return std::span(said[module]).subspan(row * width, width);
  });
}

}  // namespace
}  // namespace assay
