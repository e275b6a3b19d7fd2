// Encoders of images, and what reads aloud, that came after those of encoder_totals_test.cpp: totals that are published of them,
// what each of their keys does when it is damaged, and DeepSeek-V4 that sees. Names and shapes are oracle_test.cpp's.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"
#include "tests/support/paths.h"
#include "tests/support/support.h"

namespace assay {
namespace {

using test::described;
using test::expect_stored;
using test::tree_of;

std::string resnet(const std::string& sizes) {
  std::string labels;
  for (int i = 0; i < 1000; ++i) labels += (i == 0 ? "\"" : ", \"") + std::to_string(i) + "\": \"x\"";
  return R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "id2label": {)" +
         labels + "}, " + sizes + "}";
}

// microsoft/resnet-*: as torchvision counts those of the same sizes.
TEST(Watchers, OfResNets) {
  EXPECT_EQ(count(described(resnet(R"("depths": [3, 4, 6, 3])"))).all(), 25'557'032U);
  EXPECT_EQ(count(described(resnet(R"("depths": [3, 4, 23, 3])"))).all(), 44'549'160U);
  EXPECT_EQ(count(described(resnet(R"("depths": [3, 8, 36, 3])"))).all(), 60'192'808U);
  const ModuleTree tree = described(resnet(R"("hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2],
      "layer_type": "basic")"));
  EXPECT_EQ(count(tree).all(), 11'689'512U);
  const auto seen =
      TensorLookup(tree).find("resnet.encoder.stages.1.layers.0.shortcut.normalization.running_var");
  ASSERT_TRUE(seen);  // held by checkpoints, and counted by none
  EXPECT_EQ(seen->spec->storage, Storage::buffer);
}

// facebook/mms-tts-eng: 36.3M on the hub.
TEST(Watchers, OfVits) {
  const auto all = count(described(R"({"architectures": ["VitsModel"], "model_type": "vits"})")).all();
  EXPECT_NEAR(static_cast<double>(all), 36.3e6, 0.05e6);
}

// deepseek-ai/DeepSeek-V4-Flash-Vision-Exp: V4-Flash, a bias for images in every layer, and what sees: sums of the shapes
// that vLLM allocates (models/deepseek_v4/common/vision.py), by hand.
TEST(Watchers, OfDeepseekV4ThatSees) {
  const std::string sizes = R"("model_type": "deepseek_v4", "hidden_size": 4096, "vocab_size": 129280,
      "num_hidden_layers": 43, "num_attention_heads": 64, "head_dim": 512, "n_routed_experts": 256,
      "num_experts_per_tok": 6, "moe_intermediate_size": 2048, "num_hash_layers": 3, "num_nextn_predict_layers": 3,
      "dspark_target_layer_ids": [40, 41, 42], "dspark_markov_rank": 256)";
  const std::string sight = R"(, "vision_dim": 1024, "vision_inter_dim": 2816, "vision_n_layers": 32,
      "vision_n_heads": 16, "vision_patch_size": 14, "vision_downsample_ratio": 3)";
  const Totals blind = count(tree_of("DeepseekV4ForCausalLM", sizes));
  for (const char* name : {"DeepseekV4ForCausalLM", "DeepseekV4ForConditionalGeneration"}) {
    const ModuleTree tree = tree_of(name, sizes + sight);
    const Totals seeing = count(tree);
    EXPECT_EQ(seeing.total, blind.total + 43 * 256);
    EXPECT_EQ(seeing.mtp_own, blind.mtp_own + 3 * 256);
    const std::uint64_t layer = 2 * 1024 + (1024 + 1) * 4 * 1024 + 3 * 1024 * 2816;
    const std::uint64_t joined = (9 * 1024 + 1) * 4096 + (4096 + 1) * 4096;
    EXPECT_EQ(seeing.towers, 32 * layer + (588 + 1) * 1024 + 1024 + joined + 4 * 4096);
    expect_stored(tree, "layers.0.ffn.gate.bias_vl", {256});
    expect_stored(tree, "mtp.2.ffn.gate.bias_vl", {256});
    expect_stored(tree, "vision.blocks.31.mlp.w1.weight", {5632, 1024});
    expect_stored(tree, "image_pad", {4096});
  }
  test::expect_refused(
      R"({"architectures": ["DeepseekV4ForCausalLM"], )" + sizes + R"(, "vision_n_layers": 32})",
      "vision_dim");
}

