// --perplexity in windows. Expected: transformers on the same windows (data/make_tinylm_windows.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

const fs::path kData = test::source_dir() / "data";
const std::string kModel = (kData / "tinylm-bf16").string();

// The first 1,000 letters of the held-out text.
nlohmann::json loss_of(const std::vector<std::string>& options) {
  const TempDir dir;
  write_file(dir / "text.txt", read_file(kData / "tinylm/heldout.txt").substr(0, 1000));
  std::vector<std::string> arguments = {"run",    kModel, "--perplexity", (dir / "text.txt").string(),
                                        "--json", "-"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const ProcessResult result = assay(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out).at("perplexity");
}

void expect_windows(const std::string& kind, std::vector<std::string> options) {
  const nlohmann::json expected =
      nlohmann::json::parse(read_file(kData / "fixtures/perplexity/windows.json"));
  options.insert(options.end(), {"--windows", kind, "--context", expected["context"].dump()});
  const nlohmann::json loss = loss_of(options);
  EXPECT_EQ(loss["tokens"], expected[kind]["tokens"]);
  // Transformers computed it in float32; measured: 1.6e-7 and 1.9e-8 off, in float64 as in float32.
  EXPECT_NEAR(loss["loss"].get<double>(), expected[kind]["loss"].get<double>(), 2e-7);
  EXPECT_EQ(loss["context"], expected["context"]);
}

TEST(RunWindows, AreThoseOfTransformers) {
  expect_windows("transformers", {"--stride", "24"});
}

TEST(RunWindows, AreThoseOfLlamaCpp) {
  expect_windows("llama.cpp", {});
}

// Each token once, however the paragraphs are cut.
TEST(RunWindows, LongParagraphsAreCut) {
  const nlohmann::json whole = loss_of({"--by-paragraph"}),
                       cut = loss_of({"--by-paragraph", "--context", "32"});
  EXPECT_EQ(cut["tokens"], whole["tokens"]);
  EXPECT_GT(cut["windows"].get<int>(), 2 * whole["windows"].get<int>());
  EXPECT_GT(cut["loss"].get<double>(), whole["loss"].get<double>());
}

// Row by row beside the other model, whatever the chunks.
TEST(RunWindows, DivergenceIsTakenInTheSameWindows) {
  const nlohmann::json same = loss_of({"--windows", "llama.cpp", "--context", "64", "--kl-from", kModel});
  EXPECT_EQ(same["kl"], 0.0);
  EXPECT_EQ(same["same_choice"], 1.0);
}

TEST(RunWindows, WhatMakesNoSenseIsRefused) {
  const std::string text = (kData / "tinylm/heldout.txt").string();
  const auto refuse = [](const std::vector<std::string>& options, const std::string& words) {
    std::vector<std::string> arguments = {"run", kModel};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProcessResult result = assay(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  };
  refuse({"--perplexity", text, "--context", "257"}, "the model's context of 256");
  refuse({"--perplexity", text, "--context", "1"}, "--context");
  refuse({"--perplexity", text, "--windows", "transformers"}, "--stride");
  refuse({"--perplexity", text, "--windows", "transformers", "--context", "8", "--stride", "9"}, "--stride");
  refuse({"--perplexity", text, "--stride", "9"}, "--windows transformers");
  refuse({"-p", "a", "--context", "9"}, "--perplexity");
  refuse({"-p", "a", "--by-paragraph"}, "--perplexity");
  const TempDir dir;
  write_file(dir / "short.txt", "Mira had a goat.");
  refuse({"--perplexity", (dir / "short.txt").string(), "--windows", "llama.cpp"}, "two windows");
}

}  // namespace
}  // namespace assay::test
