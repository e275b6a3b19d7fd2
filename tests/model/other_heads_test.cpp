// Known decoders without their head, or under another one. data/check_other_heads.py holds the names of all of them against
// transformers; here is what is published.
#include "core/model/families/other_heads.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/model/gguf_family.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::config_of;
using test::expect_stored;
using test::tree_of;

constexpr const char* kLlama31 = R"("vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": false)";

TEST(OtherHeads, TotalsAreThoseOfTheHub) {
  struct Published {
    const char* architecture;
    std::string keys;
    std::uint64_t total;
  };
  const Published models[] = {
      // intfloat/e5-mistral-7b-instruct
      {"MistralModel", R"("vocab_size": 32000)", 7'110'660'096},
      // Skywork/Skywork-Reward-Llama-3.1-8B
      {"LlamaForSequenceClassification", std::string(kLlama31) + R"(, "id2label": {"0": "LABEL_0"})",
       7'504'928'768},
      // nvidia/llama-3.2-nv-embedqa-1b-v2 has the body of Llama 3.2 1B, whose head is tied
      {"LlamaBidirectionalModel", R"("vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 8192,
       "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8, "tie_word_embeddings": true)",
       1'235'814'400},
  };
  for (const Published& model : models)
    EXPECT_EQ(count(tree_of(model.architecture, model.keys)).total, model.total) << model.architecture;
}

TEST(OtherHeads, BodiesHaveNoPrefixAndNoHead) {
  const ModuleTree tree = tree_of("Gemma3TextModel", R"("hidden_size": 24, "num_hidden_layers": 2)");
  expect_stored(tree, "embed_tokens.weight", {262208, 24});
  expect_stored(tree, "layers.1.input_layernorm.weight", {24});
  expect_stored(tree, "model.layers.1.input_layernorm.weight", {24});  // saved from under a head
  EXPECT_FALSE(TensorLookup(tree).find("lm_head.weight").has_value());
  EXPECT_FALSE(tree.tied_embeddings);
}

// Models that see: what is beside the language model stays, whatever becomes of its head.
TEST(OtherHeads, OfModelsThatSee) {
  const std::string sizes =
      R"("model_type": "llava", "text_config": {"model_type": "llama", "hidden_size": 24,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4}, "vision_config":
      {"model_type": "clip_vision_model", "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1,
       "intermediate_size": 20, "image_size": 8, "patch_size": 4})";
  const ModuleTree whole = tree_of("LlavaForConditionalGeneration", sizes),
                   body = tree_of("LlavaModel", sizes),
                   scores = tree_of("LlavaForSequenceClassification", sizes + R"(, "num_labels": 5)");
  expect_stored(body, "language_model.model.layers.1.input_layernorm.weight", {24});
  expect_stored(body, "vision_tower.embeddings.class_embedding", {16});
  EXPECT_EQ(count(body).towers, count(whole).towers);
  EXPECT_EQ(count(whole).total - count(body).total, 32000U * 24);
  expect_stored(scores, "score.weight", {5, 24});
  EXPECT_TRUE(body.not_counted.empty());
  EXPECT_THROW(hyperparameters(body), Error);
}

// Classes under that ending which transformers saves under other names are not answered by this rule.
TEST(OtherHeads, OfModelsThatSeeAndAreUnlike) {
  for (const char* unlike : {"BlipModel", "QianfanOCRModel", "T5GemmaModel"})
    EXPECT_FALSE(families::other_head_of_larger(unlike).has_value()) << unlike;
}

TEST(OtherHeads, RetrieversHaveAMatrixInPlaceOfTheHead) {
  const std::string within = R"("text_config": {"model_type": "gemma", "vocab_size": 100, "hidden_size": 24,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 8,
      "intermediate_size": 40}, "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 16,
      "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 20, "image_size": 8, "patch_size": 4})";
  const ModuleTree theirs = tree_of("ColPaliForRetrieval", R"("model_type": "colpali", "embedding_dim": 7,
      "vlm_config": {"model_type": "paligemma", )" + within + "}");
  expect_stored(theirs, "embedding_proj_layer.weight", {7, 24});
  expect_stored(theirs, "vlm.vision_tower.post_layernorm.weight", {16});
  const ModuleTree own = tree_of("ColPali", R"("model_type": "paligemma", )" + within);
  expect_stored(own, "custom_text_proj.weight", {128, 24});
  EXPECT_EQ(count(own).towers, count(theirs).towers);
  EXPECT_THROW(tree_of("ColPaliForRetrieval", R"("vlm_config": {"model_type": "clip"})"), Error);
}

// vLLM's loader takes "language_model." and "visual." with nothing before them, and a matrix with a bias.
TEST(OtherHeads, OfARetrieverOverQwen35) {
  const std::string within =
      R"("text_config": {"model_type": "qwen3_5_text", "vocab_size": 60, "hidden_size": 24,
      "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 8,
      "intermediate_size": 40})";
  const ModuleTree tree = tree_of("ColQwen3_5", R"("model_type": "qwen3_5", "dim": 320, )" + within);
  expect_stored(tree, "custom_text_proj.weight", {320, 24});
  expect_stored(tree, "custom_text_proj.bias", {320});
  expect_stored(tree, "language_model.layers.3.self_attn.k_proj.weight", {8, 24});
  EXPECT_FALSE(TensorLookup(tree).find("lm_head.weight").has_value());
  expect_stored(tree_of("ColQwen3_5", R"("model_type": "qwen3_5", )" + within), "custom_text_proj.weight",
                {128, 24});
}