// Whatever stands in place of a value: a tree, or one error that says so.
void expect_no_crash(const ParsedJson& document, const std::string& of) {
  try {
    describe(ModelConfig::from_json(document, "config.json"));
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << of;
  }
}

void damage_each(const ParsedJson& whole, const ParsedJson::json_pointer& at, const std::string& name) {
  const ParsedJson part = whole.at(at);
  if (!part.is_object()) return;
  for (const auto& [key, value] : part.items()) {
    if (value.is_object() && key != "id2label") damage_each(whole, at / key, name);
    for (const char* wrong : {"0", "-1", "1", "1e300", "4294967296", "\"x\"", "[]", "[0, 0]",
                              "[4294967296, 3]", "{}", "null", "true"}) {
      ParsedJson damaged = whole;
      damaged[at / key] = parse_json(wrong, "config.json");
      expect_no_crash(damaged, name + " with " + key + " = " + wrong);
    }
    ParsedJson without = whole;
    without[at].erase(key);
    expect_no_crash(without, name + " without " + key);
  }
}

TEST(Watchers, DamagedConfigsAreRefusedOrTold) {
  for (const char* name : {"ijepa",
                           "vit_msn",
                           "vivit",
                           "timesformer",
                           "vilt",
                           "vitpose",
                           "resnet",
                           "clipseg",
                           "chinese_clip",
                           "dpt",
                           "git",
                           "metaclip_2",
                           "rt_detr",
                           "rt_detr_v2",
                           "vits",
                           "speecht5_hifigan",
                           "cohere_compass_vision",
                           "encoder_decoder",
                           "vision_encoder_decoder",
                           "speech_encoder_decoder",
                           "trocr_decoder",
                           "speech_to_text",
                           "pop2piano",
                           "udop",
                           "idefics",
                           "pi0",
                           "blt",
                           "reformer",
                           "encodec",
                           "musicgen",
                           "musicgen_melody",
                           "bark",
                           "pp_formulanet",
                           "evolla",
                           "moshi_words"}) {
    const std::string path = std::string("data/fixtures/configs/") + name + ".json";
    damage_each(parse_json(test::read_file(test::source_dir() / path), path), ParsedJson::json_pointer(),
                name);
  }
}

TEST(Watchers, WhatDoesNotFitIsRefusedByName) {
  test::expect_refused(R"({"architectures": ["ResNetModel"], "layer_type": "wide"})", "layer_type is wide");
  test::expect_refused(R"({"architectures": ["ResNetModel"], "depths": [1, 2]})", "of different lengths");
  test::expect_refused(R"({"architectures": ["DPTForDepthEstimation"], "is_hybrid": true})", "is_hybrid");
  test::expect_refused(R"({"architectures": ["RTDetrForObjectDetection"], "backbone_config":
      {"model_type": "resnet"}})",
                       "backbone_config");
  test::expect_refused(R"({"architectures": ["VitsModel"], "num_speakers": 9})", "speaker_embedding_size");
  test::expect_refused(R"({"architectures": ["VivitModel"], "tubelet_size": [64, 16, 16]})", "tubelet_size");
  test::expect_refused(R"({"architectures": ["CLIPSegModel"], "text_config": {}})", "vision_config");
  test::expect_refused(R"({"architectures": ["TimesformerModel"], "attention_type": "none"})",
                       "attention_type");
}

}  // namespace
}  // namespace assay
