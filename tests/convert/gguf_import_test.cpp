// What a GGUF says and transformers' files must say too: nothing of it is lost unasked.
#include "core/model/gguf_import.h"

#include <fmt/format.h>

#include "core/model/gguf_tokenizer.h"
#include "core/model/llama3_rope.h"
#include "core/system/json.h"
#include "tests/convert/convert_support.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

using test::assay;
using test::expect_ok;
using test::TempDir;

using test::kData;
const fs::path kBiased = kData / "fixtures/gguf_export/biased/model.safetensors";

void to_f32_gguf(const fs::path& model, const fs::path& out) {
  expect_ok(assay({"convert", model, out, "--to", "gguf:f32", "--tokenizer-pre", "none"}));
}

// The same length, so that no offset moves.
void rename_tensor(const fs::path& gguf, std::string_view from, std::string_view to) {
  ASSERT_EQ(from.size(), to.size());
  std::string bytes = test::read_file(gguf);
  const auto at = bytes.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  bytes.replace(at, from.size(), to);
  test::write_file(gguf, bytes);
}

nlohmann::json config_in(const fs::path& folder) {
  return nlohmann::json::parse(test::read_file(folder / "config.json"));
}

TEST(GgufImport, BiasesAreWrittenAndConfigSaysSo) {
  const TempDir dir;
  to_f32_gguf(kBiased, dir / "model.gguf");
  expect_ok(assay({"convert", dir / "model.gguf", dir / "back", "--to", "bf16"}));
  const auto config = config_in(dir / "back");
  EXPECT_EQ(config.at("attention_bias"), true);
  EXPECT_EQ(config.at("mlp_bias"), true);
  test::expect_same_tensors(kBiased, dir / "back");
}

TEST(GgufImport, WhatHasNoPlaceIsRefusedUnlessAsked) {
  const TempDir dir;
  to_f32_gguf(kBiased, dir / "model.gguf");
  // One bias of three: no Llama of transformers has that.
  for (const char* layer : {"0", "1"}) {
    for (const auto& [from, to] :
         {std::pair("ffn_gate.bias", "ffn_gate.what"), {"ffn_up.bias", "ffn_up.what"}})
      rename_tensor(dir / "model.gguf", fmt::format("blk.{}.{}", layer, from),
                    fmt::format("blk.{}.{}", layer, to));
  }
  const std::vector<std::string> command = {"convert", dir / "model.gguf", dir / "back", "--to", "f32"};
  for (const bool dry : {true, false}) {
    auto refused = command;
    if (dry) refused.emplace_back("--dry-run");
    const auto result = assay(refused);
    EXPECT_EQ(result.exit_code, 1) << result.out << result.err;
    EXPECT_NE(result.err.find("blk.0.ffn_down.bias"), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(dir / "back"));
  }
  auto asked = command;
  asked.emplace_back("--drop-unknown");
  expect_ok(assay(asked));
  // And the comparison names every one of them.
  for (const bool turned : {false, true}) {
    const fs::path a = turned ? dir / "back" : dir / "model.gguf",
                   b = turned ? dir / "model.gguf" : dir / "back";
    const auto equal = assay({"convert", "--equal", a, b});
    EXPECT_EQ(equal.exit_code, 1) << equal.out;
    EXPECT_NE(equal.out.find(fmt::format("blk.1.ffn_down.bias: only in the {}", turned ? "second" : "first")),
              std::string::npos)
        << equal.out;
    EXPECT_NE(equal.out.find("DIFFERENT: 6 of "), std::string::npos) << equal.out;
  }
}

TEST(GgufImport, PredictionLayersThatOnlyOneSideHasAreNamed) {
  const TempDir dir;
  const fs::path model = kData / "models/deepseek-v3/model.safetensors";
  to_f32_gguf(model, dir / "model.gguf");
  const auto equal = assay({"convert", "--equal", model, dir / "model.gguf"});
  EXPECT_EQ(equal.exit_code, 1) << equal.out;
  EXPECT_NE(equal.out.find("multi-token prediction"), std::string::npos) << equal.out;
  expect_ok(assay({"convert", "--equal", model, dir / "model.gguf", "--drop-mtp"}));
}

