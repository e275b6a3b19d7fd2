// Models that see: a known language model within another architecture. Names and shapes of those that are described are
// held to transformers by oracle_test.cpp.
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/model/derive_tree.h"
#include "core/model/module_tree.h"
#include "tests/support/paths.h"

namespace assay {
namespace {

ParsedJson document_of(const std::string& name) {
  return read_json(test::source_dir() / "data" / "fixtures" / "configs" / (name + ".json"));
}

ModuleTree described(const ParsedJson& document) {
  return describe(ModelConfig::from_json(document, "config.json"));
}

bool has(const ModuleTree& tree, const std::string& name) {
  bool found = false;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence&) { found |= spec.name == name; });
  return found;
}

TEST(Sighted, TheLanguageModelIsThatOfItsFamily) {
  const ParsedJson document = document_of("llava");
  const ModuleTree whole = described(document);
  ParsedJson text = document["text_config"];
  text["tie_word_embeddings"] = document["tie_word_embeddings"];
  const ModuleTree alone = described(text);
  EXPECT_EQ(whole.family, alone.family);
  EXPECT_EQ(count(whole).total, count(alone).total);
  EXPECT_EQ(count(whole).active, count(alone).active);
  EXPECT_GT(count(whole).towers, 0U);
  EXPECT_TRUE(has(whole, "language_model.model.norm.weight"));
  EXPECT_TRUE(has(whole, "vision_tower.post_layernorm.weight") || has(whole, "vision_tower.ln_pre.weight"));
  EXPECT_TRUE(std::holds_alternative<Hyperparameters>(whole.read_hyperparameters));
}

TEST(Sighted, AnUnknownOneAroundAKnownLanguageModelIsCountedInPart) {
  ParsedJson document = document_of("llava");
  document["architectures"] = {"NobodyKnowsForConditionalGeneration"};
  document["model_type"] = "nobody_knows";
  const ModuleTree tree = described(document);
  EXPECT_EQ(count(tree).total, count(described(document_of("llava"))).total);
  EXPECT_EQ(count(tree).towers, 0U);
  ASSERT_EQ(tree.not_counted.size(), 1U);
  EXPECT_NE(tree.not_counted[0].what.find("NobodyKnows"), std::string::npos);
  EXPECT_NE(tree.title.find("within NobodyKnows"), std::string::npos);
  // With weights at hand these tell the whole.
  EXPECT_FALSE(is_described(ModelConfig::from_json(document, "config.json")));
  EXPECT_TRUE(is_described(ModelConfig::from_json(document_of("llava"), "config.json")));
}

TEST(Sighted, AnEncoderOfAnotherKindIsTold) {
  ParsedJson document = document_of("llava");
  document["vision_config"]["model_type"] = "radio";
  const ModuleTree tree = described(document);
  EXPECT_EQ(count(tree).towers, 0U);
  ASSERT_EQ(tree.not_counted.size(), 1U);
  EXPECT_NE(tree.not_counted[0].what.find("radio"), std::string::npos);
}

// As Inkling publishes them: beside text_config, which says nothing of them.
TEST(Sighted, LayersForPredictionMayBeToldBesideTheText) {
  ParsedJson document = document_of("inkling_mm_model");
  EXPECT_EQ(count(described(document)).mtp_own, 0U);
  document["mtp_config"] = {{"num_nextn_predict_layers", 2}, {"local_layer_ids", {1}}};
  const ModuleTree beside = described(document);
  EXPECT_GT(count(beside).mtp_own, 0U);
  EXPECT_TRUE(has(beside, "model.mtp.layers.{layer}.transformer_block.attn.wq_du.weight"));
  document["text_config"]["num_mtp_layers"] = 2;
  document["text_config"]["mtp_local_layer_ids"] = {1};
  EXPECT_EQ(count(described(document)).mtp_own, count(beside).mtp_own);
}

// Gates and ups lie row by row in what is published, and so are they cut.
TEST(Sighted, PublishedInklingHasGatesAndUpsInOneTensor) {
  const ModuleTree tree = described(document_of("inkling_mm_model"));
  std::size_t fused = 0;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence&) {
    EXPECT_NE(spec.role, Role::mlp_gate) << spec.name;
    EXPECT_NE(spec.role, Role::mlp_up) << spec.name;
    if (spec.role != Role::mlp_gate_up) return;
    ++fused;
    EXPECT_TRUE(spec.parallel.interleaved) << spec.name;
    ASSERT_EQ(spec.parallel.members.size(), 2U) << spec.name;
    EXPECT_EQ(spec.parallel.members[0].size + spec.parallel.members[1].size,
              spec.shape[spec.parallel.dimension])
        << spec.name;
  });
  EXPECT_GE(fused, 2U);
}

