// Encoders by themselves, and models that read and write, with the sizes of published models: totals that the hub tells of
// them, most of which transformers' classes of these sizes have, too; of models that transformers has not (Nomic's experts, GTE,
// Jina, CogVLM) figures of cards. Names and shapes of those that transformers has are oracle_test.cpp's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::described;

std::string labels(int count) {
  std::string text = R"("id2label": {)";
  for (int i = 0; i < count; ++i) text += fmt::format(R"({}"{}": "x")", i == 0 ? "" : ", ", i);
  return text + "}";
}

std::string deberta_v3(int hidden, int layers) {
  return fmt::format(R"({{"architectures": ["DebertaV2ForSequenceClassification"], "model_type": "deberta-v2",
      "hidden_size": {0}, "intermediate_size": {1}, "num_attention_heads": {2}, "num_hidden_layers": {3},
      "max_relative_positions": -1, "position_buckets": 256, "norm_rel_ebd": "layer_norm", "share_att_key": true,
      "pos_att_type": "p2c|c2p", "relative_attention": true, "position_biased_input": false,
      "type_vocab_size": 0}})",
                     hidden, 4 * hidden, hidden / 64, layers);
}

std::string nomic(const std::string& more) {
  return R"({"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "n_embd": 768, "n_layer": 12, "n_head": 12,
      "n_inner": 3072, "rotary_emb_fraction": 1.0, )" +
         more + "}";
}

std::string jina_bert(int hidden, int layers) {
  return fmt::format(R"({{"architectures": ["JinaBertForMaskedLM"], "model_type": "bert", "vocab_size": 30528,
      "hidden_size": {0}, "num_hidden_layers": {1}, "num_attention_heads": {2}, "intermediate_size": {3},
      "position_embedding_type": "alibi", "feed_forward_type": "geglu", "type_vocab_size": 2}})",
                     hidden, layers, hidden / 64, 4 * hidden);
}

std::string gte(const std::string& architecture, const std::string& more) {
  return fmt::format(
      R"({{"architectures": ["{}"], "model_type": "new", "num_hidden_layers": 12, "hidden_size": 768,
      "num_attention_heads": 12, "intermediate_size": 3072, {}}})",
      architecture, more);
}

std::string cogvlm(int wide, int vocabulary, int positions, const char* more) {
  return fmt::format(R"({{"architectures": ["CogVLMForCausalLM"], "vocab_size": {1}, "hidden_size": 4096,
      "intermediate_size": {0}, "num_hidden_layers": 32, "num_attention_heads": 32, {3} "vision_config":
      {{"hidden_size": 1792, "patch_size": 14, "in_channels": 3, "num_positions": {2}, "num_hidden_layers": 63,
      "intermediate_size": 15360}}}})",
                     wide, vocabulary, positions, more);
}

struct Whole {
  const char* of;
  std::string config;
  std::uint64_t all;
};