TEST(GgufImport, Llama3RopeScalingIsRebuilt) {
  for (const fs::path& model : {kBiased, kData / "models/llama/model.safetensors"}) {
    const TempDir dir;
    to_f32_gguf(model, dir / "model.gguf");
    expect_ok(assay({"convert", dir / "model.gguf", dir / "back", "--to", "f32"}));
    const auto wanted = config_in(model.parent_path()).at("rope_scaling");
    const auto found = config_in(dir / "back").at("rope_scaling");
    for (const char* key :
         {"rope_type", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
      EXPECT_EQ(found.at(key), wanted.at(key)) << key << found;
    // Without the scaling the comparison with the GGUF says so.
    auto config = config_in(dir / "back");
    config.erase("rope_scaling");
    test::write_file(dir / "back/config.json", config.dump());
    const auto equal = assay({"convert", "--equal", dir / "back", dir / "model.gguf"});
    EXPECT_EQ(equal.exit_code, 1) << equal.out;
    EXPECT_NE(equal.out.find("rope_freqs.weight: factor"), std::string::npos) << equal.out;
  }
}

TEST(GgufImport, FrequenciesThatFollowNoRuleAreRefused) {
  const TempDir dir;
  to_f32_gguf(kBiased, dir / "model.gguf");
  const gguf::Header header = gguf::read_header(File::open(dir / "model.gguf"));
  std::string bytes = test::read_file(dir / "model.gguf");
  for (const gguf::Tensor& tensor : header.tensors) {
    const float odd = 3.5F;
    if (tensor.name == "rope_freqs.weight") std::memcpy(&bytes[header.data_offset + tensor.offset], &odd, 4);
  }
  test::write_file(dir / "model.gguf", bytes);
  const auto result = assay({"convert", dir / "model.gguf", dir / "back", "--to", "f32"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("rope_freqs.weight"), std::string::npos) << result.err;
}

// Numbers of the published models: Llama 3.1 and 3.2.
TEST(Llama3Rope, FactorsTellTheirNumbers) {
  for (const Llama3Rope& rope :
       {Llama3Rope{8, 1, 4, 8192}, Llama3Rope{32, 1, 4, 8192}, Llama3Rope{4, 1, 4, 32768},
        Llama3Rope{8, 1, 3, 5000}, Llama3Rope{16, 1, 8, 8192}}) {
    for (const std::uint64_t head_dim : {64, 128}) {
      const auto found = llama3_rope_of(llama3_factors(rope, 500000, head_dim), 500000);
      ASSERT_TRUE(found) << rope.factor << " " << rope.original_context;
      EXPECT_EQ(found->factor, rope.factor);
      EXPECT_EQ(found->low_freq_factor, rope.low_freq_factor);
      EXPECT_EQ(found->high_freq_factor, rope.high_freq_factor);
      EXPECT_EQ(found->original_context, rope.original_context);
    }
  }
  // The same rule said with other numbers.
  const auto doubled = llama3_rope_of(llama3_factors({8, 2, 8, 16384}, 500000, 128), 500000);
  ASSERT_TRUE(doubled);
  EXPECT_EQ(doubled->original_context, 8192);
  EXPECT_FALSE(llama3_rope_of(std::vector<float>{1, 2, 1, 8}, 10000));
  EXPECT_FALSE(llama3_rope_of(std::vector<float>{}, 10000));
}

// tokenizer.json of Qwen2 and of DeepSeek-R1-Distill-Qwen.
TEST(GgufImport, QwensTokenizersBringTextToNfc) {
  EXPECT_EQ(normalizer_json("qwen2").at("type"), "NFC");
  EXPECT_EQ(normalizer_json("qwen35").at("type"), "NFC");
  EXPECT_TRUE(normalizer_json("llama-bpe").is_null());
  EXPECT_TRUE(normalizer_json("deepseek-r1-qwen").is_null());
  const ParsedJson cutters = pre_tokenizer_json("deepseek-r1-qwen");
  EXPECT_EQ(cutters, pre_tokenizer_json("qwen2"));
  EXPECT_EQ(pre_tokenizer_name({{"pre_tokenizer", cutters}}), "qwen2");
  EXPECT_EQ(
      pre_tokenizer_name({{"pre_tokenizer", cutters},
                          {"added_tokens", ParsedJson::array({{{"content", "<｜begin▁of▁sentence｜>"}}})}}),
      "deepseek-r1-qwen");
}

}  // namespace
}  // namespace assay
