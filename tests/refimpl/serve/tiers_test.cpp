// The program serves before a folder of blocks and with smaller caches: what it says is what `assay run` says.
#include <csignal>

#include "tests/refimpl/serve/served_program.h"

namespace assay {
namespace {

using test::Document;
using test::ServedProgram;

const char* kTierPrompt =
    "The river ran past the old mill, and the miller's daughter counted the boats as they went by";

fs::path served_model() {
  return test::source_dir() / "data/tinylm";
}

Document tier_request() {
  return {{"prompt", kTierPrompt}, {"max_tokens", 12}, {"temperature", 0}, {"return_token_ids", true}};
}

Document run_says(std::vector<std::string> options) {
  options.insert(options.begin(), {"run", served_model().string(), "--kernels", "cpu-invariant", "-p",
                                   kTierPrompt, "-n", "12", "--json", "-"});
  const test::ProcessResult result = test::assay(options);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Document::parse(result.out);
}

// A server that ends leaves its blocks to the next one, and to `run`.
TEST(ServedTiers, KnownBeginningsSurviveTheServer) {
  const test::TempDir dir;
  const std::string blocks = (dir / "blocks").string();
  const Document ids = run_says({})["ids"];
  for (const bool first : {true, false}) {
    std::vector<std::string> options = {"--cache-dir", blocks};
    if (!first) options.insert(options.end(), {"--cache-memory", "1MiB", "--cache-dir-bytes", "64MiB"});
    ServedProgram program(served_model(), options);
    EXPECT_EQ(program.complete(tier_request())["choices"][0]["token_ids"], ids);
    const double cached = program.metric("assay_prompt_tokens_cached_total");
    EXPECT_EQ(cached > 0, !first);
    program.signal(SIGTERM);
    EXPECT_EQ(program.wait(20), 130);
  }
  const Document run = run_says({"--cache-dir", blocks});
  EXPECT_EQ(run["ids"], ids);
  EXPECT_GT(run["cache"]["loaded_blocks"], 0);
  EXPECT_GT(run["cache"]["timeline"]["layers"].size(), 0U);
}

TEST(ServedCaches, Int8IsThatOfRun) {
  const ServedProgram program(served_model(), {"--kv-cache", "int8"});
  const Document ids = run_says({"--kv-cache", "int8"})["ids"];
  for (int visit = 0; visit < 2; ++visit)
    EXPECT_EQ(program.complete(tier_request())["choices"][0]["token_ids"], ids);
  EXPECT_GT(program.metric("assay_prompt_tokens_cached_total"), 0);
}

TEST(ServedCaches, OthersAreRefusedInALine) {
  const auto refused = [](const std::vector<std::string>& options, const std::string& words) {
    std::vector<std::string> arguments = {"serve", served_model().string(), "--port", "0"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const test::ProcessResult result = test::assay(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  refused({"--kv-cache", "fp8"}, "texts that are served share blocks");
  refused({"--kv-cache", "h3o"}, "no cache \"h3o\"");
  refused({"--cache-dir-bytes", "1MiB"}, "goes with --cache-dir");
}

}  // namespace
}  // namespace assay