TEST(EncoderTotals, OfText) {
  const Whole published[] = {
      {"sentence-transformers/all-mpnet-base-v2",
       R"({"architectures": ["MPNetModel"], "model_type": "mpnet", "max_position_embeddings": 514})",
       109'486'464},
      {"distilbert-base-uncased-finetuned-sst-2-english",
       R"({"architectures": ["DistilBertForSequenceClassification"], "model_type": "distilbert"})",
       66'955'010},
      {"microsoft/deberta-v3-base, two classes", deberta_v3(768, 12), 184'423'682},
      {"microsoft/deberta-v3-large, two classes", deberta_v3(1024, 24), 435'063'810},
      {"albert/albert-base-v2",
       R"({"architectures": ["AlbertModel"], "model_type": "albert", "hidden_size": 768,
           "intermediate_size": 3072, "num_attention_heads": 12})",
       11'683'584},
      {"facebook/esm2_t33_650M_UR50D, without the table of places that nothing reads",
       R"({"architectures": ["EsmForMaskedLM"], "model_type": "esm", "vocab_size": 33, "hidden_size": 1280,
           "num_hidden_layers": 33, "num_attention_heads": 20, "intermediate_size": 5120,
           "position_embedding_type": "rotary"})",
       651'043'254},
      {"nomic-ai/nomic-embed-text-v1.5",
       nomic(R"("vocab_size": 30528, "qkv_proj_bias": false, "mlp_fc1_bias": false, "mlp_fc2_bias": false,
                "activation_function": "swiglu", "type_vocab_size": 2)"),
       136'731'648},
      {"Alibaba-NLP/gte-multilingual-base",
       gte("NewForTokenClassification", R"("vocab_size": 250048, "type_vocab_size": 1, )" + labels(1)),
       305'369'089},
      {"Alibaba-NLP/gte-base-en-v1.5", gte("NewModel", R"("vocab_size": 30528, "type_vocab_size": 0)"),
       136'776'192},
      {"jinaai/jina-embeddings-v3",
       R"({"architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "vocab_size": 250002,
           "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096,
           "type_vocab_size": 1, "position_embedding_type": "rotary", "lora_rank": 4,
           "lora_adaptations": ["a", "b", "c", "d", "e"]})",
       572'310'396},
      {"jinaai/jina-embeddings-v2-base-en", jina_bert(768, 12), 137'368'320},
      {"jinaai/jina-embeddings-v2-small-en", jina_bert(512, 4), 32'690'688},
      {"chandar-lab/NeoBERT without the matrix that guesses words, as its code builds it",
       R"({"architectures": ["NeoBERT"], "model_type": "neobert", "hidden_size": 768,
           "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 12,
           "vocab_size": 30522})",
       221'665'536},
      {"jinaai/jina-reranker-v2-base-multilingual",
       R"({"architectures": ["XLMRobertaForSequenceClassification"], "model_type": "xlm-roberta",
           "vocab_size": 250002, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
           "intermediate_size": 3072, "type_vocab_size": 1, "max_position_embeddings": 1026,
           "use_flash_attn": true, )" +
           labels(1) + "}",
       278'437'633},
  };
  for (const Whole& whole : published) EXPECT_EQ(count(described(whole.config)).all(), whole.all) << whole.of;
}

// Of eight experts in every other layer a word meets two: 475M, and 305M activated, on its card.
TEST(EncoderTotals, OfNomicsExperts) {
  const Totals totals = count(described(
      nomic(R"("vocab_size": 250048, "qkv_proj_bias": true, "mlp_fc1_bias": true, "mlp_fc2_bias": true,
               "activation_function": "gelu", "type_vocab_size": 1, "moe_every_n_layers": 2, "num_experts": 8,
               "moe_top_k": 2)")));
  EXPECT_EQ(totals.total, 475'292'928U);
  EXPECT_EQ(totals.active, 305'423'616U);
}

TEST(EncoderTotals, OfImagesAndSound) {
  const Whole published[] = {
      {"openai/clip-vit-base-patch32",
       R"({"architectures": ["CLIPModel"], "model_type": "clip", "text_config": {}, "vision_config": {}})",
       151'277'313},
      {"openai/clip-vit-large-patch14",
       R"({"architectures": ["CLIPModel"], "model_type": "clip", "projection_dim": 768, "text_config":
           {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12}, "vision_config":
           {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "patch_size": 14}})",
       427'616'513},
      {"google/siglip-base-patch16-224",
       R"({"architectures": ["SiglipModel"], "model_type": "siglip", "text_config": {}, "vision_config": {}})",
       203'155'970},
      {"google/vit-base-patch16-224",
       R"({"architectures": ["ViTForImageClassification"], "model_type": "vit", )" + labels(1000) + "}",
       86'567'656},
      {"facebook/dinov2-base",
       R"({"architectures": ["Dinov2Model"], "model_type": "dinov2", "image_size": 518})", 86'580'480},
      {"facebook/dinov2-giant",
       R"({"architectures": ["Dinov2Model"], "model_type": "dinov2", "image_size": 518, "hidden_size": 1536,
           "num_attention_heads": 24, "num_hidden_layers": 40, "use_swiglu_ffn": true})",
       1'136'480'768},
      {"microsoft/swin-tiny-patch4-window7-224",
       R"({"architectures": ["SwinForImageClassification"], "model_type": "swin", )" + labels(1000) + "}",
       28'288'354},
      {"microsoft/swinv2-tiny-patch4-window8-256",
       R"({"architectures": ["Swinv2ForImageClassification"], "model_type": "swinv2", )" + labels(1000) + "}",
       28'347'154},
      {"facebook/convnext-tiny-224",
       R"({"architectures": ["ConvNextForImageClassification"], "model_type": "convnext", )" + labels(1000) +
           "}",
       28'589'128},
      {"microsoft/beit-base-patch16-224",
       R"({"architectures": ["BeitForImageClassification"], "model_type": "beit",
           "use_relative_position_bias": true, )" +
           labels(1000) + "}",
       86'530'984},
      {"nvidia/segformer-b0-finetuned-ade-512-512",
       R"({"architectures": ["SegformerForSemanticSegmentation"], "model_type": "segformer", )" +
           labels(150) + "}",
       3'752'694},
      {"facebook/wav2vec2-base-960h", R"({"architectures": ["Wav2Vec2ForCTC"], "model_type": "wav2vec2"})",
       94'396'320},
      {"facebook/hubert-base-ls960", R"({"architectures": ["HubertModel"], "model_type": "hubert"})",
       94'371'712},
      {"microsoft/wavlm-base-plus", R"({"architectures": ["WavLMModel"], "model_type": "wavlm"})",
       94'381'936},
  };
  for (const Whole& whole : published) EXPECT_EQ(count(described(whole.config)).all(), whole.all) << whole.of;
}

