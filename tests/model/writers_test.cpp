// Models of two halves, decoders that stand alone, and others that write of what they hear or see: totals of their classes'
// defaults, as transformers 5.23 counts them on the meta device, and what is refused. Names and shapes are oracle_test.cpp's.
#include <gtest/gtest.h>

#include <string>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::described;
using test::expect_refused;

std::string composed(const std::string& architecture, const std::string& encoder,
                     const std::string& decoder) {
  return R"({"architectures": [")" + architecture + R"("], "encoder": {"model_type": )" + encoder +
         R"(}, "decoder": {"is_decoder": true, "add_cross_attention": true, "model_type": )" + decoder + "}}";
}

std::uint64_t all_of(const std::string& config) {
  return count(described(config)).all();
}

// A plan divides by how many there are.
TEST(Writers, LayersOfWhichThereAreNoneAreNotTold) {
  const ModuleTree tree = described(R"({"architectures": ["IdeficsForVisionText2Text"], "vision_config": {},
      "num_hidden_layers": 4, "cross_layer_interval": 5})");
  for (const Module& module : tree.modules) {
    EXPECT_FALSE(module.repeat.over == Repeat::Over::layers && module.repeat.indices.empty()) << module.title;
  }
  EXPECT_FALSE(TensorLookup(tree).find("model.gated_cross_attn_layers.0.alpha_cross_attn"));
}

TEST(Writers, OfTwoTexts) {
  EXPECT_EQ(all_of(composed("EncoderDecoderModel", R"("bert")", R"("bert")")), 247'363'386U);
  // google/bert2bert_L-24_wmt_de_en's sizes
  EXPECT_EQ(all_of(composed("EncoderDecoderModel", R"("bert-generation")", R"("bert-generation")")),
            809'665'718U);
}

// What sees or hears is told apart; where widths differ, a matrix stands between.
TEST(Writers, OfWhatSeesAndWhatHears) {
  const Totals captions =
      count(described(composed("VisionEncoderDecoderModel", R"("vit")", R"("gpt2")")));  // vit-gpt2's sizes
  EXPECT_EQ(captions.all(), 239'195'904U);
  EXPECT_EQ(captions.towers, 86'389'248U);
  EXPECT_EQ(all_of(composed("VisionEncoderDecoderModel", R"("swin")", R"("mbart")")), 282'392'954U);
  EXPECT_EQ(all_of(composed("SpeechEncoderDecoderModel",
                            R"("wav2vec2", "hidden_size": 1024, "num_hidden_layers": 24,
                               "num_attention_heads": 16, "intermediate_size": 4096)",
                            R"("mbart")")),
            569'515'136U);
  const ModuleTree tree = described(composed("SpeechEncoderDecoderModel", R"("wav2vec2")", R"("bart")"));
  EXPECT_EQ(count(tree).all(), 349'243'264U);
  EXPECT_TRUE(TensorLookup(tree).find("enc_to_dec_proj.weight"));
  const auto head = TensorLookup(tree).find("decoder.lm_head.weight");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->spec->same_as, "decoder.model.decoder.embed_tokens.weight");
}

// A decoder caches what it attends to of itself, whichever family's it is.
TEST(Writers, CachesWhatItsDecoderWrites) {
  for (const char* decoder : {R"("bert")", R"("gpt2")", R"("mbart")", R"("trocr")"}) {
    const ModuleTree tree = described(composed("VisionEncoderDecoderModel", R"("vit")", decoder));
    ASSERT_EQ(tree.attention.size(), 1U) << decoder;
    EXPECT_EQ(tree.attention.front().layers.size(), 12U) << decoder;
  }
}

