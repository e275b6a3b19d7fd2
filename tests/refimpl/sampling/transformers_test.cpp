// Laws against transformers' own processors in float64 (data/make_sampling_fixtures.py).
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "refimpl/sampling/sequence_sampler.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

TEST(SamplingFixtures, LawsAreTransformers) {
  const auto document =
      nlohmann::json::parse(test::read_file(test::source_dir() / "data/fixtures/sampling/laws.json"));
  std::size_t cases = 0, rules = 0;
  for (const auto& c : document["cases"]) {
    const nlohmann::json& r = c["rules"];
    const SamplingParams params = {.temperature = r["temperature"],
                                   .top_k = r.value("top_k", std::size_t{0}),
                                   .top_p = r.value("top_p", 1.0),
                                   .min_p = r.value("min_p", 0.0),
                                   .typical_p = r.value("typical_p", 1.0),
                                   .repetition_penalty = r.value("repetition_penalty", 1.0)};
    const std::vector<TokenId> seen = c["seen"];
    const std::vector<double> logits = c["logits"], truth = c["law"];
    const std::vector<double> law = SequenceSampler(params, seen).process(logits);
    ASSERT_EQ(law.size(), truth.size());
    for (std::size_t i = 0; i < law.size(); ++i)
      ASSERT_TRUE(std::abs(law[i] - truth[i]) <= 1e-12) << c.dump() << "\n" << i << ": " << law[i];
    ++cases;
    rules += r.size();
  }
  EXPECT_EQ(cases, 120U);
  EXPECT_GT(rules, 300U);
}

}  // namespace
}  // namespace assay
