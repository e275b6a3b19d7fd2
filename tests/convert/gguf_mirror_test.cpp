// Families whose GGUFs are read by the tables that wrote them (core/model/gguf_mirror.h). Their files are the converter's of
// llama.cpp, byte for byte (GgufFamilies.FilesAreLlamaCpps); here each becomes a checkpoint again that would become a file of
// the same keys and tensors, and is computed as the checkpoint is that it was made of.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/formats/gguf_write.h"
#include "core/model/gguf_rules.h"
#include "core/model/module_tree.h"
#include "tests/convert/convert_support.h"
#include "tests/support/made_families.h"
#include "tests/support/paths.h"
#include "tests/support/tensors.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::make_family_model;
using test::TempDir;

const std::string kTokens = "3,17,42,8,25,31,9,50,12,1,28,40";

// Families that are told from no other by their file: another is read, of the same tensors, under other names or of
// another class.
const std::set<std::string> kReadAsOthers = {
    "chatglm",    "glm",   "glm4v",    "glm4v-whole",          "glm4v_moe",        "solar_open",
    "sarvam_moe", "youtu", "kimi_k25", "hunyuan_v1_moe-alpha", "mistral3_mistral4"};

// Families whose files are written and not read back.
const std::set<std::string> kWrittenOnly = {"dots3_note",   "hrm_text",      "kimi_k3",
                                            "kimi_k3-lora", "kimi_k3-mxfp4", "plamo3"};

std::vector<std::string> models() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(test::source_dir() / "data/fixtures/gguf_families")) {
    const std::string name = entry.path().stem();
    if (entry.path().extension() == ".json" && !kReadAsOthers.contains(name) && !kWrittenOnly.contains(name))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

class GgufMirror : public testing::TestWithParam<std::string> {
 protected:
  void make(const std::string& type = "f32") {
    make_family_model(GetParam(), model());
    expect_ok(assay({"convert", model(), file(), "--to", "gguf:" + type, "--tokenizer-pre", "none"}));
  }
  fs::path model() const { return dir_ / "model"; }
  fs::path file() const { return dir_ / "model.gguf"; }
  fs::path back() const { return dir_ / "back/model"; }  // of the same name, which a file has in it
  void convert_back() { expect_ok(assay({"convert", file(), back(), "--to", "f32"})); }

  std::vector<double> logits(const fs::path& of) {
    const fs::path out = dir_ / "logits.safetensors";
    fs::remove(out);
    const auto ran =
        assay({"run", of, "--tokens", kTokens, "-n", "0", "--logits", out, "--precision", "f32"});
    said_ = ran.err;
    return ran.exit_code == 0 ? test::read_tensors(out).at("logits").values : std::vector<double>();
  }

  TempDir dir_;
  std::string said_;
};

// Keys and tensors in their alphabet, and all values. What is said of a tower goes with it: that is another file.
std::string content_of(const fs::path& file) {
  const std::string bytes = test::read_file(file);
  gguf::Header header =
      gguf::parse_header(std::as_bytes(std::span(bytes.data(), bytes.size())), bytes.size(), file);
  std::erase_if(header.metadata,
                [](const gguf::KeyValue& key) { return key.key.ends_with(".n_deepstack_layers"); });
  std::sort(header.metadata.begin(), header.metadata.end(),
            [](const gguf::KeyValue& a, const gguf::KeyValue& b) { return a.key < b.key; });
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const gguf::Tensor& a, const gguf::Tensor& b) { return a.name < b.name; });
  std::string values;
  for (gguf::Tensor& tensor : header.tensors) {
    values += bytes.substr(header.data_offset + tensor.offset, tensor.bytes);
    tensor.offset = 0;
  }
  return gguf::serialize_header(header.metadata, header.tensors, header.alignment) + values;
}

void set_key(const fs::path& file, const gguf::KeyValue& key) {
  const std::string bytes = test::read_file(file);
  const gguf::Header header =
      gguf::parse_header(std::as_bytes(std::span(bytes.data(), bytes.size())), bytes.size(), file);
  std::vector<gguf::KeyValue> metadata = header.metadata;
  gguf::set_value(metadata, key);
  test::write_file(file, gguf::serialize_header(metadata, header.tensors, header.alignment) +
                             bytes.substr(header.data_offset));
}

