// Qwen's omni models whole: what the hub counts of them, and what their parts that speak may not say. Names and shapes are
// oracle_test.cpp's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::described;
using test::expect_refused;

std::string qwen25(const std::string& talker, const std::string& dit, const std::string& vocoder) {
  return fmt::format(
      R"({{"architectures": ["Qwen2_5OmniForConditionalGeneration"], "model_type": "qwen2_5_omni",
      "thinker_config": {{
        "text_config": {{"model_type": "qwen2_5_omni_text", "hidden_size": 3584, "num_hidden_layers": 28,
          "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18944, "vocab_size": 152064}},
        "audio_config": {{"d_model": 1280, "encoder_layers": 32, "encoder_ffn_dim": 5120, "num_mel_bins": 128,
          "encoder_attention_heads": 20, "output_dim": 3584}},
        "vision_config": {{"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
          "out_hidden_size": 3584, "patch_size": 14}}}},
      "talker_config": {{{}}}, "token2wav_config": {{"dit_config": {{{}}}, "bigvgan_config": {{{}}}}}}})",
      talker, dit, vocoder);
}

const std::string kTalker = R"("hidden_size": 896, "embedding_size": 3584, "intermediate_size": 18944,
    "num_hidden_layers": 24, "num_attention_heads": 12, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 8448)";

// Qwen/Qwen2.5-Omni-7B
TEST(OmniSpeech, Qwen25OmniOfTheHub) {
  EXPECT_EQ(count(described(qwen25(kTalker, "", ""))).all(), 10'732'225'408U);
}

// As transformers writes it again: its class of the text ties by default, and thinker_config, which decides, does not.
TEST(OmniSpeech, TheThinkerSaysWhetherItsHeadIsTied) {
  std::string config = qwen25(kTalker, "", "");
  config.insert(config.find(R"("model_type": "qwen2_5_omni_text")"), R"("tie_word_embeddings": true, )");
  EXPECT_LT(count(described(config)).all(), 10'732'225'408U);
  config.insert(config.find(R"("text_config")"), R"("tie_word_embeddings": false, )");
  EXPECT_EQ(count(described(config)).all(), 10'732'225'408U);
}

TEST(OmniSpeech, WhatMakesSoundMayNotSay) {
  expect_refused(qwen25(kTalker, R"("enc_channels": [4, 4])", ""), "not equally long");
  expect_refused(qwen25(kTalker, R"("enc_channels": [4], "enc_kernel_sizes": [1])", ""), "less than two");
  expect_refused(qwen25(kTalker, R"("enc_res2net_scale": 300)", ""), "too small");
  expect_refused(qwen25(kTalker, R"("enc_res2net_scale": 4000)", ""), "larger than 1000");
  expect_refused(qwen25(kTalker, "", R"("upsample_rates": [2])"), "not equally long");
  expect_refused(qwen25(kTalker, "", R"("upsample_initial_channel": 63)"), "leave no channel");
  expect_refused(qwen25(kTalker, "", R"("resblock_dilation_sizes": [[1, 3, 5]])"), "resblock_dilation_sizes");
}

std::string qwen3(const std::string& talker, const std::string& predictor, const std::string& sound) {
  return fmt::format(
      R"({{"architectures": ["Qwen3OmniMoeForConditionalGeneration"], "model_type": "qwen3_omni_moe",
      "thinker_config": {{
        "text_config": {{"model_type": "qwen3_omni_moe_text", "hidden_size": 2048, "num_hidden_layers": 48,
          "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
          "num_experts_per_tok": 8, "moe_intermediate_size": 768, "vocab_size": 152064}},
        "audio_config": {{"d_model": 1280, "encoder_layers": 32, "encoder_ffn_dim": 5120, "num_mel_bins": 128,
          "encoder_attention_heads": 20, "output_dim": 2048, "downsample_hidden_size": 480}},
        "vision_config": {{"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16,
          "out_hidden_size": 2048, "patch_size": 16, "num_position_embeddings": 2304,
          "deepstack_visual_indexes": [8, 16, 24]}}}},
      "talker_config": {{"thinker_hidden_size": 2048, "text_config": {{"head_dim": 128, "num_experts_per_tok": 6{}}},
        "code_predictor_config": {{{}}}}}, "code2wav_config": {{{}}}}})",
      talker, predictor, sound);
}

// Qwen/Qwen3-Omni-30B-A3B-Instruct
TEST(OmniSpeech, Qwen3OmniOfTheHub) {
  const ModuleTree tree = described(qwen3("", R"("num_code_groups": 16)", ""));
  EXPECT_EQ(count(tree).all(), 35'259'818'545U);
  const auto one = TensorLookup(tree).find("talker.model.layers.19.mlp.experts.127.up_proj.weight");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->spec->part, Part::audio);
}

TEST(OmniSpeech, OneCodeAFrameNeedsNoGuess) {
  const ModuleTree tree = described(qwen3("", R"("num_code_groups": 1)", ""));
  EXPECT_FALSE(TensorLookup(tree).find("talker.code_predictor.lm_head.0.weight"));
}

// The Captioner and the Thinker are published without what speaks.
TEST(OmniSpeech, SilentModelsHaveNone) {
  std::string silent = qwen3("", "", "");
  silent.insert(1, R"("enable_audio_output": false, )");
  const ModuleTree tree = described(silent);
  EXPECT_FALSE(TensorLookup(tree).find("talker.codec_head.weight"));
  EXPECT_TRUE(tree.not_counted.empty());
}

TEST(OmniSpeech, WhatSpeaksMayNotSay) {
  expect_refused(qwen3(R"(, "num_experts": 4)", "", ""), "num_experts_per_tok exceeds");
  expect_refused(qwen3("", "", R"("upsample_rates": [2, 0])"), "upsample_rates holds a 0");
  expect_refused(qwen3("", "", R"("upsampling_ratios": [0])"), "upsampling_ratios holds a 0");
  expect_refused(qwen3("", "", R"("decoder_dim": 15)"), "can be halved");
}

}  // namespace
}  // namespace assay
