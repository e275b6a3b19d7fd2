// What lies where a conversion writes, before, while and after; and what it makes of odd sources.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "convert/destination.h"
#include "convert/partial_folder.h"
#include "tests/convert/convert_support.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

const fs::path kTinylm = test::source_dir() / "data/tinylm-bf16";

// 4 × 4 codes of FP8, a scale for each 2 × 2 of them.
void write_blocks(const fs::path& folder, std::vector<float> scales,
                  std::string codes = std::string(16, '\x38')) {
  test::write_checkpoint(folder,
                         {{"a.weight", ElementType::F8_E4M3, {4, 4}, std::move(codes)},
                          {"a.weight_scale_inv", ElementType::F32, {2, 2}, test::float32_bytes(scales)}},
                         R"({"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 2]}})");
}

TEST(Outputs, AFailureOfTheInputLeavesNothingInTheWay) {
  const TempDir dir;
  write_blocks(dir / "in", {1, 1, NAN, 1});
  const auto failed = assay({"convert", dir / "in", dir / "out", "--to", "bf16"});
  EXPECT_EQ(failed.exit_code, 1) << failed.err;
  EXPECT_FALSE(fs::exists(partial_folder(dir / "out")));
  write_blocks(dir / "in", {1, 1, 1, 1});
  expect_ok(assay({"convert", dir / "in", dir / "out", "--to", "bf16"}));
}

TEST(Outputs, WhatIsLeftUnfinishedIsNamedAndOverwritten) {
  const TempDir dir;
  write_blocks(dir / "in", {1, 1, 1, 1});
  const fs::path left = partial_folder(dir / "out");
  test::write_file(left / "rest", "of an earlier run");
  for (const bool dry : {true, false}) {
    std::vector<std::string> command = {"convert", dir / "in", dir / "out", "--to", "bf16"};
    if (dry) command.emplace_back("--dry-run");
    const auto refused = assay(command);
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find(left.string()), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("--overwrite"), std::string::npos) << refused.err;
  }
  expect_ok(assay({"convert", dir / "in", dir / "out", "--to", "bf16", "--overwrite"}));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_FALSE(fs::exists(dir / "out/rest"));
  // And what it wrote itself: in its place, whole.
  expect_ok(assay({"convert", dir / "in", dir / "out", "--to", "f32", "--overwrite"}));
  EXPECT_EQ(open_checkpoint(dir / "out", 1).tensors.front().type, ElementType::F32);
  EXPECT_EQ(test::contents(dir.path()).count("in/config.json"), 1u);
}

TEST(Outputs, OverwriteSparesWhatNoConversionWrote) {
  const TempDir dir;
  write_blocks(dir / "in", {1, 1, 1, 1});
  test::write_file(dir / "out/thesis.txt", "all of it");
  EXPECT_EQ(assay({"convert", dir / "in", dir / "out", "--to", "bf16", "--overwrite"}).exit_code, 1);
  EXPECT_EQ(test::read_file(dir / "out/thesis.txt"), "all of it");
  EXPECT_EQ(assay({"convert", dir / "in", dir / "in", "--to", "bf16", "--overwrite"}).exit_code, 1);
  EXPECT_TRUE(fs::exists(dir / "in/model.safetensors"));
}