TEST_P(GgufMirror, BecomesACheckpointOfTheSameFile) {
  make();
  fs::create_directories(back().parent_path());
  convert_back();
  // Falcon-H1's multipliers are in the weights, and Gemma 3n's embedding has rows of zeros behind it.
  if (!GetParam().starts_with("falcon_h1") && GetParam() != "gemma3n") {
    const auto equal = assay({"convert", "--equal", model(), file(), "--drop-mtp"});
    EXPECT_EQ(equal.exit_code, 0) << equal.out << equal.err;
  }
  expect_ok(assay({"convert", back(), dir_ / "again.gguf", "--to", "gguf:f32", "--tokenizer-pre", "none"}));
  EXPECT_TRUE(content_of(file()) == content_of(dir_ / "again.gguf"));
}

TEST_P(GgufMirror, IsComputedAsItsCheckpoint) {
  make();
  const std::vector<double> wanted = logits(model());
  ASSERT_FALSE(wanted.empty()) << said_;
  const std::vector<double> found = logits(file());
  ASSERT_EQ(found.size(), wanted.size()) << said_;
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::fabs(wanted[i]));
    difference = std::max(difference, std::fabs(wanted[i] - found[i]));
  }
  // Multipliers of Falcon-H1 are within the weights, each product rounded once; longrope's factor on attention and
  // MiniMax-01's on residuals are float32 in a file.
  const bool rounded =
      GetParam().starts_with("falcon_h1") || GetParam() == "phi3-longrope" || GetParam() == "minimax_text_01";
  EXPECT_LE(difference, rounded ? 1e-5 * largest : 0);
}

TEST_P(GgufMirror, CountsWhatTheFileHolds) {
  make("bf16");
  const auto counted = assay({"paramcount", file(), "--format", "json"});
  ASSERT_EQ(counted.exit_code, 0) << counted.out << counted.err;
  // llama.cpp knows from which layer on Gemma 3n's share keys and values, and that of a model this small is another.
  if (GetParam() != "gemma3n") {
    EXPECT_EQ(nlohmann::json::parse(counted.out).at("checkpoint").at("difference"), 0) << counted.out;
  }
}

// No memory is spent on what a header says alone.
TEST_P(GgufMirror, RefusesLayersThatNoModelHas) {
  make();
  const std::string bytes = test::read_file(file());
  const auto architecture =
      gguf::parse_header(std::as_bytes(std::span(bytes.data(), bytes.size())), bytes.size(), file())
          .text("general.architecture");
  set_key(file(), gguf::u32_value(std::string(architecture.value()) + ".block_count", UINT32_MAX));
  const auto counted = assay({"paramcount", file()});
  EXPECT_EQ(counted.exit_code, 2) << counted.out << counted.err;
  EXPECT_NE(counted.err.find("no model has so many layers"), std::string::npos) << counted.err;
}

// What a test may be named.
std::string identifier(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, GgufMirror, testing::ValuesIn(models()),
                         [](const auto& info) { return identifier(info.param); });

class GgufWrittenOnly : public testing::TestWithParam<std::string> {};

TEST_P(GgufWrittenOnly, SaysThatItIsNotReadBack) {
  const TempDir dir;
  make_family_model(GetParam(), dir / "model");
  expect_ok(
      assay({"convert", dir / "model", dir / "model.gguf", "--to", "gguf:f32", "--tokenizer-pre", "none"}));
  const auto result = assay({"run", dir / "model.gguf", "--tokens", "1,2", "-n", "0"});
  EXPECT_EQ(result.exit_code, 2) << result.out << result.err;
  EXPECT_NE(result.err.find("not read"), std::string::npos) << result.err;
}

TEST_P(GgufWrittenOnly, IsEqualToWhatItWasMadeOf) {
  const TempDir dir;
  make_family_model(GetParam(), dir / "model");
  const fs::path file = dir / "model.gguf";
  expect_ok(assay({"convert", dir / "model", file, "--to", "gguf:f32", "--tokenizer-pre", "none"}));
  const auto equal = assay({"convert", "--equal", dir / "model", file, "--drop-mtp"});
  EXPECT_EQ(equal.exit_code, 0) << equal.out << equal.err;
  // The last value of the last matrix.
  std::string bytes = test::read_file(file);
  bytes[bytes.size() - 2] = static_cast<char>(bytes[bytes.size() - 2] ^ 0x40);
  test::write_file(file, bytes);
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{dir / "model", file}, {file, dir / "model"}}) {
    const auto other = assay({"convert", "--equal", order[0], order[1], "--drop-mtp"});
    EXPECT_EQ(other.exit_code, 1) << other.out << other.err;
    EXPECT_NE(other.out.find("DIFFERENT: 1 of "), std::string::npos) << other.out;
  }
}

