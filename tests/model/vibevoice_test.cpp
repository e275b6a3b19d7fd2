// VibeVoice as its own code saves it: what the hub counts of it, what its keys turn on and off, and what they may not say.
// Names and shapes under either code are oracle_test.cpp's.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::described;
using test::expect_refused;
using test::expect_stored;

std::string vibevoice(const std::string& sounds, const std::string& words, const std::string& head) {
  return fmt::format(R"({{"architectures": ["VibeVoiceForConditionalGeneration"], "model_type": "vibevoice",
      "acoustic_tokenizer_config": {{{}}}, "semantic_tokenizer_config": {{"vae_dim": 128}},
      "decoder_config": {{"model_type": "qwen2", {}}}, "diffusion_head_config": {{{}}}}})",
                     sounds, words, head);
}

const std::string kSmall = R"("hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
    "num_attention_heads": 6, "num_key_value_heads": 2, "vocab_size": 131)";

// microsoft/VibeVoice-1.5B: 1,204 tensors in three files, and so many parameters by the hub's count.
TEST(VibeVoice, OfTheHub) {
  const ModuleTree tree =
      described(vibevoice(R"("vae_dim": 64)", R"("hidden_size": 1536, "intermediate_size": 8960,
      "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936,
      "tie_word_embeddings": true)",
                          R"("hidden_size": 1536, "head_layers": 4)"));
  EXPECT_EQ(count(tree).all(), 2'704'021'985U);
  std::size_t stored = 0;
  for_each_tensor(tree, [&](const std::string&, const TensorSpec& spec, const TensorIndices&) {
    stored += spec.storage == Storage::tied ? 0 : 1;
  });
  EXPECT_EQ(stored, 1204U);
}

TEST(VibeVoice, ADecoderHasDepthsOfItsOwnOrItsEncodersInAMirror) {
  const std::string sounds = R"("encoder_ratios": [3, 2], "encoder_depths": "2-1-1", "encoder_n_filters": 4)";
  const std::string head = R"("hidden_size": 24, "latent_size": 7)";
  const ModuleTree mirrored = described(vibevoice(sounds, kSmall, head));
  expect_stored(mirrored, "model.acoustic_tokenizer.decoder.stages.2.1.gamma", {32});
  expect_stored(mirrored, "model.acoustic_tokenizer.encoder.downsample_layers.1.0.conv.conv.weight",
                {8, 4, 4});
  const ModuleTree own = described(
      vibevoice(sounds + R"(, "decoder_depths": "1-1-3", "decoder_ratios": [5, 2], "decoder_n_filters": 3)",
                kSmall, head));
  expect_stored(own, "model.acoustic_tokenizer.decoder.stages.2.2.gamma", {3});
  expect_stored(own, "model.acoustic_tokenizer.decoder.upsample_layers.1.0.convtr.convtr.weight",
                {12, 6, 10});
}

TEST(VibeVoice, WhatItsBlocksMayLack) {
  const ModuleTree tree = described(
      vibevoice(R"("encoder_ratios": [2], "encoder_depths": [1, 1], "layernorm": "LN", "conv_bias": false,
      "layer_scale_init_value": 0, "disable_last_norm": false, "mixer_layer": "conv")",
                kSmall, R"("hidden_size": 24)"));
  const std::string encoder = "model.acoustic_tokenizer.encoder.";
  expect_stored(tree, encoder + "stages.1.0.norm.bias", {64});
  expect_stored(tree, encoder + "stages.1.0.mixer.conv.conv.conv.weight", {64, 64, 7});
  expect_stored(tree, encoder + "norm.weight", {64});
  const TensorLookup names(tree);
  for (const char* absent : {"stages.1.0.gamma", "stages.1.0.ffn.linear1.bias", "head.conv.conv.bias"})
    EXPECT_FALSE(names.find(encoder + absent)) << absent;
}

TEST(VibeVoice, WhatItMayNotSay) {
  const std::string head = R"("hidden_size": 24)";
  expect_refused(vibevoice(R"("encoder_depths": "2-x")", kSmall, head),
                 "encoder_depths is no list of numbers");
  expect_refused(vibevoice(R"("encoder_depths": "2-1")", kSmall, head), "one depth more than ratios");
  expect_refused(vibevoice(R"("encoder_ratios": [0], "encoder_depths": "1-1")", kSmall, head),
                 "a ratio is 0");
  expect_refused(vibevoice(R"("encoder_ratios": [2], "encoder_depths": "1-9999")", kSmall, head),
                 "1000 blocks");
  expect_refused(vibevoice(R"("conv_norm": "weight_norm")", kSmall, head), "conv_norm");
  expect_refused(vibevoice(R"("layernorm": "none")", kSmall, head), "layernorm");
  expect_refused(vibevoice(R"("mixer_layer": "attention")", kSmall, head), "mixer_layer");
  expect_refused(vibevoice("", kSmall, R"("hidden_size": 24, "head_ffn_ratio": 0.01)"), "head_ffn_ratio");
}

}  // namespace
}  // namespace assay