TEST(EncoderTotals, OfReadersAndWriters) {
  const Whole published[] = {
      {"facebook/bart-large-mnli",
       R"({"architectures": ["BartForSequenceClassification"], "model_type": "bart"})", 407'344'131},
      {"google/t5-v1_1-xxl, its encoder",
       R"({"architectures": ["T5EncoderModel"], "model_type": "t5", "d_model": 4096, "d_ff": 10240,
           "num_layers": 24, "num_heads": 64, "feed_forward_proj": "gated-gelu"})",
       4'762'310'656},
      {"allenai/led-base-16384",
       R"({"architectures": ["LEDForConditionalGeneration"], "model_type": "led", "d_model": 768,
           "encoder_layers": 6, "decoder_layers": 6, "encoder_ffn_dim": 3072, "decoder_ffn_dim": 3072,
           "encoder_attention_heads": 12, "decoder_attention_heads": 12})",
       161'844'480},
      {"zai-org/cogvlm-chat-hf", cogvlm(11008, 32000, 1226, ""), 17'639'685'376},
      {"zai-org/cogvlm2-llama3-chat-19B", cogvlm(14336, 128256, 9217, R"("num_multi_query_heads": 8,)"),
       19'503'105'280},
  };
  for (const Whole& whole : published) EXPECT_EQ(count(described(whole.config)).all(), whole.all) << whole.of;
}

// "expert_3" is an index as "3" is.
TEST(EncoderTotals, SwitchsExpertsAreFoundByName) {
  const ModuleTree tree = described(
      R"({"architectures": ["SwitchTransformersForConditionalGeneration"], "model_type": "switch_transformers"})");
  const TensorLookup lookup(tree);
  const auto found = lookup.find("encoder.block.3.layer.1.mlp.experts.expert_7.wi.weight");
  EXPECT_TRUE(!found);  // blocks 1, 5 and 9 have them
  const auto expert = lookup.find("encoder.block.5.layer.1.mlp.experts.expert_7.wi.weight");
  ASSERT_TRUE(expert);
  EXPECT_EQ(expert->indices.layer, 5U);
  EXPECT_EQ(expert->indices.expert, 7U);
  EXPECT_FALSE(lookup.find("encoder.block.5.layer.1.mlp.experts.expert_8.wi.weight"));
  EXPECT_FALSE(lookup.find("encoder.block.5.layer.1.mlp.experts.expert_07.wi.weight"));
}