TEST_P(GgufWrittenOnly, TensorsOfOneSideAloneAreNamed) {
  const TempDir dir;
  make_family_model(GetParam(), dir / "model");
  const fs::path file = dir / "model.gguf";
  expect_ok(assay({"convert", dir / "model", file, "--to", "gguf:f32", "--tokenizer-pre", "none"}));
  std::string bytes = test::read_file(file);
  const std::size_t at = bytes.find("token_embd.weight");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 9] = 'x';
  test::write_file(file, bytes);
  const auto equal = assay({"convert", "--equal", dir / "model", file, "--drop-mtp"});
  EXPECT_EQ(equal.exit_code, 1) << equal.out << equal.err;
  EXPECT_NE(equal.out.find("token_embx.weight: only in the second"), std::string::npos) << equal.out;
  EXPECT_NE(equal.out.find("token_embd.weight: only in the first"), std::string::npos) << equal.out;
  EXPECT_NE(equal.out.find("DIFFERENT: 2 of "), std::string::npos) << equal.out;
}

INSTANTIATE_TEST_SUITE_P(Families, GgufWrittenOnly, testing::ValuesIn(kWrittenOnly),
                         [](const auto& info) { return identifier(info.param); });

// Rows that were put in another order are decoded from blocks, as those are that lie as they lay.
TEST(GgufMirrorForms, QuantizedFilesAreComputedAsWhatTheyBecome) {
  for (const std::string name :
       {"qwen3_next", "qwen3_5_moe", "granitemoehybrid", "mamba2", "llama4", "gpt_oss"}) {
    SCOPED_TRACE(name);
    const TempDir dir;
    make_family_model(name, dir / "model");
    expect_ok(assay(
        {"convert", dir / "model", dir / "model.gguf", "--to", "gguf:bf16", "--tokenizer-pre", "none"}));
    expect_ok(assay({"convert", dir / "model.gguf", dir / "back", "--to", "f32"}));  // vectors are float32
    std::vector<std::vector<double>> logits;
    for (const char* of : {"model.gguf", "back"}) {
      const fs::path out = dir / (std::string(of) + ".logits");
      expect_ok(
          assay({"run", dir / of, "--tokens", kTokens, "-n", "0", "--logits", out, "--precision", "f32"}));
      logits.push_back(test::read_tensors(out).at("logits").values);
    }
    EXPECT_EQ(logits[0], logits[1]);
  }
}

// A key whose value no config.json of the family would be written with is an error that names it.
TEST(GgufMirrorKeys, ThatConfigCannotSayAreRefusedByName) {
  const std::pair<std::string, gguf::KeyValue> refused[] = {
      {"qwen3_next", gguf::f32_value("qwen3next.attention.scale", 0.5)},
      {"mamba", gguf::u32_value("mamba.ssm.group_count", 3)},
      {"lfm2_moe", gguf::u32_value("lfm2moe.expert_gating_func", 1)},
      {"nemotron_h", gguf::u32_value("nemotron_h_moe.expert_gating_func", 1)}};
  for (const auto& [name, key] : refused) {
    SCOPED_TRACE(name);
    const TempDir dir;
    make_family_model(name, dir / "model");
    expect_ok(
        assay({"convert", dir / "model", dir / "model.gguf", "--to", "gguf:f32", "--tokenizer-pre", "none"}));
    expect_ok(assay({"paramcount", dir / "model.gguf"}));
    set_key(dir / "model.gguf", key);
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"convert", dir / "model.gguf", dir / "back", "--to", "f32"},
          std::vector<std::string>{"run", dir / "model.gguf", "--tokens", "1,2", "-n", "0"},
          std::vector<std::string>{"paramcount", dir / "model.gguf"}}) {
      const auto result = assay(command);
      EXPECT_EQ(result.exit_code, 2) << command[0] << result.out << result.err;
      EXPECT_NE(result.err.find(key.key + " is "), std::string::npos) << result.err;
    }
  }
}

}  // namespace
}  // namespace assay
