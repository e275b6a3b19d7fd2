// Dynamic rope over few pairs: its power d / (d - 2) is largest over two, and there is none over one
// (data/make_rope_fixtures.py).
#include <nlohmann/json.hpp>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "refimpl/ops/rope_frequencies.h"
#include "tests/refimpl/models/golden_run.h"

namespace assay {
namespace {

using SortedJson = nlohmann::json;

const SortedJson& fixture() {
  static const SortedJson of_transformers =
      SortedJson::parse(test::read_file(test::source_dir() / "data/fixtures/rope/DYNAMIC.json"));
  return of_transformers;
}

// As the family reads it from a config.json whose heads have so many pairs.
RopeRule rule_over(std::size_t pairs) {
  SortedJson config = SortedJson::parse(test::read_file(test::folder("llama-dynamic") / "config.json"));
  config["hidden_size"] = config["num_attention_heads"].get<std::size_t>() * 2 * pairs;
  config["max_position_embeddings"] = fixture()["context"];
  config["rope_theta"] = fixture()["theta"];
  config["rope_scaling"]["factor"] = fixture()["factor"];
  return hyperparameters(describe(ModelConfig::from_json(config, "config.json"))).ropes.front();
}

TEST(DynamicRope, FrequenciesAreThoseOfTransformers) {
  const auto lengths = fixture()["lengths"].get<std::vector<std::size_t>>();
  for (const std::size_t pairs : {2, 3, 8}) {
    const RopeRule rule = rule_over(pairs);
    EXPECT_EQ(rule.rotary_dim, 2 * pairs);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const auto expected =
          fixture()["inverse_of_pairs"][std::to_string(pairs)][i].get<std::vector<double>>();
      const RopeFrequencies got = rope_frequencies(rule, lengths[i]);
      EXPECT_EQ(got.scale, 1);
      ASSERT_EQ(got.inverse.size(), pairs);
      for (std::size_t pair = 0; pair < pairs; ++pair)
        EXPECT_NEAR(got.inverse[pair], expected[pair], 1e-14 * expected[pair])
            << pairs << " pairs, " << lengths[i] << " tokens";
    }
  }
}

TEST(DynamicRope, OverOnePairIsRefusedAsTransformersDoes) {
  for (const SortedJson& refused : fixture()["inverse_of_pairs"]["1"]) EXPECT_TRUE(refused.is_null());
  try {
    rule_over(1);
    FAIL() << "read";
  } catch (const Error& error) {
    EXPECT_PRED_FORMAT2(testing::IsSubstring, "dynamic rope needs more than one pair", error.what());
  }
}

}  // namespace
}  // namespace assay
