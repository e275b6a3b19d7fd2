// Families whose layers keep a state beside keys and values (kin_test.cpp holds what they compute): tokens that are taken
// back, scans in both forms, and layers for multi-token prediction (data/make_prediction_goldens.py).
#include "refimpl/engine/speculate.h"
#include "tests/refimpl/models/golden_run.h"
#include "tests/refimpl/models/made_weights.h"

namespace assay {
namespace {

using test::Runner;

const char* const kHybrids[] = {"falcon_h1", "granitemoehybrid", "kimi_k3", "kimi_linear", "nemotron_h"};
const char* const kPredicting[] = {"qwen3_next", "qwen3_5", "qwen3_5_moe", "nemotron_h"};

struct HybridModel {
  test::TempDir place;
  std::string config;
  std::vector<TokenId> tokens;
  std::string path() const { return place.path().string(); }
};

// body(model, its number) of each variant under data/fixtures/<kind>.
template <class Body>
void each_variant(const std::string& kind, const std::string& family, Body body) {
  const fs::path file = test::source_dir() / "data/fixtures" / kind / (family + ".json");
  const auto entries = nlohmann::json::parse(test::read_file(file));
  ASSERT_EQ(entries.size(), 3U);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    HybridModel model;
    model.config = entries[i]["config"].dump();
    model.tokens = entries[i]["tokens"].get<std::vector<TokenId>>();
    SCOPED_TRACE(model.config);
    test::put_made_model(model.place.path(), model.config);
    body(model, i);
  }
}

TEST(Hybrids, TokensTakenBackNeverWere) {
  for (const char* family : kHybrids) {
    each_variant("kin", family, [](const HybridModel& model, std::size_t) {
      const std::vector<TokenId> begin(model.tokens.begin(), model.tokens.begin() + 4),
          end(model.tokens.begin() + 4, model.tokens.end());
      Runner plain(model.path(), Precision::f32), guessing(model.path(), Precision::f32);
      plain.step(begin);
      guessing.step(begin);
      guessing.step({5, 6, 7});
      guessing.take_back(begin.size());
      EXPECT_EQ(guessing.step(end), plain.step(end));
    });
  }
}

TEST(Hybrids, ChunkedScansSayTheSame) {
  for (const char* family : kHybrids) {
    each_variant("kin", family, [](const HybridModel& model, std::size_t) {
      Runner by_token(model.path(), Precision::f64),
          by_chunk(model.path(), Precision::f64, {.scan = ScanForm::chunked});
      const std::vector<double> said = by_token(model.tokens);
      EXPECT_LE(test::largest_difference(by_chunk(model.tokens), said),
                test::kOfDoubles * test::largest(said));
    });
  }
}

TEST(Hybrids, LatentAttentionIsTheSameAbsorbedAndNaive) {
  each_variant("kin", "kimi_linear", [](const HybridModel& model, std::size_t) {
    Runner absorbed(model.path(), Precision::f64),
        naive(model.path(), Precision::f64, {.mla = MlaForm::naive});
    const std::vector<double> said = absorbed(model.tokens);
    EXPECT_LE(test::largest_difference(naive(model.tokens), said), test::kOfDoubles * test::largest(said));
  });
}

TEST(Hybrids, PredictionLayersSayWhatIsExpected) {
  for (const char* family : kPredicting) {
    const auto stored = test::read_tensors(test::source_dir() / "data/fixtures/prediction" /
                                           (std::string(family) + ".safetensors"));
    each_variant("prediction", family, [&](const HybridModel& model, std::size_t number) {
      const std::vector<double>& truth = stored.at(std::to_string(number)).values;
      Runner run(model.path(), Precision::f64);
      const std::vector<double> drafted = run.draft(model.tokens);
      const std::size_t vocabulary = drafted.size() / (model.tokens.size() - 1);
      std::vector<double> kept;
      for (std::size_t i = 0; i < drafted.size(); ++i) {
        if (i % vocabulary % 3 == 0) kept.push_back(drafted[i]);
      }
      EXPECT_LE(test::largest_difference(kept, truth), test::kOfDoubles * test::largest(truth));
    });
  }
}

// Guesses that were wrong are taken back from the states, too.
TEST(Hybrids, SpeculationWritesTheGreedyText) {
  std::size_t refused = 0;
  for (const char* family : kPredicting) {
    each_variant("prediction", family, [&](const HybridModel& model, std::size_t) {
      constexpr std::size_t kWritten = 12;
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
  }
  EXPECT_GT(refused, 0U);
}

// The code published with the weights bounds steps otherwise than transformers does.
TEST(Hybrids, NemotronsVariantsDiffer) {
  std::size_t differ = 0;
  each_variant("kin", "nemotron_h", [&](const HybridModel& model, std::size_t) {
    Runner theirs(model.path(), Precision::f64),
        published(model.path(), Precision::f64, {.variant = "nvidia"});
    const bool bounded = nlohmann::json::parse(model.config)["time_step_min"] > 0.5;
    const bool same = theirs(model.tokens) == published(model.tokens);
    EXPECT_FALSE(bounded && same);
    differ += same ? 0 : 1;
  });
  EXPECT_GT(differ, 0U);
}

}  // namespace
}  // namespace assay
