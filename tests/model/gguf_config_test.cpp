// GGUF metadata read as a config.
#include <gtest/gtest.h>

#include "core/formats/gguf.h"
#include "core/model/derive_tree.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "core/system/file.h"
#include "tests/support/published_config.h"
#include "tests/support/support.h"

namespace assay {
namespace {

gguf::Header header_of(const std::string& architecture,
                       std::vector<std::pair<std::string, std::uint64_t>> numbers,
                       std::vector<std::string> tensors) {
  gguf::Header header;
  header.metadata.push_back({"general.architecture", gguf::ValueType::string, architecture});
  for (const auto& [key, value] : numbers) {
    header.metadata.push_back({architecture + "." + key, gguf::ValueType::u32, value});
  }
  for (std::string& name : tensors) header.tensors.push_back({std::move(name), ElementType::F16, {1}, 0, 2});
  return header;
}

// llama.cpp's LoRAs (general.type adapter) bear the architecture of their model: nothing of it is missing from them.
TEST(GgufConfig, AnAdapterIsNotTheModelItIsFor) {
  gguf::Header header = header_of("llama", {}, {"blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight.lora_b"});
  header.metadata.push_back({"general.type", gguf::ValueType::string, std::string("adapter")});
  const ModelConfig config = ModelConfig::from_gguf(header, "lora.gguf", {});
  EXPECT_FALSE(is_described(config));
  EXPECT_EQ(config.architecture(), "llama adapter");
  std::get<std::string>(header.metadata.back().value) = "model";
  EXPECT_EQ(ModelConfig::from_gguf(header, "model.gguf", {}).architecture(), "llama");
}

// A Checkpoint keeps the tensors itself, those of all parts, and leaves the header without any.
TEST(GgufConfig, KnowsATiedHeadByTheCheckpointsTensors) {
  const gguf::Header header = header_of("llama",
                                        {{"embedding_length", 8},
                                         {"block_count", 1},
                                         {"attention.head_count", 2},
                                         {"feed_forward_length", 16},
                                         {"vocab_size", 10}},
                                        {});
  std::vector<CheckpointTensor> stored(1);
  stored[0].name = "token_embd.weight";
  EXPECT_TRUE(describe(ModelConfig::from_gguf(header, "tied.gguf", stored)).tied_embeddings);
  EXPECT_FALSE(ModelConfig::from_gguf(header, "tied.gguf", stored).quantization());
  stored.emplace_back().name = "output.weight";
  EXPECT_FALSE(describe(ModelConfig::from_gguf(header, "untied.gguf", stored)).tied_embeddings);
}

TEST(GgufConfig, CountsWhatTheFileHolds) {
  ASSAY_CASE_OR_SKIP(path, "models/stories260k/stories260K.gguf");
  const gguf::Header header = gguf::read_header(File::open(path));
  EXPECT_FALSE(ModelConfig::from_gguf(header, path).quantization());
  std::uint64_t stored = 0;
  for (const gguf::Tensor& tensor : header.tensors) stored += element_count(tensor.ne).value();
  EXPECT_EQ(count(describe(ModelConfig::from_gguf(header, path))).total, stored);
}

// Of what is written and not read back that is said, and no other family is suggested.
TEST(GgufConfig, ArchitecturesThatAreOnlyWrittenSaySo) {
  const auto said = [](const char* architecture) {
    try {
      describe(ModelConfig::from_gguf(header_of(architecture, {}, {}), "made.gguf"));
      return std::string("described");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  for (const char* written : {"kimi-k3", "dots3note", "hrm_text", "plamo3"})
    EXPECT_NE(said(written).find("are written here, and not read back"), std::string::npos) << said(written);
  EXPECT_NE(said("dots3note").find("Dots3NoteForCausalLM"), std::string::npos);
  EXPECT_NE(said("dots3note").find("no config.json is made of its keys"), std::string::npos);
  EXPECT_NE(said("mambo").find("architecture \"mambo\" are unknown"), std::string::npos) << said("mambo");
}

// Mixtral-8x7B's numbers in llama.cpp's words must count as its config.json does (TOTALS.md).
TEST(GgufConfig, ALlamaWithExpertsIsMixtral) {
  const auto header = header_of("llama",
                                {{"embedding_length", 4096},
                                 {"block_count", 32},
                                 {"feed_forward_length", 14336},
                                 {"attention.head_count", 32},
                                 {"attention.head_count_kv", 8},
                                 {"vocab_size", 32000},
                                 {"expert_count", 8},
                                 {"expert_used_count", 2}},
                                {"token_embd.weight", "output.weight"});
  const ModuleTree tree = describe(ModelConfig::from_gguf(header, "mixtral.gguf"));
  EXPECT_EQ(tree.family, "mixtral");
  EXPECT_EQ(count(tree).total, 46'702'792'704u);
  EXPECT_EQ(count(tree).active, 12'879'925'248u);
}

TEST(GgufConfig, DeepSeekV3UnderItsMetadata) {
  const auto header = header_of("deepseek2",
                                {{"embedding_length", 7168},
                                 {"block_count", 61},
                                 {"feed_forward_length", 18432},
                                 {"vocab_size", 129280},
                                 {"attention.head_count", 128},
                                 {"attention.head_count_kv", 1},
                                 {"attention.key_length", 576},
                                 {"attention.value_length", 512},
                                 {"attention.key_length_mla", 192},
                                 {"attention.value_length_mla", 128},
                                 {"attention.q_lora_rank", 1536},
                                 {"attention.kv_lora_rank", 512},
                                 {"rope.dimension_count", 64},
                                 {"expert_count", 256},
                                 {"expert_used_count", 8},
                                 {"expert_shared_count", 1},
                                 {"expert_feed_forward_length", 2048},
                                 {"leading_dense_block_count", 3},
                                 {"expert_gating_func", 2}},
                                {"token_embd.weight", "output.weight"});
  const Totals totals = count(describe(ModelConfig::from_gguf(header, "v3.gguf")));
  EXPECT_EQ(totals.total, 671'026'419'200u);
  EXPECT_EQ(totals.active, 37'552'297'472u);
  EXPECT_EQ(totals.mtp_own, 0u);
}

// Counted from metadata as from config.json, which the oracle test holds to transformers.
TEST(GgufConfig, Llama4NamesItsWidthsTheOtherWayRound) {
  const auto header = header_of("llama4",
                                {{"embedding_length", 5120},
                                 {"block_count", 48},
                                 {"feed_forward_length", 16384},
                                 {"vocab_size", 202048},
                                 {"attention.head_count", 40},
                                 {"attention.head_count_kv", 8},
                                 {"attention.key_length", 128},
                                 {"expert_count", 16},
                                 {"expert_used_count", 1},
                                 {"expert_feed_forward_length", 8192},
                                 {"interleave_moe_layer_step", 1}},
                                {"token_embd.weight", "output.weight"});
  const ModuleTree tree = describe(ModelConfig::from_gguf(header, "scout.gguf"));
  const fs::path config = test::published_config("Llama-4-Scout-17B-16E-Instruct");
  EXPECT_EQ(count(tree).total, count(describe(ModelConfig::read(config))).total);
}

TEST(GgufConfig, UnknownArchitecture) {
  EXPECT_THROW(describe(ModelConfig::from_gguf(header_of("not-described", {}, {}), "m.gguf")), Error);
  EXPECT_THROW(ModelConfig::from_gguf(gguf::Header{}, "m.gguf"), Error);
}

}  // namespace
}  // namespace assay
