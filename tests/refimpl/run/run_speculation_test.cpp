// `assay run` with guesses ahead: the same text, what came of the guesses, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

const fs::path kModels = source_dir() / "data";

ProcessResult guess(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {"run", (kModels / "tinylm").string(), "-p", "Mira had a green goat.", "-n", "24"});
  return assay(arguments);
}
nlohmann::json guessed(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const ProcessResult result = guess(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}
void expect_no(std::vector<std::string> arguments, const std::string& words) {
  const ProcessResult result = guess(std::move(arguments));
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(RunSpeculation, WhoeverGuessesTheTextIsTheSame) {
  const std::string draft = (kModels / "tinylm-bf16").string();
  const std::vector<std::vector<std::string>> ways = {{"--speculate", "lookup"},
                                                      {"--speculate", "mtp", "--draft-tokens", "3"},
                                                      {"--speculate", "--draft-tree", "2,1"},
                                                      {"--draft-model", draft},
                                                      {"--draft-model", draft, "--draft-tree", "3,2,1"}};
  for (const std::vector<std::string>& sampling :
       {std::vector<std::string>(), {"--temperature", "0.9", "--seed", "3", "--repetition-penalty", "1.1"}}) {
    const nlohmann::json plain = guessed(sampling);
    for (std::vector<std::string> way : ways) {
      way.insert(way.end(), sampling.begin(), sampling.end());
      const nlohmann::json document = guessed(way);
      EXPECT_EQ(document["ids"], plain["ids"]) << way[0] << ' ' << way[1];
      const nlohmann::json& speculation = document["speculation"];
      EXPECT_EQ(speculation["rule"], "match");
      EXPECT_LE(speculation["accepted"], speculation["drafted"]);
      if (way[0] == "--speculate" && way[1] == "lookup") continue;
      EXPECT_GT(speculation["positions"][0]["tried"], 0);
      EXPECT_GT(speculation["tokens_a_step"], 1.0);
      EXPECT_GT(speculation["draft_rows"], 0);
    }
  }
}

TEST(RunSpeculation, RejectionSaysGreedyTextsAsTheyAre) {
  const nlohmann::json plain = guessed({});
  const nlohmann::json document =
      guessed({"--draft-model", (kModels / "tinylm-bf16").string(), "--accept", "rejection"});
  EXPECT_EQ(document["ids"], plain["ids"]);
  EXPECT_EQ(document["speculation"]["rule"], "rejection");
  const nlohmann::json drawn = guessed(
      {"--speculate", "--draft-tokens", "2", "--accept", "rejection", "--temperature", "1", "--seed", "7"});
  EXPECT_GT(drawn["speculation"]["alpha"], 0.0);
}

TEST(RunSpeculation, WhatCannotBeIsRefusedInALine) {
  expect_no({"--draft-model", (kModels / "models/llama").string()}, "vocabulary");
  expect_no({"--speculate", "draft"}, "needs a model");
  expect_no({"--draft-tokens", "3"}, "go with --speculate");
  expect_no({"--speculate", "--draft-tree", "3,,1"}, "no shape of a tree");
  expect_no({"--speculate", "--draft-tree", "99,99"}, "a tree of more than");
  expect_no({"--speculate", "lookup", "--draft-tree", "2"}, "a chain");
  const ProcessResult none =
      assay({"run", (kModels / "models/llama").string(), "--tokens", "1,2", "--speculate"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("multi-token prediction"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace assay::test