TEST(Outputs, OneRunAtATimeWritesIntoOne) {
  const TempDir dir;
  write_blocks(dir / "in", {1, 1, 1, 1});
  const fs::path busy = partial_folder(dir / "out");
  fs::create_directory(busy);
  const int other = ::open(busy.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_GE(other, 0);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  for (const char* option : {"--resume", "--overwrite"}) {
    const auto refused = assay({"convert", dir / "in", dir / "out", "--to", "bf16", option});
    EXPECT_EQ(refused.exit_code, 1) << refused.out;
    EXPECT_NE(refused.err.find("another conversion"), std::string::npos) << refused.err;
  }
  ::close(other);
  expect_ok(assay({"convert", dir / "in", dir / "out", "--to", "bf16", "--resume"}));
}

// A run that was killed after its last step has left no trace but the output.
TEST(Outputs, ResumingWhatIsFinishedSaysSo) {
  const TempDir dir;
  write_blocks(dir / "in", {1, 2, 1, 1});
  const fs::path llama = test::source_dir() / "data/models/llama/model.safetensors";
  const auto resumed = [&](const fs::path& in, const std::string& out, const std::string& to,
                           std::vector<std::string> more = {}) {
    std::vector<std::string> command = {"convert", in, dir / out, "--to", to, "--resume"};
    if (to.starts_with("gguf:")) command.insert(command.end(), {"--tokenizer-pre", "none"});
    command.insert(command.end(), more.begin(), more.end());
    return assay(command);
  };
  const auto expect_finished = [](const test::ProcessResult& result) {
    expect_ok(result);
    EXPECT_NE(result.out.find("an earlier run had finished this output"), std::string::npos) << result.out;
  };
  const auto expect_refused = [](const test::ProcessResult& result) {
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_NE(result.err.find("exists already"), std::string::npos) << result.err;
  };
  const auto damage = [](const fs::path& file, std::size_t from_end) {
    std::string bytes = test::read_file(file);
    bytes[bytes.size() - from_end] = static_cast<char>(bytes[bytes.size() - from_end] ^ 1);
    test::write_file(file, bytes);
  };
  expect_ok(assay({"convert", dir / "in", dir / "out", "--to", "bf16"}));
  expect_ok(assay({"convert", llama, dir / "cut", "--tp", "2"}));
  expect_ok(resumed(llama, "out.gguf", "gguf:q8_0"));  // nothing is there: it begins
  const auto before = test::contents(dir.path());
  expect_finished(resumed(dir / "in", "out", "bf16"));
  expect_finished(resumed(llama, "cut", "copy", {"--tp", "2"}));
  expect_finished(resumed(llama, "out.gguf", "gguf:q8_0"));
  expect_ok(resumed(llama, "out.gguf", "gguf:q8_0", {"--dry-run"}));
  // What is there is another conversion's, or no longer what it was.
  expect_refused(resumed(dir / "in", "out", "f16"));
  expect_refused(resumed(dir / "in", "out", "f16", {"--dry-run"}));
  expect_refused(resumed(llama, "out.gguf", "gguf:f16"));
  EXPECT_TRUE(test::contents(dir.path()) == before);
  damage(dir / "out/model.safetensors", 1);
  expect_refused(resumed(dir / "in", "out", "bf16"));
  damage(dir / "cut/rank-01/config.json", 2);
  expect_refused(resumed(llama, "cut", "copy", {"--tp", "2"}));
  fs::resize_file(dir / "out.gguf", fs::file_size(dir / "out.gguf") - 1);
  expect_refused(resumed(llama, "out.gguf", "gguf:q8_0"));
}

TEST(Outputs, ADryRunRefusesWhatARunWould) {
  const TempDir dir;
  write_blocks(dir / "in", {1, 2, 1, 1});
  for (const bool dry : {true, false}) {
    std::vector<std::string> merged = {"convert", dir / "in", dir / "out", "--to", "reblock=4x4"};
    std::vector<std::string> small = {"convert", kTinylm, dir / "out", "--to", "f32", "--memory", "1KB"};
    std::vector<std::string> gguf = {"convert",  kTinylm, dir / "out.gguf", "--to", "gguf:q8_0",
                                     "--memory", "1KB"};
    for (auto* command : {&merged, &small, &gguf}) {
      if (dry) command->emplace_back("--dry-run");
      const auto result = assay(*command);
      EXPECT_EQ(result.exit_code, 1) << command->back() << result.out << result.err;
    }
  }
}

// Whose largest values are within float32, and no longer so once they are rounded to the form's codes.
TEST(Outputs, WhatWouldDecodeToInfinityIsRefused) {
  const TempDir dir;
  std::vector<float> values(64, 1.0F);
  values[5] = 3e38F;
  test::write_checkpoint(
      dir / "in",
      {{"model.layers.0.mlp.up_proj.weight", ElementType::F32, {2, 32}, test::float32_bytes(values)}}, "");
  for (const char* to : {"mxfp4", "mxfp8"}) {
    const auto refused = assay({"convert", dir / "in", dir / "out", "--to", to});
    if (refused.exit_code == 0) {  // then it is true
      expect_ok(assay({"convert", dir / "out", dir / "back", "--to", "f32", "--allow-large"}));
      fs::remove_all(dir / "out");
      fs::remove_all(dir / "back");
      continue;
    }
    EXPECT_EQ(refused.exit_code, 1) << to << refused.err;
    EXPECT_NE(refused.err.find("decode to infinity"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(assay({"convert", dir / "in", dir / "out", "--to", "mxfp4"}).exit_code, 1);
}

// Half a step of the smallest scale: there is nothing left of them.
TEST(Outputs, BlocksThatBecomeZerosAreCounted) {
  const TempDir dir;
  std::vector<float> values(64, 1e-42F);
  std::fill(values.begin() + 32, values.end(), 1.0F);
  test::write_checkpoint(
      dir / "in",
      {{"model.layers.0.mlp.up_proj.weight", ElementType::F32, {2, 32}, test::float32_bytes(values)}}, "");
  for (const std::string to : {"int8:channel", "fp8:channel", "mxfp4", "mxfp8"}) {
    const auto made = assay({"convert", dir / "in", dir / to.substr(0, 5), "--to", to, "--json", "-"});
    expect_ok(made);
    EXPECT_NE(made.out.find("\"zero_blocks\": 1"), std::string::npos) << to << made.out;
    fs::remove_all(dir / to.substr(0, 5));
  }
}

// What is copied is held against config.json as strictly as what is converted.
TEST(Outputs, ACopyOfAnotherModelThanItsConfigIsRefused) {
  const TempDir dir;
  fs::copy(kTinylm, dir / "in", fs::copy_options::recursive);
  const std::string config = test::read_file(dir / "in/config.json");
  const std::vector<std::vector<std::string>> all = {
      {"--to", "bf16"}, {"--to", "copy"}, {"--max-shard-size", "1GB"}, {"--tp", "2"}};
  for (const std::string key : {"\"num_hidden_layers\": ", "\"intermediate_size\": "}) {
    std::string more = config;
    const auto at = more.find(key);
    ASSERT_NE(at, std::string::npos);
    more.insert(at + key.size(), "1");  // 3 become 13, 200 become 1200
    test::write_file(dir / "in/config.json", more);
    for (const auto& options : all) {
      std::vector<std::string> command = {"convert", dir / "in", dir / "out"};
      command.insert(command.end(), options.begin(), options.end());
      EXPECT_EQ(assay(command).exit_code, 1) << key << options.back();
      EXPECT_FALSE(fs::exists(dir / "out"));
    }
  }
}

// A reserve in proportion, and what comes along is counted.
TEST(Outputs, RoomIsAskedForWhatIsWritten) {
  const TempDir dir;
  write_blocks(dir / "in", {1, 1, 1, 1});
  test::write_file(dir / "in/tokenizer.json", std::string(3 << 20, ' '));
  const ConversionPlan plan = make_plan(dir / "in", {.to = "bf16"});
  const Space space = check_space(plan, dir / "out");
  EXPECT_EQ(space.needed, plan.file_bytes + (3 << 20) + space.reserve);
  EXPECT_GE(space.reserve, 1u << 20);
  EXPECT_LT(space.reserve, 2u << 20);
}

TEST(Outputs, AShardOfNothingIsRefused) {
  const TempDir dir;
  write_blocks(dir / "in", {1, 1, 1, 1});
  const auto refused = assay({"convert", dir / "in", dir / "out", "--max-shard-size", "0"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--max-shard-size takes"), std::string::npos) << refused.err;
}

TEST(Outputs, WhatIsInThatFormAlreadyIsCopied) {
  const TempDir dir;
  const auto result = assay({"convert", kTinylm, dir / "out", "--to", "bf16"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("already"), std::string::npos) << result.out;
  test::expect_same_tensors(kTinylm, dir / "out");
  write_blocks(dir / "fp8", {1, 1, 1, 1});
  expect_ok(assay({"convert", dir / "fp8", dir / "same", "--to", "reblock=2x2"}));
  EXPECT_EQ(assay({"convert", kTinylm, dir / "none", "--to", "reblock=2x2"}).exit_code, 1);
}

TEST(Outputs, ScalesThatNoQuantizerWritesAreRefused) {
  const TempDir dir;
  for (const char* spec : {"bf16", "int8:channel", "reblock=1x1"}) {
    write_blocks(dir / "in", {1, -1, 1, 1});
    const auto negative = assay({"convert", dir / "in", dir / "out", "--to", spec});
    EXPECT_EQ(negative.exit_code, 1) << spec;
    EXPECT_NE(negative.err.find("a.weight_scale_inv"), std::string::npos) << negative.err;
    write_blocks(dir / "in", {1, 1, 0, 1});
    const auto zero = assay({"convert", dir / "in", dir / "out", "--to", spec});
    EXPECT_EQ(zero.exit_code, 1) << spec;
    EXPECT_NE(zero.err.find("block row 1, column 0 is 0"), std::string::npos) << zero.err;
  }
  // Over zeros a scale of zero is no harm.
  std::string codes(16, '\x38');
  for (const int i : {8, 9, 12, 13}) codes[i] = '\0';
  write_blocks(dir / "in", {1, 1, 0, 1}, codes);
  expect_ok(assay({"convert", dir / "in", dir / "out", "--to", "bf16"}));
}

TEST(Outputs, CacheScalesAreLeftOutAndAdaptersRefused) {
  const TempDir dir;
  write_blocks(dir / "in", {1, 1, 1, 1});
  const std::string config = test::read_file(dir / "in/config.json");
  std::vector<test::TensorBytes> tensors = {
      {"a.weight", ElementType::F8_E4M3, {4, 4}, std::string(16, '\x38')},
      {"a.weight_scale_inv", ElementType::F32, {2, 2}, test::float32_bytes(std::vector<float>(4, 1))},
      {"a.k_scale", ElementType::F32, {}, test::float32_bytes(std::vector<float>(1, 1))}};
  test::write_checkpoint(dir / "in", tensors, config);
  const auto result = assay({"convert", dir / "in", dir / "out", "--to", "bf16"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("key-value cache"), std::string::npos) << result.out;
  EXPECT_EQ(open_checkpoint(dir / "out", 1).tensors.size(), 1u);
  tensors.push_back(
      {"a.lora_A.weight", ElementType::F32, {1, 4}, test::float32_bytes(std::vector<float>(4, 1))});
  test::write_checkpoint(dir / "in", tensors, config);
  const auto adapter = assay({"convert", dir / "in", dir / "merged", "--to", "bf16"});
  EXPECT_EQ(adapter.exit_code, 1) << adapter.out;
  EXPECT_NE(adapter.out.find("a.lora_A.weight"), std::string::npos) << adapter.out;
}

TEST(Outputs, TheGgufTypesAreNamedAsTheyAreAskedFor) {
  const TempDir dir;
  const auto unknown = assay({"convert", kTinylm, dir / "out", "--to", "q4_k_m"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("gguf:q4_k_m"), std::string::npos) << unknown.err;
  const auto odd = assay({"convert", kTinylm, dir / "out", "--to", "gguf:q9"});
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_NE(odd.err.find("gguf:q4_k_m"), std::string::npos) << odd.err;
}

}  // namespace
}  // namespace assay
