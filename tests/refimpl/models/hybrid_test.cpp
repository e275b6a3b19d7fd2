// Families whose layers keep a state beside keys and values (kin_test.cpp holds what they compute): tokens that are taken
// back, scans in both forms.
#include "tests/refimpl/models/golden_run.h"
#include "tests/refimpl/models/kin_families.h"
#include "tests/refimpl/models/made_weights.h"

namespace assay {
namespace {

using test::Runner;

const char* const kHybrids[] = {"falcon_h1", "granitemoehybrid", "kimi_k3", "kimi_linear", "nemotron_h"};

struct HybridModel {
  test::TempDir place;
  std::string config;
  std::vector<TokenId> tokens;
  std::string path() const { return place.path().string(); }
};

// body(model) of each variant under data/fixtures/kin.
template <class Body>
void each_variant(const std::string& family, Body body) {
  const fs::path file = test::kin_folder() / (family + ".json");
  const auto entries = nlohmann::json::parse(test::read_file(file));
  ASSERT_EQ(entries.size(), 3U);
  for (const auto& entry : entries) {
    HybridModel model;
    model.config = entry["config"].dump();
    model.tokens = entry["tokens"].get<std::vector<TokenId>>();
    SCOPED_TRACE(model.config);
    test::put_made_model(model.place.path(), model.config);
    body(model);
  }
}

TEST(Hybrids, TokensTakenBackNeverWere) {
  for (const char* family : kHybrids) {
    each_variant(family, [](const HybridModel& model) {
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
    each_variant(family, [](const HybridModel& model) {
      Runner by_token(model.path(), Precision::f64),
          by_chunk(model.path(), Precision::f64, {.scan = ScanForm::chunked});
      const std::vector<double> said = by_token(model.tokens);
      EXPECT_LE(test::largest_difference(by_chunk(model.tokens), said),
                test::kOfDoubles * test::largest(said));
    });
  }
}

TEST(Hybrids, LatentAttentionIsTheSameAbsorbedAndNaive) {
  each_variant("kimi_linear", [](const HybridModel& model) {
    Runner absorbed(model.path(), Precision::f64),
        naive(model.path(), Precision::f64, {.mla = MlaForm::naive});
    const std::vector<double> said = absorbed(model.tokens);
    EXPECT_LE(test::largest_difference(naive(model.tokens), said), test::kOfDoubles * test::largest(said));
  });
}

// The code published with the weights bounds steps otherwise than transformers does.
TEST(Hybrids, NemotronsVariantsDiffer) {
  std::size_t differ = 0;
  each_variant("nemotron_h", [&](const HybridModel& model) {
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
