// Expected types: llama-quantize --dry-run's, through data/make_gguf_mix_fixtures.py.
#include "core/model/gguf_mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/system/error.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(line);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

struct Fixture {
  MixModel model;
  std::vector<MixTensor> tensors;
  std::vector<std::string> file_types;
  std::vector<std::vector<std::string>> chosen;  // by tensor, then by file type
};

Fixture read_fixture(const std::string& name) {
  Fixture fixture;
  std::istringstream lines(test::read_file(test::source_dir() / "data/fixtures/mix" / (name + ".tsv")));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> facts = split(line, '\t');
  const auto number = [&](std::size_t i) { return static_cast<std::uint32_t>(std::stoul(facts.at(i))); };
  fixture.model = {facts.at(0), number(1), number(2), number(3), number(4), number(5)};
  std::getline(lines, line);
  const std::vector<std::string> columns = split(line, '\t');
  fixture.file_types.assign(columns.begin() + 3, columns.end());
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = split(line, '\t');
    MixTensor tensor{cells.at(0), {}, *element_type_from_text(cells.at(2))};
    for (const std::string& n : split(cells.at(1), 'x')) tensor.dimensions.push_back(std::stoull(n));
    fixture.tensors.push_back(tensor);
    fixture.chosen.emplace_back(cells.begin() + 3, cells.end());
  }
  return fixture;
}

class GgufMix : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, GgufMix,
                         testing::Values("llama", "llama-grouped", "llama-tied", "llama-70b", "llama-65b",
                                         "qwen2-72b", "mixtral", "qwen3moe", "deepseek2", "ragged", "falcon",
                                         "kept"),
                         [](const auto& test) {
                           std::string label = test.param;
                           std::ranges::replace(label, '-', '_');
                           return label;
                         });

TEST_P(GgufMix, TensorsGetTheTypesOfLlamaQuantize) {
  const Fixture fixture = read_fixture(GetParam());
  ASSERT_GE(fixture.tensors.size(), 10u);
  ASSERT_EQ(fixture.file_types.size(), 20u);
  for (std::size_t column = 0; column < fixture.file_types.size(); ++column) {
    const auto file = gguf_file_type_from_text(fixture.file_types[column]);
    ASSERT_TRUE(file) << fixture.file_types[column];
    const std::vector<ElementType> types = gguf_mix(*file, fixture.model, fixture.tensors);
    for (std::size_t i = 0; i < types.size(); ++i) {
      EXPECT_EQ(name(types[i]), fixture.chosen[i][column])
          << fixture.tensors[i].name << " in " << fixture.file_types[column];
    }
  }
}

TEST_P(GgufMix, TheOrderTensorsComeInDoesNotMatter) {
  const Fixture fixture = read_fixture(GetParam());
  std::vector<MixTensor> shuffled = fixture.tensors;
  std::ranges::shuffle(shuffled, std::mt19937(7));
  const std::vector<ElementType> types = gguf_mix(GgufFileType::Q4_K_M, fixture.model, shuffled);
  const std::vector<ElementType> in_order = gguf_mix(GgufFileType::Q4_K_M, fixture.model, fixture.tensors);
  for (std::size_t i = 0; i < shuffled.size(); ++i) {
    const auto at = std::ranges::find(fixture.tensors, shuffled[i].name, &MixTensor::name);
    EXPECT_EQ(types[i], in_order[static_cast<std::size_t>(at - fixture.tensors.begin())]) << at->name;
  }
  std::ranges::sort(shuffled, gguf_tensor_order, &MixTensor::name);
  for (std::size_t i = 0; i < shuffled.size(); ++i) EXPECT_EQ(shuffled[i].name, fixture.tensors[i].name);
}

// By llama-quant.cpp (llama_tensor_get_type_impl, tensor_type_fallback), not held against the program.
TEST(GgufMixOfFewBits, FollowsLlamaQuant) {
  const MixModel model{.architecture = "llama", .layers = 1, .heads = 8, .heads_kv = 8};
  const std::vector<MixTensor> tensors = {{"token_embd.weight", {256, 8}, ElementType::F32},
                                          {"output.weight", {256, 8}, ElementType::F32},
                                          {"blk.0.attn_q.weight", {256, 8}, ElementType::F32},
                                          {"blk.0.ffn_up.weight", {160, 8}, ElementType::F32}};
  using enum ElementType;
  const auto types = [&](GgufFileType file) { return gguf_mix(file, model, tensors); };
  EXPECT_EQ(types(GgufFileType::TQ1_0), (std::vector{Q4_K, Q6_K, TQ1_0, Q4_0}));
  EXPECT_EQ(types(GgufFileType::TQ2_0), (std::vector{Q4_K, Q6_K, TQ2_0, Q4_0}));
  EXPECT_EQ(types(GgufFileType::Q2_0), (std::vector{Q4_K, Q6_K, Q2_0, Q4_0}));
  EXPECT_THROW((void)types(GgufFileType::Q1_0), Error);  // there is no stand-in for rows of 160
  EXPECT_EQ(gguf_mix(GgufFileType::Q1_0, model, std::span(tensors).first(3)),
            (std::vector{Q1_0, Q6_K, Q1_0}));
}

TEST(GgufFileTypes, AreNumberedAsInLlamaH) {
  EXPECT_EQ(stored_number(GgufFileType::MXFP4), 38u);
  EXPECT_EQ(stored_number(GgufFileType::NVFP4), 39u);
  EXPECT_EQ(static_cast<int>(GgufFileType::Q4_K_M), 15);
  for (const GgufFileType type : gguf_file_types()) EXPECT_EQ(gguf_file_type_from_text(name(type)), type);
  EXPECT_EQ(gguf_file_type_from_text("q4_k"), GgufFileType::Q4_K_M);
  EXPECT_EQ(gguf_file_type_from_text("q5_k_s"), GgufFileType::Q5_K_S);
  EXPECT_FALSE(gguf_file_type_from_text("Q4_K_L"));
  EXPECT_FALSE(gguf_file_type_from_text(""));
}

TEST(GgufMixOfExperts, RefusesANameWithoutAValidLayer) {
  const MixModel model{"llama", 4, 0, 8, 8, 2};
  for (const char* bad : {"blk.4.ffn_down_exps.weight", "blk.99999999999.ffn_down_exps.weight",
                          "blk.-1.ffn_down_exps.weight", "ffn_down_exps.weight"}) {
    const std::vector<MixTensor> tensors{{bad, {256, 2, 8}, ElementType::F16}};
    EXPECT_THROW((void)gguf_mix(GgufFileType::Q4_K_M, model, tensors), Error) << bad;
  }
}

}  // namespace
}  // namespace assay
