// What MiniCPM-o speaks with. No class of transformers has it: totals are those of the hub, as far as it rounds them, and names
// those that engines load.
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

std::string minicpm_o(const std::string& version, const std::string& sizes, const std::string& tts) {
  return fmt::format(R"({{"architectures": ["MiniCPMO"], "model_type": "minicpmo", "version": "{}", {},
      "tie_word_embeddings": false, "query_num": 64, "drop_vision_last_layer": false,
      "vision_config": {{"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 27,
        "num_attention_heads": 16, "image_size": 980, "patch_size": 14}},
      "audio_config": {{"d_model": 1024, "encoder_layers": 24, "encoder_ffn_dim": 4096,
        "encoder_attention_heads": 16, "num_mel_bins": 80}}{}}})",
                     version, sizes, tts);
}

const std::string kQwen2 = R"("hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 151700)";
const std::string kQwen3 = R"("hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151748)";

// openbmb/MiniCPM-o-2_6: 8.67B on the hub.
TEST(MiniCpmSpeech, OfTheFirst) {
  const ModuleTree tree = described(minicpm_o("2.6", kQwen2, R"(, "tts_config": {"llm_dim": 3584})"));
  EXPECT_NEAR(static_cast<double>(count(tree).all()), 8.67e9, 0.006e9);
  EXPECT_TRUE(tree.not_counted.empty());
  expect_stored(tree, "tts.projector.linear1.weight", {768, 3584});
  expect_stored(tree, "tts.head_code.3.parametrizations.weight.original0", {626, 1});
  expect_stored(tree, "tts.dvae.vq_layer.quantizer.rvqs.1.project_out.weight", {512, 4});
  const ModuleTree plain =
      described(minicpm_o("2.6", kQwen2, R"(, "tts_config": {"llm_dim": 3584, "use_mlp": false})"));
  expect_stored(plain, "tts.projector.weight", {768, 3584});
}

// What engines load of openbmb/MiniCPM-o-4_5: a head of 6,562 codes.
TEST(MiniCpmSpeech, OfTheSecond) {
  const std::string sizes = R"("llm_dim": 4096, "num_audio_tokens": 6562, "num_text_tokens": 152064)";
  const ModuleTree tree = described(minicpm_o("4.5", kQwen3, ", \"tts_config\": {" + sizes + "}"));
  expect_stored(tree, "tts.head_code.0.parametrizations.weight.original1", {6562, 768});
  expect_stored(tree, "tts.projector_semantic.linear2.bias", {768});
  expect_stored(tree, "tts.projector_spk.linear1.weight", {768, 4096});
  EXPECT_FALSE(TensorLookup(tree).find("tts.dvae.coef"));
  EXPECT_EQ(tree.not_counted.size(), 1U);
  expect_refused(minicpm_o("4.5", kQwen3, ", \"tts_config\": {\"projector_type\": \"minicpm\"}"),
                 "projector_type");
}

TEST(MiniCpmSpeech, AConfigMayNotTellOfIt) {
  EXPECT_EQ(described(minicpm_o("2.6", kQwen2, "")).not_counted.size(), 1U);
  EXPECT_TRUE(described(minicpm_o("2.6", kQwen2, R"(, "init_tts": false)")).not_counted.empty());
}

}  // namespace
}  // namespace assay
