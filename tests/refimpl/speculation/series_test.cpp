// Modules for multi-token prediction in series: what each says, against transformers; and what the drafter makes of them
// while a text grows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "refimpl/ops/kernel_set.h"
#include "refimpl/speculation/layer_drafter.h"
#include "tests/support/paths.h"
#include "tests/support/tensors.h"

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

// As the engine tells it: the prompt in pieces, then a token or a few at a time.
TEST(PredictionSeries, EachDepthSaysWhatItsModuleSays) {
  const Series series;
  ASSERT_EQ(series.model->draft_layers(), 2U);
  SequenceCache cache(*series.ops, series.model->cache_widths(), 64);
  Batch batch;
  batch.add(series.tokens, cache);
  const Matrix hidden = series.model->hidden(batch, *series.ops, {});
  const auto drafter = LayerDrafts(*series.model, *series.ops).start();
  Told rule;
  rule.text = series.tokens;
  const KeyedDraws draws({});
  const TreeShape shape = {1, 1};
  std::size_t seen = 0;
  for (const std::size_t n : {4, 5, 8, 9, 13}) {  // tokens 0 … n are sure
    const std::span<const TokenId> text = std::span(series.tokens).first(n + 1);
    drafter->see(text, seen, hidden.row_range(seen, n - seen));
    seen = n;
    const SequenceSampler sampler({}, text);
    rule.said.clear();
    const GuessTree tree = drafter->guess({text, shape, rule, {sampler, draws}});
    ASSERT_EQ(tree.size(), 2U);
    EXPECT_EQ(tree.guesses[0].token, series.tokens[n + 1]);
    ASSERT_EQ(rule.said.size(), 2U);
    EXPECT_LT(apart(rule.said[0], series.truth(0, n - 1)), 1e-12) << n;
    EXPECT_LT(apart(rule.said[1], series.truth(1, n - 1)), 1e-12) << n;
  }
}

}  // namespace
}  // namespace assay
