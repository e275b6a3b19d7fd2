// dots3-note whole, as it is released: flat, with experts listed block by block and ears under Whisper's keys. Names and shapes
// of what transformers writes are oracle_test.cpp's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::described;
using test::expect_refused;
using test::expect_stored;

std::string note(const std::string& vision, const std::string& audio) {
  return fmt::format(R"({{"architectures": ["Dots3NoteForCausalLM"], "model_type": "dots3_note",
      "vision_config": {{"hidden_size": 5120{}}}, "audio_config": {{"whisper_config": {{"d_model": 1280,
      "encoder_attention_heads": 20, "encoder_layers": 32, "encoder_ffn_dim": 5120, "num_mel_bins": 128}}{}}}}})",
                     vision, audio);
}

// dots-studio/dots3-note-prev: model-vision.safetensors has 13.7 GB in BF16, model-audio.safetensors 1.77 GB; the first is
// "about 7B" by the card.
TEST(Dots3Towers, OfTheHub) {
  const ModuleTree tree =
      described(note(R"(, "embed_dim": 1536, "pyramid_num_routed": [-1, -1, -1, -1, -1, -1, -1,
      -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40,
      44, 48, 52, 56, 60, 64, 64])",
                     ""));
  std::uint64_t seen = 0, heard = 0;
  for_each_tensor(tree, [&](const std::string& name, const TensorSpec& spec, const TensorIndices&) {
    std::uint64_t elements = 1;
    for (const std::uint64_t extent : spec.shape) elements *= extent;
    if (name.starts_with("vision_encoder.")) seen += elements;
    if (name.starts_with("audio_encoder.")) heard += elements;
  });
  EXPECT_NEAR(2e-9 * static_cast<double>(seen), 13.7, 0.05);
  EXPECT_NEAR(2e-9 * static_cast<double>(heard), 1.77, 0.005);
  expect_stored(tree, "vision_encoder.blocks.25.mlp.gate_weight", {4, 1536});
  EXPECT_EQ(count(tree).all(),
            count(described(note(R"(, "embed_dim": 1536)", ""))).all());  // the class's own list
}

TEST(Dots3Towers, WhatTheyMayLack) {
  const ModuleTree tree = described(note(R"(, "embed_dim": 24, "num_heads": 3, "num_hidden_layers": 2,
      "pyramid_num_routed": [-1, 3], "use_qk_norm": false, "post_norm": false, "use_bias": true)",
                                         R"(, "attention_bias": false)"));
  const TensorLookup names(tree);
  for (const char* absent :
       {"vision_encoder.blocks.0.attn.q_norm.weight", "vision_encoder.post_trunk_norm.weight",
        "audio_encoder.dots_encoder.speech_encoder.layers.0.self_attn.q_proj.bias"})
    EXPECT_FALSE(names.find(absent)) << absent;
  expect_stored(tree, "vision_encoder.blocks.1.attn.qkv.bias", {72});
  expect_stored(tree, "vision_encoder.blocks.1.mlp.experts.2.fc3.weight", {2112, 24});
}

TEST(Dots3Towers, WhatTheyMayNotSay) {
  const std::string small = R"(, "embed_dim": 24, "num_heads": 3, "num_hidden_layers": 2)";
  expect_refused(note(small + R"(, "pyramid_num_routed": [1])", ""), "does not list every block");
  expect_refused(note(small + R"(, "pyramid_num_routed": [1, "x"])", ""), "holds what is no number");
  expect_refused(note(R"(, "embed_dim": 25, "num_heads": 3)", ""), "divisible");
}

}  // namespace
}  // namespace assay
