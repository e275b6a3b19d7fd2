// `assay compare dumps` as users run it: our own dumps against what transformers gave
// (data/make_dump_fixtures.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

fs::path data() {
  return test::source_dir() / "data";
}
fs::path fixture(const std::string& name) {
  return data() / "fixtures" / "dumps" / "llama" / name;
}
std::string map_file() {
  return (test::source_dir() / "docs" / "maps" / "transformers.map").string();
}

std::string prompt(const std::string& which) {
  const auto prompts = nlohmann::json::parse(test::read_file(fixture("PROMPTS.json")));
  std::string ids;
  for (const auto& id : prompts[which]) ids += (ids.empty() ? "" : ",") + id.dump();
  return ids;
}

// Our dump of a model of data/models.
fs::path dump(const test::TempDir& folder, const std::string& model, std::vector<std::string> more) {
  const fs::path out = folder / ("ref-" + std::to_string(more.size()) + ".safetensors");
  std::vector<std::string> command = {"run", (data() / "models" / model).string(), "--dump", out.string()};
  command.insert(command.end(), more.begin(), more.end());
  const test::ProcessResult result = test::assay(command);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return out;
}

TEST(CompareDumps, OursAgreesWithTransformers) {
  const test::TempDir folder;
  const fs::path ref = dump(folder, "llama", {"--tokens", prompt("prompt")});
  const test::ProcessResult result = test::assay(
      {"compare", "dumps", ref.string(), fixture("transformers.safetensors").string(), "--map", map_file()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("OK: 27 taps of 11 tokens agree"), std::string::npos) << result.out;
}

TEST(CompareDumps, OneTokenOfAnotherPromptIsFound) {
  const test::TempDir folder;
  std::string other = prompt("prompt");
  other.replace(other.rfind(',') + 1, std::string::npos, "13");
  const fs::path ref = dump(folder, "llama", {"--tokens", other});
  const test::ProcessResult result = test::assay(
      {"compare", "dumps", ref.string(), fixture("transformers.safetensors").string(), "--map", map_file()});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(
      result.out.find("FAILED: different inputs: token 10 is 13 in REF, 12 in TEST; 27 taps of 10 tokens"),
      std::string::npos)
      << result.out;
}

// A BOS that a server adds: what it changes is no fault of the arithmetic. And what it does not change, is
// none at all.
TEST(CompareDumps, ABosTooManyIsSaidFirst) {
  const test::TempDir folder;
  const std::string ids = prompt("prompt");
  const fs::path ref = dump(folder, "llama", {"--tokens", ids});
  const fs::path bos = dump(folder, "llama", {"--tokens", "1," + ids, "-n", "0"});
  const test::ProcessResult result = test::assay({"compare", "dumps", ref.string(), bos.string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(result.out.starts_with("different inputs: TEST has token 1 at 0, which REF lacks\n"))
      << result.out;
  EXPECT_NE(
      result.out.find("FAILED: different inputs: TEST has token 1 at 0, which REF lacks; the numbers part"),
      std::string::npos)
      << result.out;
  const test::ProcessResult embedded =
      test::assay({"compare", "dumps", ref.string(), bos.string(), "--include", "embed"});
  EXPECT_EQ(embedded.exit_code, 0) << embedded.out;
  EXPECT_NE(embedded.out.find("11 tokens of REF and 12 of TEST aligned by content; 1 of TEST left out"),
            std::string::npos)
      << embedded.out;
}

// What is read after the prompt stands behind it: the prompt's own numbers are the same.
TEST(CompareDumps, APromptAloneAgreesWithThePromptGoneOnWith) {
  const test::TempDir folder;
  const std::string ids = prompt("prompt");
  const fs::path ref = dump(folder, "llama", {"--tokens", ids});
  const fs::path more = dump(folder, "llama", {"--tokens", ids, "-n", "4", "--ignore-eos"});
  const test::ProcessResult result =
      test::assay({"compare", "dumps", ref.string(), more.string(), "--exclude", "logits"});
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_NE(result.out.find("3 of TEST left out"), std::string::npos) << result.out;
}

TEST(CompareDumps, ABatchPaddedOnTheLeft) {
  const test::TempDir folder;
  const fs::path ref =
      dump(folder, "llama", {"--tokens", prompt("prompt"), "--tokens", prompt("second"), "-n", "0"});
  const fs::path json = folder / "found.json";
  const test::ProcessResult result = test::assay(
      {"compare", "dumps", ref.string(), fixture("padded.npz").string(), "--json", json.string()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("in another order; 8 of TEST left out"), std::string::npos) << result.out;
  const auto document = nlohmann::json::parse(test::read_file(json));
  EXPECT_EQ(document["schema"], "assay.compare/1");
  EXPECT_EQ(document["verdict"], "ok");
  EXPECT_EQ(document["taps"].size(), 5u);
  EXPECT_EQ(document["taps"][0]["tokens"], 18);
}

TEST(CompareDumps, TablesAndFiles) {
  const test::TempDir folder;
  const fs::path ref = dump(folder, "llama", {"--tokens", prompt("prompt")});
  const fs::path test_dump = dump(folder, "llama", {"--tokens", prompt("prompt"), "--precision", "bf16"});
  const fs::path csv = folder / "a.csv", page = folder / "a.html";
  const test::ProcessResult result =
      test::assay({"compare", "dumps", ref.string(), test_dump.string(), "--csv", csv.string(), "--html",
                   page.string(), "--rtol", "1e-6"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("layers.*.attn_out"), std::string::npos) << result.out;
  const std::string table = test::read_file(csv);
  EXPECT_TRUE(table.starts_with("tap,layer,status,"));
  EXPECT_NE(table.find("\nlayers.2.out,2,FAILED,"), std::string::npos);
  const std::string html = test::read_file(page);
  EXPECT_NE(html.find("<html"), std::string::npos);
  EXPECT_NE(html.find("layers.*.attn_out"), std::string::npos);
  // Derived limits take BF16 for what it is; and its own plain computation is a yardstick that it meets.
  EXPECT_EQ(test::assay({"compare", "dumps", ref.string(), test_dump.string()}).exit_code, 0);
  const test::ProcessResult itself =
      test::assay({"compare", "dumps", ref.string(), test_dump.string(), "--yardstick", test_dump.string()});
  EXPECT_EQ(itself.exit_code, 1);
  EXPECT_NE(itself.out.find("MISTRUSTED: the yardstick and TEST are the same file"), std::string::npos)
      << itself.out;
  const fs::path again = folder / "again.safetensors";
  fs::copy_file(test_dump, again);
  EXPECT_EQ(test::assay({"compare", "dumps", ref.string(), test_dump.string(), "--yardstick", again.string()})
                .exit_code,
            0);
}

TEST(CompareDumps, BadInput) {
  const test::TempDir folder;
  const std::string good = fixture("transformers.safetensors").string();
  test::write_file(folder / "a.npy", "\x93NUMPY");
  test::write_file(folder / "a.npz", "PK");
  test::write_file(folder / "empty" / "readme.txt", "nothing");
  for (const std::string name : {"a.npy", "a.npz", "empty", "absent"}) {
    const test::ProcessResult result = test::assay({"compare", "dumps", good, (folder / name).string()});
    EXPECT_EQ(result.exit_code, 2) << name << result.out;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
  EXPECT_EQ(test::assay({"compare", "dumps", good, good, "--rtol", "1", "--yardstick", good}).exit_code, 2);
  EXPECT_EQ(test::assay({"compare", "dumps", good, good, "--include", "("}).exit_code, 2);
  EXPECT_EQ(test::assay({"compare", "dumps", good, good, "--rtol", "0"}).exit_code, 2);
  EXPECT_EQ(test::assay({"compare", "dumps", good, good, "--html", "/nowhere/page.html"}).exit_code, 2);
  EXPECT_EQ(test::assay({"compare", "dumps", good, good}).exit_code, 1);
}

// The snippet of docs/dumps.md as it stands there.
TEST(CompareDumps, TheSnippetForTransformers) {
  const char* python = std::getenv("ASSAY_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "SKIPPED: ASSAY_PYTHON names no Python with torch and transformers";
  const std::string text = test::read_file(test::source_dir() / "docs" / "dumps.md");
  const std::string mark = "<!-- snippet: transformers -->\n```python\n";
  const std::size_t begin = text.find(mark);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t code = begin + mark.size();
  const test::TempDir folder;
  test::write_file(folder / "dump.py", text.substr(code, text.find("```", code) - code));
  for (const std::string model : {"qwen3"}) {
    const fs::path theirs = folder / (model + ".safetensors");
    const test::ProcessResult ran =
        test::run({python, (folder / "dump.py").string(), (data() / "models" / model).string(), "1,5,9,2,2,7",
                   theirs.string()},
                  {.environment = {"OMP_NUM_THREADS=1"}, .timeout_seconds = 280});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const fs::path ref = dump(folder, model, {"--tokens", "1,5,9,2,2,7"});
    const test::ProcessResult result =
        test::assay({"compare", "dumps", ref.string(), theirs.string(), "--map", map_file()});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_NE(result.out.find("OK: "), std::string::npos) << result.out;
  }
}

}  // namespace
}  // namespace assay
