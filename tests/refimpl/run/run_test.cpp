// `assay run` as its user sees it. Expected numbers: data/tinylm (golden.json, LOSSES.md; the perplexity by
// torch in float32, its logits in double), and the text that llama2.c's own test expects.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/paths.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"

namespace assay::test {
namespace {

const fs::path kData = test::source_dir() / "data";
const std::string kTinylm = (kData / "tinylm").string();

nlohmann::json golden() {
  return nlohmann::json::parse(read_file(kData / "tinylm/golden.json"));
}

ProcessResult run_tiny(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"run", kTinylm});
  return assay(arguments);
}

nlohmann::json document_of(const ProcessResult& result) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

// One line that says what is wrong.
void expect_refused(const ProcessResult& result, const std::string& words) {
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.out, "");
}

// A copy of tinylm with its config changed; tensors that `without` names are renamed away.
fs::path tiny_with(const TempDir& dir, const nlohmann::json& changes, const std::string& without = {}) {
  for (const auto& entry : fs::directory_iterator(kData / "tinylm")) fs::copy(entry.path(), dir.path());
  nlohmann::json config = nlohmann::json::parse(read_file(dir / "config.json"));
  config.merge_patch(changes);
  write_file(dir / "config.json", config.dump());
  if (without.empty()) return dir.path();
  std::string absent = without;
  absent.back() = 'X';
  for (const auto& entry : fs::directory_iterator(dir.path())) {
    std::string bytes = read_file(entry.path());
    const std::size_t at = bytes.find('"' + without + '"');
    if (at == std::string::npos) continue;
    write_file(entry.path(), bytes.replace(at + 1, without.size(), absent));
  }
  return dir.path();
}

TEST(Run, GoesOnWithThePromptAsTorchDoes) {
  const nlohmann::json expected = golden();
  const auto document =
      document_of(run_tiny({"-p", expected["prompt"], "-n", "32", "--ignore-eos", "--json", "-"}));
  EXPECT_EQ(document["schema"], "assay.run/1");
  EXPECT_EQ(document["sequences"][0]["prompt_ids"], expected["prompt_ids"]);
  EXPECT_EQ(document["ids"], expected["tinylm"]["greedy"]);
  EXPECT_EQ(document["text"], expected["tinylm"]["greedy_text"]);
  EXPECT_EQ(document["timing"]["decode_tokens"], 31);
}

TEST(Run, StreamsTheSameTextToStandardOutput) {
  const nlohmann::json expected = golden();
  const ProcessResult result = run_tiny({"-p", expected["prompt"], "-n", "32", "--ignore-eos"});
  EXPECT_EQ(result.out, expected["tinylm"]["greedy_text"].get<std::string>() + "\n");
  EXPECT_NE(result.err.find("tok/s"), std::string::npos);
}

