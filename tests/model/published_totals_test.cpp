// Totals that other people published, or counted by other means, for real configs.
#include <gtest/gtest.h>

#include "core/model/module_tree.h"
#include "tests/support/support.h"

namespace assay {
namespace {

struct Published {
  const char* config;
  std::uint64_t total;
};

class PublishedTotals : public testing::TestWithParam<Published> {};

TEST_P(PublishedTotals, AreExact) {
  ASSAY_CASE_OR_SKIP(path, fs::path("configs") / (std::string(GetParam().config) + ".json"));
  EXPECT_EQ(count(describe(ModelConfig::read(path))).total, GetParam().total);
}

// ../shared/cases/configs/TOTALS.md, column "computed (main)".
INSTANTIATE_TEST_SUITE_P(Configs, PublishedTotals,
                         testing::Values(Published{"Llama-2-7b-hf", 6'738'415'616},
                                         Published{"Llama-3.1-8B", 8'030'261'248},
                                         Published{"Llama-3.2-1B-Instruct", 1'235'814'400},
                                         Published{"Mistral-7B-Instruct-v0.3", 7'248'023'552}));

}  // namespace
}  // namespace assay