TEST(Writers, OfDecodersAlone) {
  struct Alone {
    const char* architecture;
    std::uint64_t all;
  };
  const Alone decoders[] = {
      {"BartForCausalLM", 254'084'096},           {"MBartForCausalLM", 254'086'144},
      {"BlenderbotForCausalLM", 2'538'583'040},   {"BlenderbotSmallForCausalLM", 59'631'104},
      {"PLBartForCausalLM", 95'904'000},          {"MvpForCausalLM", 254'086'144},
      {"BigBirdPegasusForCausalLM", 469'630'976}, {"TrOCRForCausalLM", 253'559'808},
      {"ProphetNetForCausalLM", 239'640'576},     {"WhisperForCausalLM", 29'552'256},
      {"BertGenerationDecoder", 354'452'662},     {"BertGenerationEncoder", 354'402'304},
  };
  for (const Alone& alone : decoders)
    EXPECT_EQ(all_of(std::string(R"({"architectures": [")") + alone.architecture + "\"]}"), alone.all)
        << alone.architecture;
}

TEST(Writers, OfOthersThatWrite) {
  EXPECT_EQ(all_of(R"({"architectures": ["Speech2TextForConditionalGeneration"]})"), 29'536'256U);
  EXPECT_EQ(all_of(R"({"architectures": ["Pop2PianoForConditionalGeneration"]})"), 59'108'352U);
  EXPECT_EQ(all_of(R"({"architectures": ["UdopForConditionalGeneration"]})"), 742'440'960U);
  EXPECT_EQ(all_of(R"({"architectures": ["IdeficsForVisionText2Text"], "vision_config": {}})"),
            12'670'461'504U);
  EXPECT_EQ(all_of(R"({"architectures": ["BltForCausalLM"], "encoder_config": {}, "decoder_config": {},
                       "global_config": {}, "patcher_config": {}})"),
            4'633'127'680U);
  EXPECT_EQ(all_of(R"({"architectures": ["MoshiForCausalLM"]})"), 6'839'083'008U);
  EXPECT_EQ(all_of(R"({"architectures": ["ReformerModelWithLMHead"]})"), 5'975'872U);
  EXPECT_EQ(all_of(R"({"architectures": ["EvollaForProteinText2Text"], "protein_encoder_config": {}})"),
            10'390'787'344U);
  EXPECT_EQ(all_of(R"({"architectures": ["PPFormulaNetForConditionalGeneration"], "text_config": {},
                       "vision_config": {}})"),
            180'897'536U);
}

// Beside what transformers counts as parameters: the vectors of EnCodec's 32 books.
TEST(Writers, OfWhatMakesSound) {
  constexpr std::uint64_t books = 32 * 1024 * 128;
  EXPECT_EQ(all_of(R"({"architectures": ["EncodecModel"]})"), 14'851'810U + books);
  EXPECT_EQ(all_of(R"({"architectures": ["BarkModel"], "semantic_config": {}, "coarse_acoustics_config": {},
                       "fine_acoustics_config": {}, "codec_config": {"model_type": "encodec"}})"),
            364'981'474U + books);
  EXPECT_EQ(all_of(R"({"architectures": ["MusicgenForCausalLM"]})"), 419'584'000U);
  EXPECT_EQ(all_of(R"({"architectures": ["MusicgenMelodyForCausalLM"]})"), 318'871'552U);
}

TEST(Writers, WhatDoesNotFitIsRefusedByName) {
  expect_refused(R"({"architectures": ["EncoderDecoderModel"]})", "encoder is missing");
  expect_refused(composed("EncoderDecoderModel", R"("bort")", R"("bert")"), "encoder.model_type \"bort\"");
  expect_refused(composed("VisionEncoderDecoderModel", R"("vit")", R"("vit")"), "writes by itself");
  expect_refused(composed("EncoderDecoderModel", R"("encoder-decoder")", R"("bert")"), "reads by itself");
  // No class of transformers puts such a head on a decoder alone.
  expect_refused(R"({"architectures": ["BlenderbotForSequenceClassification"]})", "is unknown");
  expect_refused(R"({"architectures": ["MarianForTokenClassification"]})", "is unknown");
  expect_refused(R"({"architectures": ["WhisperModel"]})", "is unknown");
  expect_refused(R"({"architectures": ["BltForCausalLM"]})", "encoder_config");
  expect_refused(R"({"architectures": ["UdopForConditionalGeneration"], "relative_bias_args": 3})",
                 "relative_bias_args is no list");
  expect_refused(R"({"architectures": ["IdeficsForVisionText2Text"], "vision_config": {},
                     "alpha_type": "matrix"})",
                 "alpha_type");
  expect_refused(R"({"architectures": ["Speech2TextForConditionalGeneration"], "num_conv_layers": 3})",
                 "conv_kernel_sizes");
  expect_refused(R"({"architectures": ["ReformerModel"], "attn_layers": ["near"]})", "attn_layers");
  expect_refused(R"({"architectures": ["ReformerModel"], "hidden_size": 250})", "does not sum");
  expect_refused(R"({"architectures": ["EncodecModel"], "target_bandwidths": [0]})", "target_bandwidths");
  expect_refused(R"({"architectures": ["MusicgenForConditionalGeneration"], "decoder": {}})", "text_encoder");
  expect_refused(R"({"architectures": ["PI0ForConditionalGeneration"]})", "vlm_config is missing");
}

}  // namespace
}  // namespace assay