// Names of vLLM's loaders.
TEST(OtherHeads, OfEmbeddersAndRankersOverQwen) {
  const std::string sizes = R"("hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 4)";
  const ModuleTree ranker = tree_of("JinaForRanking", sizes);
  expect_stored(ranker, "projector.0.weight", {12, 24});
  expect_stored(ranker, "projector.2.weight", {512, 12});
  expect_stored(ranker, "model.norm.weight", {24});
  expect_stored(tree_of("VoyageQwen3BidirectionalEmbedModel", sizes + R"(, "num_labels": 7)"),
                "linear.weight", {7, 24});
  expect_stored(tree_of("JinaEmbeddingsV5Model", sizes), "layers.1.self_attn.q_norm.weight", {128});
  EXPECT_THROW(tree_of("JinaEmbeddingsV5Model", sizes + R"(, "is_decoder": false)"), Error);
  const ModuleTree seeing = tree_of("JinaVLForRanking", sizes + R"(, "vision_config": {"depth": 1,
      "embed_dim": 8, "num_heads": 1, "hidden_size": 24, "patch_size": 2})");
  expect_stored(seeing, "score.0.weight", {24, 24});
  expect_stored(seeing, "score.2.weight", {1, 24});
  expect_stored(seeing, "visual.merger.ln_q.weight", {8});
  EXPECT_FALSE(TensorLookup(seeing).find("lm_head.weight").has_value());
}

TEST(OtherHeads, LabelsAreRows) {
  const std::string sizes = R"("hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 4)";
  expect_stored(tree_of("Qwen3ForSequenceClassification", sizes), "score.weight", {2, 24});
  expect_stored(tree_of("Qwen3ForSequenceClassification", sizes + R"(, "num_labels": 5)"), "score.weight",
                {5, 24});
  const ModuleTree tokens =
      tree_of("LlamaForTokenClassification", sizes + R"(, "id2label": {"0": "a", "1": "b", "2": "c"})");
  expect_stored(tokens, "score.weight", {3, 24});
  expect_stored(tokens, "score.bias", {3});
  expect_stored(tokens, "model.norm.weight", {24});
  const ModuleTree process = tree_of("Qwen2ForProcessRewardModel", sizes + R"(, "num_labels": 9)");
  expect_stored(process, "score.0.weight", {24, 24});
  expect_stored(process, "score.2.weight", {2, 24});
  expect_stored(process, "score.2.bias", {2});
  expect_stored(tree_of("InternLM2ForRewardModel", sizes), "v_head.weight", {1, 24});
}

// What is told of the family's own head holds of no other.
TEST(OtherHeads, AreNotComputedOrWrittenAsGguf) {
  for (const char* name : {"LlamaModel", "LlamaForSequenceClassification", "GritLM"}) {
    const ModuleTree tree = tree_of(name, R"("num_hidden_layers": 1)");
    EXPECT_THROW(hyperparameters(tree), Error) << name;
    EXPECT_EQ(gguf_family(tree), nullptr) << name;
  }
}

TEST(OtherHeads, UnlikeOnesStayUnknown) {
  for (const char* name : {"Llama4TextModel", "NobodyModel", "Model", "ForSequenceClassification"})
    EXPECT_THROW(tree_of(name, R"("num_hidden_layers": 1)"), Error) << name;
}

// Decoders before Llama: names under "transformer.", another name of what scores tokens, a head as wide as the last matrix.
TEST(OtherHeads, OfEarlyDecoders) {
  const std::string gpt2 =
      R"("n_embd": 24, "n_layer": 2, "n_head": 4, "id2label": {"0": "a", "1": "b", "2": "c"})";
  const ModuleTree scores = tree_of("GPT2ForSequenceClassification", gpt2),
                   tokens = tree_of("GPT2ForTokenClassification", gpt2),
                   answers = tree_of("GPT2ForQuestionAnswering", gpt2);
  expect_stored(scores, "score.weight", {3, 24});
  expect_stored(scores, "transformer.h.1.attn.c_attn.weight", {24, 72});
  expect_stored(tokens, "classifier.bias", {3});
  expect_stored(answers, "qa_outputs.weight", {2, 24});
  EXPECT_FALSE(TensorLookup(answers).find("lm_head.weight").has_value());
  expect_stored(
      tree_of("GPTNeoXModel", R"("hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4)"),
      "layers.0.attention.dense.weight", {24, 24});
  expect_stored(tree_of("OPTForSequenceClassification", R"("hidden_size": 24, "num_hidden_layers": 1,
      "num_attention_heads": 4, "word_embed_proj_dim": 10, "ffn_dim": 30)"),
                "score.weight", {2, 10});
  EXPECT_THROW(tree_of("CTRLForSequenceClassification", R"("n_layer": 1)"), Error);
}

// Most keep the body under "transformer.", as they did before their base class was renamed.
TEST(OtherHeads, AnswersOfLlamasKin) {
  const std::string sizes = R"("hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 4,
      "num_key_value_heads": 4, "id2label": {"0": "a"})";
  const ModuleTree llama = tree_of("LlamaForQuestionAnswering", sizes),
                   mistral = tree_of("MistralForQuestionAnswering", sizes);
  expect_stored(llama, "transformer.layers.0.input_layernorm.weight", {24});
  expect_stored(mistral, "model.layers.0.input_layernorm.weight", {24});
  expect_stored(mistral, "qa_outputs.bias", {2});
}

}  // namespace
}  // namespace assay