// What one run computed, the next one reads, and says the same; another model's blocks are not its own.
TEST(Run, KeepsWhatItComputedOnDisk) {
  const TempDir dir;
  const std::string cache = (dir / "cache").string();
  std::string list = "1";
  for (int i = 2; i < 70; ++i) list += "," + std::to_string(i % 50);
  const std::vector<std::string> asked = {"--tokens", list, "-n", "6", "--ignore-eos", "--json", "-"};
  const auto plain = document_of(run_tiny(asked));
  std::vector<std::string> cached = asked;
  cached.insert(cached.end(), {"--cache-dir", cache});
  const auto first = document_of(run_tiny(cached)), second = document_of(run_tiny(cached));
  for (const auto& document : {first, second}) {
    EXPECT_EQ(document["ids"], plain["ids"]);
    EXPECT_EQ(document["sequences"][0]["finish_reason"], plain["sequences"][0]["finish_reason"]);
  }
  EXPECT_EQ(first["cache"]["hit_tokens"], 0);
  EXPECT_EQ(second["cache"]["hit_tokens"], 64);
  EXPECT_EQ(second["cache"]["computed_tokens"], 5);
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"--precision", "bf16"}, {"--kernels", "cpu"}, {"--mla", "naive"}}) {
    std::vector<std::string> changed = cached;
    changed.insert(changed.end(), other.begin(), other.end());
    EXPECT_EQ(document_of(run_tiny(changed))["cache"]["hit_tokens"], 0) << other[0];
  }
  const TempDir other;
  const fs::path renormed = tiny_with(other, {{"rms_norm_eps", 1e-3}});
  std::vector<std::string> elsewhere = cached;
  elsewhere.insert(elsewhere.begin(), {"run", renormed.string()});
  EXPECT_EQ(document_of(assay(elsewhere))["cache"]["hit_tokens"], 0);

  for (const auto& file : fs::directory_iterator(cache)) {
    std::string bytes = read_file(file.path());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_file(file.path(), bytes);
  }
  const ProcessResult damaged = run_tiny(cached);
  EXPECT_EQ(document_of(damaged)["ids"], plain["ids"]);
  EXPECT_EQ(document_of(damaged)["notes"].size(), plain.contains("notes") ? plain["notes"].size() + 1 : 1U);
  EXPECT_EQ(document_of(run_tiny(cached))["cache"]["hit_tokens"], 64);

  expect_refused(run_tiny({"--tokens", "1,2", "--cache-bytes", "1GB"}),
                 "--cache-bytes goes with --cache-dir");
  expect_refused(run_tiny({"--tokens", "1,2", "--cache-dir", cache, "-n", "0"}), "texts that are made");
  write_file(dir / "file", "x");
  expect_refused(run_tiny({"--tokens", "1,2", "--cache-dir", (dir / "file").string()}), "folder");
}

// The GGUF, and the folder of safetensors that convert makes of it.
TEST(Run, TheStoryOf260Thousand) {
  ASSAY_CASE_OR_SKIP(folder, "models/stories260k");
  const TempDir dir;
  const std::string gguf = (folder / "stories260K.gguf").string(), converted = (dir / "folder").string();
  ASSERT_EQ(assay({"convert", gguf, converted, "--to", "f32"}).exit_code, 0);
  std::string expected = read_file(folder / "expected_greedy_200.txt");
  while (expected.ends_with('\n')) expected.pop_back();
  for (const std::string& model : {gguf, converted}) {
    const auto document = document_of(assay({"run", model, "-p", "", "-n", "200", "--json", "-"}));
    EXPECT_EQ(document["text"].get<std::string>().substr(0, expected.size()), expected) << model;
  }
}

TEST(Run, PerplexityIsTorchsToFiveDigits) {
  const auto document =
      document_of(run_tiny({"--perplexity", kTinylm + "/heldout.txt", "--by-paragraph", "--json", "-"}));
  EXPECT_EQ(document["perplexity"]["tokens"], 3818);
  EXPECT_NEAR(document["perplexity"]["perplexity"].get<double>(), 1.64529, 0.5e-5);
}

TEST(Run, DivergenceFromItselfIsNone) {
  const TempDir dir;
  write_file(dir / "text.txt", "Mira had a green goat. One day she took the goat to the river.\n");
  const auto same = document_of(
      run_tiny({"--perplexity", (dir / "text.txt").string(), "--kl-from", kTinylm, "--json", "-"}));
  EXPECT_EQ(same["perplexity"]["kl"], 0.0);
  EXPECT_EQ(same["perplexity"]["same_choice"], 1.0);
  const auto other = document_of(run_tiny({"--perplexity", (dir / "text.txt").string(), "--kl-from",
                                           (kData / "tinylm-bf16").string(), "--json", "-"}));
  EXPECT_GT(other["perplexity"]["kl"].get<double>(), 0.0);
  EXPECT_LT(other["perplexity"]["kl"].get<double>(), 0.05);
}