// Most classes ask the document, whatever text_config says; some tie where either does.
TEST(Sighted, EmbeddingsAreTiedAsTheClassHasIt) {
  const auto tied = [](const std::string& name, bool document_says, bool text_says) {
    ParsedJson document = document_of(name);
    document["tie_word_embeddings"] = document_says;
    document["text_config"]["tie_word_embeddings"] = text_says;
    return described(document).tied_embeddings;
  };
  EXPECT_TRUE(tied("llava", true, false));
  EXPECT_FALSE(tied("llava", false, true));
  EXPECT_TRUE(tied("glm4v", true, false));
  EXPECT_TRUE(tied("glm4v", false, true));
  EXPECT_FALSE(tied("glm4v", false, false));
}

// Qwen3VLVisionConfig: [8, 16, 24] where the config does not say; Qwen3.5's class has no such key.
TEST(Sighted, DeepMergersOfQwenAreThereByDefault) {
  ParsedJson document = document_of("qwen3_vl");
  document["vision_config"]["deepstack_visual_indexes"] = {0, 1, 0};
  const std::uint64_t three = count(described(document)).towers;
  document["vision_config"].erase("deepstack_visual_indexes");
  EXPECT_EQ(count(described(document)).towers, three);
  document["vision_config"]["deepstack_visual_indexes"] = ParsedJson::array();
  EXPECT_LT(count(described(document)).towers, three);
}

// The whole of an omni model keeps its thinker behind a prefix, in thinker_config.
TEST(Sighted, TheThinkerOfAnOmniModel) {
  const ParsedJson thinker = document_of("qwen2_5_omni_thinker");
  ParsedJson document = {{"architectures", {"Qwen2_5OmniModel"}},
                         {"model_type", "qwen2_5_omni"},
                         {"thinker_config", thinker},
                         {"tie_word_embeddings", thinker["tie_word_embeddings"]}};
  const ModuleTree whole = described(document), alone = described(thinker);
  EXPECT_EQ(count(whole).total, count(alone).total);
  EXPECT_EQ(count(whole).towers, count(alone).towers);
  EXPECT_EQ(whole.not_counted.size(), 1U);
  for (const char* name : {"thinker.model.layers.{layer}.self_attn.q_proj.weight",
                           "thinker.audio_tower.conv1.weight", "thinker.visual.patch_embed.proj.weight"})
    EXPECT_TRUE(has(whole, name)) << name;
}

// OpenGVLab's own names, of its config with llm_config: no class of transformers has them, OpenGVLab's
// modeling_intern_vit.py and modeling_internvl_chat.py do.
TEST(Sighted, InternVlAsPublished) {
  ParsedJson document = document_of("internvl");
  document["architectures"] = {"InternVLChatModel"};
  document["model_type"] = "internvl_chat";
  document["llm_config"] = document["text_config"];
  document.erase("text_config");
  document["vision_config"] = {{"hidden_size", 32},       {"intermediate_size", 48}, {"num_hidden_layers", 3},
                               {"image_size", 28},        {"patch_size", 14},        {"qkv_bias", false},
                               {"norm_type", "rms_norm"}, {"qk_normalization", true}};
  document["downsample_ratio"] = 0.5;
  const ModuleTree tree = described(document);
  const std::uint64_t h = 32, w = 48, text = tree.hidden_size, in = 4 * h;
  const std::uint64_t block = 3 * h * h + (h * h + h) + 2 * h + 2 * h + 2 * h + (w * h + w) + (h * w + h);
  const std::uint64_t start = h + (h * 3 * 14 * 14 + h) + 5 * h;
  EXPECT_EQ(count(tree).towers, start + 3 * block + 2 * in + (in * text + text) + (text * text + text));
  for (const char* name : {"vision_model.encoder.layers.{layer}.attn.qkv.weight", "mlp1.1.weight",
                           "language_model.model.layers.{layer}.self_attn.q_proj.weight"})
    EXPECT_TRUE(has(tree, name)) << name;
}

}  // namespace
}  // namespace assay
