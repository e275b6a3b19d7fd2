// One answer of all who ask what a scale covers: the headers' check against the config (verify, paramcount,
// run, check) and the stored forms (convert, run) take and refuse the same checkpoints.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/formats/json.h"
#include "core/model/reconcile.h"
#include "core/model/scale_grid.h"
#include "core/model/stored_form.h"
#include "tests/support/checkpoints.h"

namespace assay {
namespace {

using enum ElementType;
using test::make_checkpoint;
using test::StoredTensor;

// hidden 256, one layer, MLP 384: one matrix of 384 × 256 is stored in few bits, `codes` and what stands
// beside.
std::vector<StoredTensor> llama_with(const std::vector<StoredTensor>& stored) {
  std::vector<StoredTensor> tensors = {{"model.embed_tokens.weight", BF16, {128, 256}},
                                       {"model.norm.weight", BF16, {256}},
                                       {"lm_head.weight", BF16, {128, 256}}};
  const std::string layer = "model.layers.0.";
  for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
    tensors.push_back({layer + norm + ".weight", BF16, {256}});
  for (const char* matrix : {"q", "k", "v", "o"})
    tensors.push_back({layer + "self_attn." + matrix + "_proj.weight", BF16, {256, 256}});
  tensors.push_back({layer + "mlp.gate_proj.weight", BF16, {384, 256}});
  tensors.push_back({layer + "mlp.down_proj.weight", BF16, {256, 384}});
  for (StoredTensor tensor : stored) {
    tensor.name = layer + "mlp.up_proj." + tensor.name;
    tensors.push_back(tensor);
  }
  return tensors;
}

ModelConfig config_with(const std::string& quantization) {
  const std::string text =
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128,
    "hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 4, "tie_word_embeddings": false)" +
      (quantization.empty() ? "" : ", \"quantization_config\": " + quantization) + "}";
  return ModelConfig::from_json(parse_json(text, "config.json"), "config.json");
}

struct Answers {
  bool reconciled, resolved, warned;
  std::string message;
};
Answers answers(const std::vector<StoredTensor>& stored, const std::string& quantization) {
  const ModelConfig config = config_with(quantization);
  const Checkpoint checkpoint = make_checkpoint(llama_with(stored));
  Findings findings = reconcile(describe(config), config, checkpoint).findings;
  // Whether these are the codes that the config speaks of is another question (said_form_test.cpp).
  std::erase_if(findings, [](const Finding& f) {
    return f.code.starts_with("model.quantization_") || f.code == "stored.form_differs";
  });
  Answers all{!has_errors(findings), find_stored(checkpoint, config.quantization()).findings.empty(), false,
              ""};
  for (const Finding& finding : findings) {
    all.warned |= finding.code == "model.block_undeclared";
    all.message += finding.message + "\n";
  }
  return all;
}

constexpr const char* kSilent = R"({"quant_method": "fp8"})";
constexpr const char* k128 = R"({"quant_method": "fp8", "weight_block_size": [128, 128]})";
constexpr const char* k64 = R"({"quant_method": "fp8", "weight_block_size": [64, 64]})";

TEST(ScaleGrid, EveryGridUnderEveryConfigHasOneAnswer) {
  const std::vector<std::vector<std::uint64_t>> grids = {{3, 2}, {6, 4}, {12, 8},  {2, 1}, {24, 16},
                                                         {1, 1}, {1},    {384, 1}, {384},  {384, 8},
                                                         {3, 3}, {2, 3}, {5, 4},   {7, 4}};
  for (const char* quantization : {"", kSilent, k128, k64}) {
    for (const char* suffix : {"weight_scale_inv", "weight_scale"}) {
      for (const auto& grid : grids) {
        for (const ElementType codes : {F8_E4M3, I8}) {
          const Answers a = answers({{"weight", codes, {384, 256}}, {suffix, F32, grid}}, quantization);
          EXPECT_EQ(a.reconciled, a.resolved) << quantization << ' ' << suffix << " [" << grid.front() << ", "
                                              << grid.back() << "] " << a.message;
        }
      }
    }
  }
}

// Taken, since the grid tells; told, since loaders would take 128x128.
TEST(ScaleGrid, BlocksThatTheConfigDoesNotNameAreTold) {
  const std::vector<StoredTensor> by_64 = {{"weight", F8_E4M3, {384, 256}},
                                           {"weight_scale_inv", F32, {6, 4}}};
  const std::vector<StoredTensor> by_128 = {{"weight", F8_E4M3, {384, 256}},
                                            {"weight_scale_inv", F32, {3, 2}}};
  const Answers silent = answers(by_64, kSilent);
  EXPECT_TRUE(silent.reconciled && silent.resolved && silent.warned) << silent.message;
  EXPECT_NE(silent.message.find("64x64"), std::string::npos) << silent.message;
  EXPECT_EQ(silent.message.find("in 128x128 blocks"), std::string::npos) << "config.json never named them";
  EXPECT_FALSE(answers(by_128, kSilent).warned);
  EXPECT_FALSE(answers(by_64, k64).warned);
  EXPECT_FALSE(answers(by_64, k128).reconciled);
  EXPECT_FALSE(answers(by_64, k128).resolved);
}

std::string int4(std::uint64_t group, const std::string& more = "") {
  return R"({"quant_method": "gptq", "bits": 4, "group_size": )" + std::to_string(group) + more + "}";
}

// 256 inputs: two groups of 128, four of 64.
TEST(ScaleGrid, GroupsOfAnotherSizeThanTheConfigSaysAreRefused) {
  const auto gptq = [](std::uint64_t groups) {
    return std::vector<StoredTensor>{
        {"qweight", I32, {32, 384}}, {"qzeros", I32, {groups, 48}}, {"scales", F16, {groups, 384}}};
  };
  for (const std::uint64_t size : {32, 64, 128}) {
    for (const std::uint64_t groups : {1, 2, 4, 8, 3}) {
      const Answers a = answers(gptq(groups), int4(size));
      EXPECT_EQ(a.reconciled, groups * size == 256) << size << ' ' << groups << ' ' << a.message;
      EXPECT_EQ(a.resolved, a.reconciled) << size << ' ' << groups;
    }
  }
  // Modules that are said to differ, do.
  const Answers apart =
      answers(gptq(4), int4(128, R"(, "dynamic": {"+:.*up_proj": {"bits": 4, "group_size": 64}})"));
  EXPECT_TRUE(apart.reconciled && apart.resolved) << apart.message;
}

std::string pack_quantized(const std::vector<std::string>& schemes) {
  std::string groups;
  for (const std::string& scheme : schemes)
    groups += (groups.empty() ? "" : ", ") + std::string("\"group_") + std::to_string(groups.size()) +
              R"(": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", )" + scheme + "}}";
  return R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {)" + groups +
         "}}";
}

// "channel" is a scale a row; where several schemes stand side by side, one of them it must be.
TEST(ScaleGrid, GroupsOfPackedIntegersAreThoseOfTheirSchemes) {
  const std::string channel = R"("strategy": "channel", "group_size": null)";
  const std::string by_64 = R"("strategy": "group", "group_size": 64)",
                    by_128 = R"("strategy": "group", "group_size": 128)";
  struct Case {
    std::vector<std::string> schemes;
    std::vector<std::uint64_t> groups;  // of 256 inputs, that are taken
  };
  for (const Case& c : {Case{{channel}, {1}}, Case{{by_64}, {4}}, Case{{by_128}, {2}},
                        Case{{by_64, by_128}, {2, 4}}, Case{{channel, by_128}, {1, 2}}}) {
    const auto quantization =
        parse_quantization(parse_json(pack_quantized(c.schemes), "config.json"), "config.json");
    for (const std::uint64_t groups : {1, 2, 4, 8}) {
      const bool wanted = std::find(c.groups.begin(), c.groups.end(), groups) != c.groups.end();
      EXPECT_EQ(group_columns(256, groups, quantization).has_value(), wanted)
          << pack_quantized(c.schemes) << ' ' << groups;
    }
  }
}

}  // namespace
}  // namespace assay