TEST(Run, WritesLogitsOfEveryPosition) {
  const TempDir dir;
  const std::string file = (dir / "logits.safetensors").string();
  const ProcessResult result = run_tiny({"-p", golden()["prompt"], "--logits", file, "--precision", "f64"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Numbers logits = read_tensors(file).at("logits");
  EXPECT_EQ(logits.shape, (std::vector<std::uint64_t>{40, 448}));
  const auto expected = golden()["tinylm"]["last"]["logits_f64"].get<std::vector<double>>();
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(logits.values[39 * 448 + i], expected[i], 5.01e-10) << i;  // written to nine decimals
}

TEST(Run, DumpsTheIntermediatesAskedFor) {
  const TempDir dir;
  const std::string file = (dir / "taps.safetensors").string();
  const ProcessResult result =
      run_tiny({"--tokens", "0,382,302", "--dump", file, "--taps", "layers\\.[01]\\.(attn_norm|out)$"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto taken = read_tensors(file);
  ASSERT_EQ(taken.size(), 5U);
  EXPECT_EQ(taken.at("layers.1.attn_norm").shape, (std::vector<std::uint64_t>{3, 160}));
  EXPECT_EQ(taken.at("input_ids").shape, (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(taken.at("input_ids").values, (std::vector<double>{0, 382, 302}));
}

// Two prompts, read at once and then gone on with token by token.
TEST(Run, DumpsTheTokenOfEachRow) {
  const TempDir dir;
  const std::string file = (dir / "taps.safetensors").string();
  const auto document =
      document_of(run_tiny({"--tokens", "0,382,302", "--tokens", "0,9", "-n", "3", "--ignore-eos", "--dump",
                            file, "--taps", "^(embed|layers\\.0\\.out)$", "--json", "-"}));
  std::vector<double> expected = {0, 382, 302, 0, 9};
  for (std::size_t step = 0; step < 2; ++step) {
    for (const auto& sequence : document["sequences"])
      expected.push_back(sequence["ids"][step].get<double>());
  }
  const auto taken = read_tensors(file);
  EXPECT_EQ(taken.at("input_ids").values, expected);
  const Numbers& embed = taken.at("embed");  // equal tokens, equal rows
  ASSERT_EQ(embed.shape, (std::vector<std::uint64_t>{expected.size(), 160}));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = std::equal(embed.values.begin() + static_cast<std::ptrdiff_t>(160 * i),
                                   embed.values.begin() + static_cast<std::ptrdiff_t>(160 * (i + 1)),
                                   embed.values.begin() + static_cast<std::ptrdiff_t>(160 * j));
      EXPECT_EQ(same, expected[i] == expected[j]) << i << ", " << j;
    }
  }
}

TEST(Run, LogProbabilitiesAreThoseOfTheLogits) {
  const auto document =
      document_of(run_tiny({"-p", golden()["prompt"], "-n", "1", "--logprobs", "5", "--json", "-"}));
  const nlohmann::json& entry = document["sequences"][0]["logprobs"][0];
  const nlohmann::json top = golden()["tinylm"]["last"]["top5"];
  ASSERT_EQ(entry["top"].size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(entry["top"][i]["id"], top[i]["id"]);
    const double difference =
        entry["top"][i]["logprob"].get<double>() - entry["top"][0]["logprob"].get<double>();
    EXPECT_NEAR(difference, top[i]["logit_f64"].get<double>() - top[0]["logit_f64"].get<double>(), 1e-5);
  }
}

TEST(Run, SeveralPromptsAreComputedAsIfAlone) {
  const auto together = document_of(
      run_tiny({"--tokens", "0,382,302", "--tokens", "0,71,16,321,80", "-n", "8", "--json", "-"}));
  const auto alone = document_of(run_tiny({"--tokens", "0,71,16,321,80", "-n", "8", "--json", "-"}));
  ASSERT_EQ(together["sequences"].size(), 2U);
  EXPECT_EQ(together["sequences"][1]["ids"], alone["ids"]);
}

TEST(Run, SpeculationReportsItsAcceptance) {
  const nlohmann::json expected = golden();
  const auto document = document_of(
      run_tiny({"-p", expected["prompt"], "-n", "32", "--ignore-eos", "--speculate", "--json", "-"}));
  EXPECT_EQ(document["ids"], expected["tinylm"]["greedy"]);
  EXPECT_GT(document["speculation"]["acceptance"].get<double>(), 0.5);
}

TEST(Run, ClaimsAreReported) {
  const ProcessResult result = run_tiny({"-p", "Mira had a green goat.", "--claims"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("latent attention absorbed ≡ naive"), std::string::npos);
  EXPECT_NE(result.out.find("blocks evicted to disk and read again ≡ computed"), std::string::npos);
  EXPECT_NE(result.out.find(" claims hold on deepseek_v3"), std::string::npos);
}

TEST(Run, SaysWhatCannotBe) {
  expect_refused(run_tiny({"--tokens", "448"}), "outside the model's vocabulary of 448");
  expect_refused(run_tiny({"--tokens", "1,two"}), "\"two\"");
  expect_refused(run_tiny({}), "no prompt");
  expect_refused(run_tiny({"-p", "a", "--kernels", "abacus"}), "abacus");
  expect_refused(run_tiny({"-p", "a", "--variant", "mine"}), "transformers");
  expect_refused(run_tiny({"-p", "a", "--temperature", "-1"}), "--temperature");
  std::string many = "5";
  for (int i = 0; i < 256; ++i) many += ",5";
  expect_refused(run_tiny({"--tokens", many}), "257 tokens, the model's context is 256");
}

TEST(Run, SaysWhatIsWrongWithTheModel) {
  const auto refuse = [](const nlohmann::json& changes, const std::string& words,
                         const std::string& without = {}) {
    const TempDir dir;
    expect_refused(assay({"run", tiny_with(dir, changes, without).string(), "--tokens", "1"}), words);
  };
  refuse({{"rope_scaling", {{"type", "wobble"}}}}, "rope type \"wobble\" is not known here");
  refuse(nlohmann::json::object(), "model.layers.1.input_layernorm.weight",
         "model.layers.1.input_layernorm.weight");
  refuse({{"rms_norm_eps", "small"}}, "rms_norm_eps is not a number");
  refuse({{"hidden_size", 4000000000}}, "cannot be real");
  refuse({{"rope_theta", -1}}, "rope_theta");
  refuse({{"max_position_embeddings", 0}}, "max_position_embeddings");
  refuse({{"num_experts_per_tok", 8}}, "num_experts_per_tok");
}

TEST(Run, ATokenizerOfAnotherModelIsRefused) {
  ASSAY_CASE_OR_SKIP(other, "tokenizers/hf/phi-2__tokenizer.json");
  const TempDir dir;
  tiny_with(dir, nlohmann::json::object());
  fs::copy_file(other, dir / "tokenizer.json", fs::copy_options::overwrite_existing);
  expect_refused(assay({"run", dir.path().string(), "-p", "a"}), "it is another model's");
  EXPECT_EQ(assay({"run", dir.path().string(), "--tokens", "5", "-n", "1"}).exit_code, 0);
}

TEST(Run, InterruptedItStopsWithItsCode) {
  ASSAY_PROGRAM_OR_SKIP("timeout");
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 100; ++i) text += read_file(kData / "tinylm/heldout.txt") + "\n";
  write_file(dir / "long.txt", text);
  const ProcessResult result =
      run({"timeout", "--preserve-status", "--foreground", "-s", "INT", "2", test::assay_binary(), "run",
           kTinylm, "--perplexity", (dir / "long.txt").string(), "-j", "1"});
  EXPECT_EQ(result.exit_code, 130) << result.err;
}

}  // namespace
}  // namespace assay::test
