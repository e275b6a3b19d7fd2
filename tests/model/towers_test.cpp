// Totals that others published for models of 2025 and 2026: the language model, its towers, its prediction layers.
// Published counts of the hub, taken apart by the headers of their checkpoints; the others are those of transformers'
// classes with the routers' biases, which they keep as buffers.
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/file.h"
#include "tests/support/support.h"

namespace assay {
namespace {

struct Counts {
  const char* config;
  std::uint64_t total, towers, mtp;
};

void expect_counts(const Counts& expected, const ModuleTree& tree) {
  SCOPED_TRACE(expected.config);
  const Totals totals = count(tree);
  EXPECT_EQ(totals.total, expected.total);
  EXPECT_EQ(totals.towers, expected.towers);
  EXPECT_EQ(totals.mtp_own, expected.mtp);
  EXPECT_EQ(totals.all(), expected.total + expected.towers + expected.mtp);
}

TEST(Models2026, ArePublishedTotals) {
  ASSAY_CASE_OR_SKIP(configs, "configs");
  const Counts published[] = {
      {"Qwen3.5-27B", 26'895'998'464, 460'730'096, 424'699'392},
      {"Qwen3.5-35B-A3B", 34'660'610'688, 446'571'248, 844'640'768},
      {"Qwen3.6-35B-A3B-NVFP4", 34'660'610'688, 446'571'248, 844'640'768},
      {"GLM-5", 743'911'218'432, 0, 9'952'920'576},
      {"Kimi-K2.5", 1'026'408'232'448, 471'143'920, 0},
      {"DeepSeek-V4-Flash", 284'332'240'471, 0, 6'610'048'891},
      {"MiMo-V2-Flash", 308'778'780'864, 0, 3 * 329'273'408},
      {"Nemotron-3-Nano-30B-A3B-BF16", 31'577'940'288, 0, 0},  // llama.cpp's count
      {"Nemotron-H-56B-Base-8K", 56'324'350'464, 0, 0},
  };
  for (const Counts& expected : published)
    expect_counts(expected, describe(ModelConfig::read(configs / (std::string(expected.config) + ".json"))));
}

// Where only the sum of language model and towers is published.
TEST(Models2026, ArePublishedSums) {
  ASSAY_CASE_OR_SKIP(configs, "configs");
  const std::pair<const char*, std::uint64_t> published[] = {
      {"Qwen3-VL-2B-Instruct", 2'127'532'032}, {"Qwen3-VL-30B-A3B-Instruct", 31'070'754'032},
      {"Kimi-K3", 2'779'931'837'184},          {"MiniMax-M3-NVFP4", 427'040'140'160},
      {"gemma-4-26B-A4B", 25'805'936'206},     {"Llama-3_3-Nemotron-Super-49B-v1", 49'867'145'216},
  };
  for (const auto& [name, all] : published)
    EXPECT_EQ(count(describe(ModelConfig::read(configs / (std::string(name) + ".json")))).all(), all) << name;
}

TEST(Models2026, OfConfigsWrittenDown) {
  const Counts published[] = {
      // Qwen/Qwen3-Next-80B-A3B-Instruct is the class's default
      {R"({"architectures": ["Qwen3NextForCausalLM"]})", 79'674'391'296, 0, 1'650'471'424},
      // meta-llama/Llama-4-Scout-17B-16E: the hub's 108,641,793,536
      {R"({"architectures": ["Llama4ForConditionalGeneration"], "text_config": {"model_type": "llama4_text"},
           "vision_config": {"hidden_size": 1408, "intermediate_size": 5632, "num_hidden_layers": 34,
                             "image_size": 336, "patch_size": 14, "vision_output_dim": 4096}})",
       107'769'861'120, 871'932'416, 0},
      // stepfun-ai/Step-3.5-Flash: the hub's 199,384,301,376
      {R"({"architectures": ["Step3p5ForCausalLM"], "vocab_size": 128896, "hidden_size": 4096,
           "intermediate_size": 11264, "num_hidden_layers": 45, "num_attention_heads": 64,
           "num_attention_groups": 8, "head_dim": 128, "attention_other_setting": {"num_attention_heads": 96},
           "moe_num_experts": 288, "moe_top_k": 8, "moe_intermediate_size": 1280, "share_expert_dim": 1280,
           "num_nextn_predict_layers": 3, "moe_layers_enum": "3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44",
           "layer_types": [)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention",)"
       R"("full_attention","sliding_attention","sliding_attention","sliding_attention"]})",
       196'956'130'368, 0, 3 * 809'390'336ull},
  };
  for (const Counts& expected : published)
    expect_counts(expected, describe(ModelConfig::from_json(parse_json(expected.config, "config.json"),
                                                            "config.json")));
}

// Layers that keep a state have no cache of keys and values, and the other way round.
TEST(Models2026, EachLayerAttendsOrKeepsAState) {
  const ModuleTree tree = describe(ModelConfig::from_json(
      parse_json(R"({"architectures": ["Qwen3NextForCausalLM"]})", "c.json"), "c.json"));
  ASSERT_EQ(tree.attention.size(), 1u);
  ASSERT_EQ(tree.recurrent.size(), 1u);
  EXPECT_EQ(tree.attention[0].layers.size(), 12u);
  EXPECT_EQ(tree.recurrent[0].layers.size(), 36u);
  EXPECT_EQ(tree.recurrent[0].conv_values, 3u * (2 * 16 * 128 + 32 * 128));
  EXPECT_EQ(tree.recurrent[0].state_values, 32u * 128 * 128);
}

TEST(PythonNumbers, AreReadInConfigsAlone) {
  constexpr std::string_view text =
      R"({"a": [0.0, Infinity], "b": -Infinity, "c": NaN, "d": "NaN Infinity \" NaN"})";
  EXPECT_THROW(parse_json(text, "x.json"), Error);
  const ParsedJson read = parse_json(text, "config.json", kPythonJson);
  EXPECT_EQ(read["a"][1], 1e308);
  EXPECT_EQ(read["b"], -1e308);
  EXPECT_EQ(read["d"], "NaN Infinity \" NaN");
  EXPECT_THROW(parse_json(R"({"a": Infinityy})", "config.json", kPythonJson), Error);
}

// A number in a name may be an index or a part of the name.
TEST(TensorLookup, TellsFixedNumbersFromIndices) {
  const ModuleTree tree = describe(ModelConfig::from_json(
      parse_json(
          R"({"architectures": ["Qwen2_5_VLForConditionalGeneration"], "text_config": {"model_type": "qwen2_5_vl_text"},
                     "vision_config": {"depth": 3}})",
          "c.json"),
      "c.json"));
  const TensorLookup lookup(tree);
  EXPECT_TRUE(lookup.find("visual.merger.mlp.0.weight")->tower);
  EXPECT_FALSE(lookup.find("visual.merger.mlp.1.weight"));
  EXPECT_EQ(lookup.find("visual.blocks.2.norm1.weight")->indices.layer, 2u);
  EXPECT_FALSE(lookup.find("visual.blocks.3.norm1.weight"));
}

}  // namespace
}  // namespace assay