// What no encoder can be, in one line each.
TEST(EncoderTotals, RefuseWhatCannotBe) {
  for (
      const char* config : {
          R"({"architectures": ["MPNetModel"], "hidden_size": 768, "num_attention_heads": 7})",
          R"({"architectures": ["AlbertModel"], "inner_group_num": 2})",
          R"({"architectures": ["AlbertModel"], "num_hidden_groups": 13})",
          R"({"architectures": ["DebertaV2Model"], "relative_attention": true, "max_relative_positions": "far"})",
          R"({"architectures": ["DebertaV2Model"], "embedding_size": 5})",
          R"({"architectures": ["EsmModel"]})",
          R"({"architectures": ["NewModel"], "model_type": "new"})",
          R"({"architectures": ["NomicBertModel"], "prenorm": true})",
          R"({"architectures": ["CLIPModel"], "text_config": {}})",
          R"({"architectures": ["ViTModel"], "image_size": 8, "patch_size": 16})",
          R"({"architectures": ["ViTModel"], "image_size": [224]})",
          R"({"architectures": ["Wav2Vec2Model"], "conv_dim": [], "conv_kernel": []})",
          R"({"architectures": ["Wav2Vec2Model"], "conv_dim": [512], "conv_kernel": [0]})",
          R"({"architectures": ["Wav2Vec2Model"], "conv_dim": [512]})",
          R"({"architectures": ["Wav2Vec2BertForCTC"], "model_type": "wav2vec2-bert"})",
          R"({"architectures": ["VisionEncoderDecoderModel"], "encoder": {"model_type": "swin"}})",
          R"({"architectures": ["VisionEncoderDecoderModel"], "encoder": {"model_type": "donut-swin"},
               "decoder": {"model_type": "vit"}})",
          R"({"architectures": ["SwinModel"], "depths": [2, 2], "num_heads": [3]})",
          R"({"architectures": ["SwinModel"], "depths": [2, 0], "num_heads": [3, 6]})",
          R"({"architectures": ["SwinModel"], "window_size": 4294967296})",
          R"({"architectures": ["SwinModel"], "embed_dim": 97})",
          R"({"architectures": ["ConvNextModel"], "hidden_sizes": [], "depths": []})",
          R"({"architectures": ["ConvNextModel"], "depths": [3, 3, 4294967296, 3]})",
          R"({"architectures": ["SegformerModel"], "num_encoder_blocks": 3})",
          R"({"architectures": ["YolosModel"], "image_size": 512})",
          R"({"architectures": ["LayoutLMv3Model"], "input_size": 8})",
          R"({"architectures": ["JinaBertModel"], "feed_forward_type": "geglu"})",
          R"({"architectures": ["JinaBertModel"], "position_embedding_type": "alibi"})",
          R"({"architectures": ["DepthAnythingForDepthEstimation"]})",
          R"({"architectures": ["DepthAnythingForDepthEstimation"], "backbone_config": {},
               "reassemble_factors": [4, 2]})",
          R"({"architectures": ["ClapModel"], "text_config": {}})",
          R"({"architectures": ["ClapModel"], "text_config": {}, "audio_config": {"enable_fusion": true}})",
          R"({"architectures": ["SpeechT5ForTextToSpeech"], "speech_decoder_prenet_layers": 4294967296})",
          R"({"architectures": ["SeamlessM4TModel"], "upsample_initial_channel": 8})",
          R"({"architectures": ["SeamlessM4TModel"], "resblock_dilation_sizes": [[1], 2, [1]]})",
          R"({"architectures": ["Pix2StructForConditionalGeneration"], "text_config": {}})",
          R"({"architectures": ["ProphetNetModel"], "tie_word_embeddings": false})",
          R"({"architectures": ["CogVLMForCausalLM"]})",
          R"({"architectures": ["LongT5Model"], "encoder_attention_type": "global"})",
          R"({"architectures": ["NllbMoeModel"], "num_experts": 1})",
      })
    EXPECT_THROW(described(config), Error) << config;
}

}  // namespace
}  // namespace assay
