// What `assay run` must not pass over in silence.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay::test {
namespace {

const fs::path kData = test::source_dir() / "data";
const std::string kTinylm = (kData / "tinylm").string();

ProcessResult run_tiny(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"run", kTinylm});
  return assay(arguments);
}

void expect_refused(const std::vector<std::string>& arguments, const std::string& words) {
  const ProcessResult result = run_tiny(arguments);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

std::string notes_of(const fs::path& model, std::vector<std::string> options) {
  std::vector<std::string> arguments = {"run", model.string(), "--json", "-"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const ProcessResult result = assay(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json document = nlohmann::json::parse(result.out);
  return document.contains("notes") ? document["notes"].dump() : "";
}

// data/models/NAME under a changed config.
fs::path changed(const TempDir& dir, const std::string& name, const nlohmann::json& changes) {
  nlohmann::json config = nlohmann::json::parse(read_file(kData / "models" / name / "config.json"));
  config.update(changes);
  write_file(dir / "config.json", config.dump());
  fs::copy(kData / "models" / name / "model.safetensors", dir.path());
  return dir.path();
}

TEST(RunNotes, RulesOfDrawingNeedATemperature) {
  expect_refused({"-p", "a", "--top-p", "0.9"}, "--temperature");
  expect_refused({"-p", "a", "--top-k", "5"}, "--temperature");
  expect_refused({"-p", "a", "--min-p", "0.1"}, "--temperature");
  EXPECT_EQ(run_tiny({"-p", "a", "-n", "1", "--top-p", "0.9", "--temperature", "0"}).exit_code, 0);
  EXPECT_EQ(run_tiny({"-p", "a", "-n", "1", "--top-p", "0.9", "--temperature", "1"}).exit_code, 0);
}

TEST(RunNotes, CountsAreNotNegative) {
  expect_refused({"-p", "a", "--seed", "-1"}, "--seed");
  expect_refused({"-p", "a", "--temperature", "1", "--top-k", "-1"}, "--top-k");
  expect_refused({"-p", "a", "--logprobs", "-1"}, "--logprobs");
  EXPECT_EQ(run_tiny({"-p", "a", "-n", "1", "--seed", "18446744073709551615"}).exit_code, 0);
}

TEST(RunNotes, TapsThatMatchNothingAreRefused) {
  const TempDir dir;
  const std::string file = (dir / "taps.safetensors").string();
  expect_refused({"--tokens", "1,2", "--dump", file, "--taps", "layer\\.0"}, "layers.0.attn_norm");
  EXPECT_FALSE(fs::exists(file));
  expect_refused({"--tokens", "1,2", "--taps", "embed"}, "--dump");
}

TEST(RunNotes, TheEndOfTheContextIsTold) {
  EXPECT_NE(notes_of(kTinylm, {"-p", "a", "-n", "300", "--ignore-eos"}).find("context of 256 is full"),
            std::string::npos);
  EXPECT_EQ(notes_of(kTinylm, {"-p", "a", "-n", "3", "--ignore-eos"}), "");
}

TEST(RunNotes, KeysThatNobodyReadsAreTold) {
  const TempDir dir;
  const fs::path model = changed(dir, "mistral", {{"partial_rotary_factor", 0.5}, {"use_cache", false}});
  const std::string notes = notes_of(model, {"--tokens", "1,2", "-n", "1"});
  EXPECT_NE(notes.find("MistralForCausalLM of transformers does not read partial_rotary_factor, nor"),
            std::string::npos)
      << notes;
}

// transformers 5 keeps them apart and says so; its release 4 would have used the embedding.
TEST(RunNotes, AHeadBesideATiedEmbeddingIsTold) {
  const TempDir dir;
  const fs::path model = changed(dir, "mistral", {{"tie_word_embeddings", true}});
  EXPECT_NE(notes_of(model, {"--tokens", "1,2", "-n", "1"}).find("ties the output head"), std::string::npos);
  EXPECT_EQ(notes_of(kData / "models/llama", {"--tokens", "1,2", "-n", "1"}), "");
}

// A process inherits the peak of the one that starts it.
TEST(RunNotes, PeakMemoryIsItsOwn) {
  const std::vector<char> large(std::size_t{600} << 20, 1);
  const ProcessResult result = run_tiny({"--tokens", "1,2", "-n", "1", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto peak = nlohmann::json::parse(result.out)["timing"]["peak_bytes"].get<std::size_t>();
  EXPECT_GT(peak, std::size_t{1} << 20);
  EXPECT_LT(peak, large.size() - (std::size_t{100} << 20));
}

// Gemma 3's token for images, a pad: the tokenizer has an id, the model no row.
TEST(RunNotes, ATokenBeyondTheRowsIsRefusedOnlyWhereItIsUsed) {
  const TempDir dir;
  for (const auto& entry : fs::directory_iterator(kTinylm)) fs::copy(entry.path(), dir.path());
  nlohmann::json tokenizer = nlohmann::json::parse(read_file(dir / "tokenizer.json"));
  nlohmann::json token = tokenizer["added_tokens"][0];
  token["id"] = 448;
  token["content"] = "<image_soft_token>";
  tokenizer["added_tokens"].push_back(token);
  write_file(dir / "tokenizer.json", tokenizer.dump());
  const std::string model = dir.path().string();
  EXPECT_EQ(assay({"run", model, "-p", "Mira", "-n", "1"}).exit_code, 0);
  const ProcessResult refused = assay({"run", model, "-p", "Mira<image_soft_token>", "-n", "1"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("token 448 is outside the model's vocabulary of 448"), std::string::npos)
      << refused.err;
}

}  // namespace
}  // namespace assay::test
