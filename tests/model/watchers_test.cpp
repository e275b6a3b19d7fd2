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

// What tells so many classes.
std::string telling(const std::string& architecture, int classes, const std::string& sizes) {
  std::string labels;
  for (int i = 0; i < classes; ++i) labels += (i == 0 ? "\"" : ", \"") + std::to_string(i) + "\": \"x\"";
  return R"({"architectures": [")" + architecture + R"("], "id2label": {)" + labels + "}, " + sizes + "}";
}
std::string resnet(const std::string& sizes) {
  return telling("ResNetForImageClassification", 1000, R"("model_type": "resnet", )" + sizes);
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

// As torchvision counts mobilenet_v2 and efficientnet_b0, Keras what MobileNet trains, and timm mobilevit_s.
TEST(Watchers, OfNetsForSmallMachines) {
  const auto all = [](const std::string& config) { return count(described(config)).all(); };
  EXPECT_EQ(all(telling("MobileNetV1ForImageClassification", 1000, R"("model_type": "mobilenet_v1")")),
            4'231'976U);
  EXPECT_EQ(all(telling("MobileNetV2ForImageClassification", 1000, R"("model_type": "mobilenet_v2")")),
            3'504'872U);
  EXPECT_EQ(all(telling("EfficientNetForImageClassification", 1000, R"("model_type": "efficientnet",
      "width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280)")),
            5'288'548U);
  EXPECT_EQ(all(telling("MobileViTForImageClassification", 1000, R"("model_type": "mobilevit")")),
            5'578'632U);
}

// facebook/detr-resnet-50: 41,302,368 are trained, as its authors' log says (facebookresearch/detr); the backbone's first
// convolutions (222,400) and norms (53,120) are not.
TEST(Watchers, OfDetr) {
  const ModuleTree tree = described(telling("DetrForObjectDetection", 91, R"("model_type": "detr",
      "use_timm_backbone": true, "backbone": "resnet50")"));
  EXPECT_EQ(count(tree).all(), 41'302'368U + 222'400U + 53'120U);
  expect_stored(tree, "model.backbone.conv_encoder.model.layer4.0.downsample.0.weight", {2048, 1024, 1, 1});
  const ModuleTree tied = described(R"({"architectures": ["DeformableDetrForObjectDetection"]})");
  const auto again = TensorLookup(tied).find("class_embed.5.weight");
  ASSERT_TRUE(again);  // one head tells the classes behind all layers
  EXPECT_EQ(again->spec->storage, Storage::tied);
}

// nvidia/NVIDIA-Nemotron-3.5-Transcribe-30B-A4B, by its class: what hears is no less a part than what writes.
TEST(Watchers, OfNemotronTranscribe) {
  const ModuleTree tree = described(R"({"architectures": ["Nemotron3_5TranscribeForConditionalGeneration"],
      "text_config": {"model_type": "nemotron_h", "hidden_size": 2688, "intermediate_size": 1856,
        "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME", "mamba_num_heads": 64,
        "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712, "n_routed_experts": 128,
        "num_experts_per_tok": 6, "num_key_value_heads": 2},
      "audio_config": {"asr_config": {}, "diarization_config": {"audio_config": {}}}, "word_timestamp_config": {}})");
  constexpr std::uint64_t kParameters = 32'361'750'159,
                          kCorrections = 23 * 128;  // which the class keeps as buffers
  EXPECT_EQ(count(tree).all(), kParameters + kCorrections);
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
                           "nemotron3_diarization",
                           "nemo_speechlm",
                           "nemotron_asr_streaming",
                           "nemotron3_5_asr",
                           "mobilenet_v1",
                           "mobilenet_v2",
                           "efficientnet",
                           "mobilevit",
                           "mobilevitv2",
                           "detr",
                           "table_transformer",
                           "conditional_detr",
                           "dab_detr",
                           "deformable_detr",
                           "sam2",
                           "sam2_video",
                           "grounding_dino",
                           "mm_grounding_dino",
                           "mask2former",
                           "vjepa2",
                           "dinov3_convnext",
                           "altclip",
                           "bros",
                           "dac",
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
  test::expect_refused(R"({"architectures": ["DetrModel"], "backbone": "resnet50d"})", "timm's resnet50d");
  test::expect_refused(R"({"architectures": ["MobileViTModel"], "neck_hidden_sizes": [1, 2]})", "not seven");
  test::expect_refused(R"({"architectures": ["Sam2Model"], "vision_config": {"backbone_config":
      {"model_type": "timm_wrapper"}}, "prompt_encoder_config": {}, "mask_decoder_config": {}})",
                       "timm_wrapper");
  test::expect_refused(R"({"architectures": ["VitsModel"], "num_speakers": 9})", "speaker_embedding_size");
  test::expect_refused(R"({"architectures": ["VivitModel"], "tubelet_size": [64, 16, 16]})", "tubelet_size");
  test::expect_refused(R"({"architectures": ["CLIPSegModel"], "text_config": {}})", "vision_config");
  test::expect_refused(R"({"architectures": ["TimesformerModel"], "attention_type": "none"})",
                       "attention_type");
}

}  // namespace
}  // namespace assay
