// Layers for multi-token prediction, three odd variants of each family, against decoder layers of transformers with what stands
// around them (data/make_prediction_goldens.py).
#include "refimpl/engine/speculate.h"
#include "tests/refimpl/models/sketches.h"

namespace assay {
namespace {

using test::Runner;

fs::path predictions() {
  return test::source_dir() / "data/fixtures/prediction";
}

struct PredictingModel {
  test::TempDir place;
  nlohmann::json known;  // config, tokens, names of taps
  std::vector<TokenId> tokens;
  std::string path() const { return place.path().string(); }
};

class Prediction : public testing::TestWithParam<std::string> {
 protected:
  // body(model, its number)
  template <class Body>
  void each(Body body) const {
    const auto entries = nlohmann::json::parse(test::read_file(predictions() / (GetParam() + ".json")));
    ASSERT_EQ(entries.size(), 3U);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      PredictingModel model;
      model.known = entries[i];
      model.tokens = entries[i]["tokens"].get<std::vector<TokenId>>();
      SCOPED_TRACE(entries[i]["config"].dump());
      test::put_made_model(model.place.path(), entries[i]["config"].dump());
      body(model, i);
    }
  }
  std::map<std::string, test::Numbers> stored() const {
    return test::read_tensors(predictions() / (GetParam() + ".safetensors"));
  }
};

TEST_P(Prediction, EveryModuleSaysWhatIsExpected) {
  const auto truths = stored();
  each([&](const PredictingModel& model, std::size_t number) {
    Runner run(model.path(), Precision::f64);
    const std::vector<std::vector<double>> said = run.drafts(model.tokens);
    ASSERT_FALSE(said.empty());
    for (std::size_t m = 0; m < said.size(); ++m) {
      const std::string name = m == 0 ? std::to_string(number) : fmt::format("{}.{}", number, m);
      const std::vector<double>& truth = truths.at(name).values;
      EXPECT_LE(test::largest_difference(
                    test::every_third(said[m], said[m].size() / (model.tokens.size() - m - 1)), truth),
                test::kOfDoubles * test::largest(truth))
          << "module " << m;
    }
    EXPECT_FALSE(truths.contains(fmt::format("{}.{}", number, said.size()))) << "a module is left out";
  });
}

TEST_P(Prediction, EveryTapIsWhatIsExpected) {
  const auto truths = stored();
  each([&](const PredictingModel& model, std::size_t number) {
    if (!model.known.contains("taps")) return;
    Runner run(model.path(), Precision::f64);
    run.drafts(model.tokens);
    test::expect_sketches(run.taps(), model.known["taps"].get<std::vector<std::string>>(),
                          truths.at(fmt::format("{}.taps", number)).values);
  });
}

// Guesses that were wrong are taken back: from windows, latents and states too.
TEST_P(Prediction, SpeculationWritesTheGreedyText) {
  constexpr std::size_t kWritten = 12;
  std::size_t refused = 0;
  each([&](const PredictingModel& model, std::size_t) {
    Runner greedy(model.path(), Precision::f32);
    const Weights weights(model.path(), 1);
    ReferenceOps ops({Precision::f32}, 1);
    const auto computed = make_model(weights, {});
    GenerationRequest request;
    request.prompt = model.tokens;
    request.max_new_tokens = kWritten;
    const Speculation speculated = speculate(*computed, ops, request, {});
    EXPECT_EQ(speculated.made.ids, greedy.greedy(model.tokens, kWritten));
    refused += speculated.drafted - speculated.accepted;
  });
  EXPECT_GT(refused, 0U);
}

std::vector<std::string> predicting() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(predictions())) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}
INSTANTIATE_TEST_SUITE_P(Families, Prediction, testing::ValuesIn(predicting()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace assay
