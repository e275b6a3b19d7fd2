// How `assay run` is told to choose tokens and to end its text.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

const std::string kModel = (source_dir() / "data/tinylm").string();

ProcessResult run_model(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"run", kModel, "-p", "The river"});
  return assay(arguments);
}
nlohmann::json answer(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--json", "-"});
  const ProcessResult result = run_model(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}
void expect_usage(std::vector<std::string> arguments, const std::string& words) {
  const ProcessResult result = run_model(std::move(arguments));
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
}

TEST(RunSampling, ASchemaIsHeldUnderEverySeed) {
  const TempDir dir;
  const std::string file = (dir / "person.json").string();
  write_file(file, R"({"type":"object","properties":{"name":{"type":"string","minLength":2,"maxLength":9},
    "age":{"type":"integer","minimum":1,"maximum":99}},"required":["name","age"]})");
  for (int seed = 0; seed < 8; ++seed) {
    const nlohmann::json made =
        answer({"-n", "120", "--temperature", "1.5", "--seed", std::to_string(seed), "--json-schema", file});
    ASSERT_EQ(made["sequences"][0]["finish_reason"], "stop");
    EXPECT_EQ(made["ids"].back(), 1);  // the model's own end
    const auto value = nlohmann::json::parse(made["text"].get<std::string>());
    EXPECT_TRUE(value["name"].is_string() && value["age"].is_number_integer()) << value;
    EXPECT_TRUE(value["age"] >= 1 && value["age"] <= 99) << value;
  }
}

TEST(RunSampling, AGrammarIsHeldInWhatIsShown) {
  const TempDir dir;
  write_file(dir / "g.gbnf", "root ::= \"The quick\" \" brown\"? [ ] (\"fox\" | \"dög\") \".\"\n");
  const std::string file = (dir / "g.gbnf").string();
  for (const std::string temperature : {"0", "2"}) {
    const ProcessResult result = run_model({"-n", "60", "--temperature", temperature, "--grammar", file});
    const std::vector<std::string> all = {"The quick fox.\n", "The quick dög.\n", "The quick brown fox.\n",
                                          "The quick brown dög.\n"};
    EXPECT_NE(std::find(all.begin(), all.end(), result.out), all.end()) << result.out;
  }
}

// "took the" lies in several tokens; nothing of a stop string is ever shown.
TEST(RunSampling, StopStringsEndTheTextWhereverTokensEnd) {
  const std::string whole = answer({"-n", "40"})["text"];
  for (const std::string stop : {"took the", "e", ".", "y he took", "plum"}) {
    const std::size_t at = whole.find(stop);
    ASSERT_NE(at, std::string::npos) << stop;
    const nlohmann::json made = answer({"-n", "40", "--stop", "never there", "--stop", stop});
    EXPECT_EQ(made["text"], whole.substr(0, at)) << stop;
    EXPECT_EQ(made["sequences"][0]["finish_reason"], "stop") << stop;
    EXPECT_LT(made["ids"].size(), 40U) << stop;
    EXPECT_EQ(run_model({"-n", "40", "--stop", stop}).out, whole.substr(0, at) + "\n") << stop;
  }
  EXPECT_EQ(answer({"-n", "40", "--stop", "never there"})["text"], whole);
}

TEST(RunSampling, BiasesAndPenaltiesChangeTheChoice) {
  const nlohmann::json plain = answer({"-n", "24", "--ignore-eos"});
  const std::uint64_t first = plain["ids"][0];
  const auto without = answer({"-n", "24", "--ignore-eos", "--logit-bias", std::to_string(first) + "=-100"});
  EXPECT_NE(without["ids"][0], first);
  EXPECT_EQ(answer({"-n", "3", "--ignore-eos", "--logit-bias", "77=100"})["ids"],
            (nlohmann::json{77, 77, 77}));
  const auto once = answer({"-n", "24", "--ignore-eos", "--presence-penalty", "100"});
  std::vector<int> ids = once["ids"];
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_NE(answer({"-n", "24", "--ignore-eos", "--frequency-penalty", "30"})["ids"], plain["ids"]);
}

TEST(RunSampling, MinTokensHoldsTheEndBack) {
  const auto ends = [](const nlohmann::json& made) { return made["ids"].size(); };
  const nlohmann::json soon = answer({"-n", "30", "--logit-bias", "1=100"});
  EXPECT_EQ(ends(soon), 1U);
  EXPECT_EQ(ends(answer({"-n", "30", "--logit-bias", "1=100", "--min-tokens", "7"})), 8U);
}

// Two prompts as one batch: each text is that of its prompt alone, for numbers belong to positions.
TEST(RunSampling, ANeighbourChangesNoText) {
  const nlohmann::json alone =
      answer({"-n", "20", "--temperature", "1.2", "--seed", "5", "--kernels", "reference"});
  const nlohmann::json beside =
      answer({"-p", "And so it was", "-n", "20", "--temperature", "1.2", "--seed", "5"});
  EXPECT_EQ(beside["sequences"][0]["ids"], alone["ids"]);
}

TEST(RunSampling, WhatCannotBeIsRefused) {
  const TempDir dir;
  write_file(dir / "bad.gbnf", "root ::= root \"a\"\n");
  write_file(dir / "bad.json", R"({"type":"string","contentEncoding":"base64"})");
  const std::string grammar = (dir / "bad.gbnf").string(), schema = (dir / "bad.json").string();
  expect_usage({"--grammar", grammar}, "left recursive");
  expect_usage({"--json-schema", schema}, "'contentEncoding'");
  expect_usage({"--json-schema", schema, "--grammar", grammar}, "exclude");
  expect_usage({"--grammar", (dir / "none").string()}, "none");
  expect_usage({"--logit-bias", "5"}, "ID=VALUE");
  expect_usage({"--logit-bias", "5=x"}, "ID=VALUE");
  expect_usage({"--logit-bias", "448=1"}, "448");
  expect_usage({"--logit-bias", "5=nan"}, "number");
  expect_usage({"--stop", ""}, "empty");
  expect_usage({"--typical-p", "0.5"}, "--temperature");
  expect_usage({"--presence-penalty", "1000"}, "between");
  expect_usage({"--min-tokens", "3", "--ignore-eos"}, "--min-tokens");
}

}  // namespace
}  // namespace assay::test
