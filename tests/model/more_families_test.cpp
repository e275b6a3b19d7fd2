// Families of core/model/families/all_more.h, and models that see or hear described with them, that transformers has no class
// for: totals of cards, numbers of tensors that others listed, names and shapes as their loaders have them. Those with a class
// there are oracle_test.cpp's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::described;
using test::expect_refused;
using test::expect_stored;

std::uint64_t own_tensors(const ModuleTree& tree) {
  std::uint64_t tensors = 0;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.storage == Storage::own) tensors += where.copies;
  });
  return tensors;
}

// Infinigence's card: 31 layers, of which the first is dense, 7.5 B stored, 3.0 B activated. Width of the dense MLP and number
// of key heads are not on it: with these the rounded figures hold.
constexpr const char* kMegrez = R"({"architectures": ["MegrezMoeForCausalLM"], "model_type": "megrez_moe",
    "vocab_size": 128880, "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
    "num_hidden_layers": 31, "num_attention_heads": 16, "num_key_value_heads": 4, "n_routed_experts": 64,
    "n_shared_experts": 4, "num_experts_per_tok": 6, "first_k_dense_replace": 1, "experts_shared_frequency": 3})";

TEST(MoreFamilies, MegrezStoresExpertsOnceAGroup) {
  const ModuleTree tree = described(kMegrez);
  const Totals totals = count(tree);
  EXPECT_EQ(std::llround(static_cast<double>(totals.total) / 1e8), 75);
  // Without embedding and head, as the card counts.
  EXPECT_EQ(std::llround(static_cast<double>(totals.active - 2 * 128880ULL * 2048) / 1e8), 30);
  // 372 in a GGUF, where the experts of a layer are in three stacks (ggml-org/llama.cpp#17141).
  std::uint64_t in_gguf = 0;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.storage == Storage::own) in_gguf += where.copies / (spec.part == Part::routed_expert ? 64 : 1);
  });
  EXPECT_EQ(in_gguf, 372U);
  expect_stored(tree, "model.layers.4.mlp.experts.63.down_proj.weight", {2048, 1408});
  expect_stored(tree, "model.layers.5.mlp.gate.e_score_correction_bias", {64});
  expect_stored(tree, "model.layers.6.mlp.shared_experts.up_proj.weight", {5632, 2048});
  for (const int layer : {0, 2, 3, 5, 6})
    EXPECT_FALSE(TensorLookup(tree).find(fmt::format("model.layers.{}.mlp.experts.0.up_proj.weight", layer)));
}

TEST(MoreFamilies, MegrezRefusesWhatItsExpertsCannotBe) {
  expect_refused(R"({"architectures": ["MegrezMoeForCausalLM"], "model_type": "megrez_moe"})", "vocab_size");
  std::string config = kMegrez;
  config.replace(config.find(R"("experts_shared_frequency": 3)"), 29, R"("experts_shared_frequency": 0)");
  expect_refused(config, "experts_shared_frequency");
  config = kMegrez;
  config.insert(1, R"("moe_layer_freq": 2, )");
  expect_refused(config, "moe_layer_freq");
}

// Five layers take turns with two banks: three visit the first, two the second.
constexpr const char* kMobius = R"({"architectures": ["InternS2MobiusForConditionalGeneration"],
    "model_type": "interns2_mobius", "text_config": {"model_type": "interns2_mobius_text", "num_blocks": 2,
    "hidden_size": 24, "num_hidden_layers": 5, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 8,
    "vocab_size": 60, "num_experts": 10, "num_experts_per_tok": 2, "moe_intermediate_size": 7, "layer_scale": true,
    "shared_expert_intermediate_size": 9, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "linear_key_head_dim": 3, "linear_value_head_dim": 5}})";

TEST(MoreFamilies, LayersOfMobiusTakeTurnsWithBanks) {
  const ModuleTree tree = described(kMobius);
  const std::string under = "model.language_model.";
  for (const char* bank : {"0", "1"}) {
    expect_stored(tree, fmt::format("{}meta_mlp.{}.gate.weight", under, bank), {10, 24});
    expect_stored(tree, fmt::format("{}meta_mlp.{}.experts.gate_up_proj", under, bank), {10, 14, 24});
    expect_stored(tree, fmt::format("{}meta_mlp.{}.experts.down_proj", under, bank), {10, 24, 7});
  }
  expect_stored(tree, under + "layers.3.mlp.shared_expert.down_proj.weight", {24, 9});
  expect_stored(tree, under + "layers.4.mlp.shared_expert_gate.weight", {1, 24});
  expect_stored(tree, under + "layers.4.ffn_layer_scale", {1, 1, 24});
  EXPECT_FALSE(TensorLookup(tree).find(under + "layers.4.mlp.gate.weight"));
  EXPECT_FALSE(TensorLookup(tree).find(under + "meta_mlp.2.gate.weight"));
  std::uint64_t active = 0;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.part == Part::routed_expert) active += active_elements(spec, where);
  });
  EXPECT_EQ(active, 5U * 2 * 3 * 24 * 7);  // each layer sends a token to two experts
}

// z-lab/Qwen3.5-122B-A10B-DFlash's sizes; of the draft for Qwen3.6-27B fc is [5120, 25600] for five layers.
TEST(MoreFamilies, DflashReadsSeveralLayersOfItsTarget) {
  const ModuleTree tree = described(R"({"architectures": ["DFlashDraftModel"], "model_type": "qwen3",
      "hidden_size": 3072, "num_hidden_layers": 6, "vocab_size": 248320, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 9216, "dflash_config": {"block_size": 16,
      "target_layer_ids": [1, 7, 14, 20, 26, 32, 39, 45]}})");
  expect_stored(tree, "fc.weight", {3072, 8 * 3072});
  expect_stored(tree, "hidden_norm.weight", {3072});
  expect_stored(tree, "norm.weight", {3072});
  expect_stored(tree, "layers.5.self_attn.k_norm.weight", {128});
  expect_stored(tree, "layers.0.self_attn.o_proj.weight", {3072, 4096});
  EXPECT_EQ(own_tensors(tree), 3U + 6 * 11);
  const std::uint64_t layer = 3072 * (2 * 4096 + 2 * 1024 + 3 * 9216) + 2 * 3072 + 2 * 128;
  EXPECT_EQ(count(tree).total, 6 * layer + 8ULL * 3072 * 3072 + 2 * 3072);
}

// The inventory of Kimi-K3's released draft, which a port of it checks key by key: names and shapes.
TEST(MoreFamilies, DsparkAddsScores) {
  const char* kSizes = R"("model_type": "qwen3", "hidden_size": 48, "num_hidden_layers": 2, "vocab_size": 90,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 70)";
  const ModuleTree tree = described(fmt::format(
      R"({{"architectures": ["Qwen3DSparkModel"], {}, "markov_rank": 6, "target_layer_ids": [1, 2, 5],
      "enable_confidence_head": true, "confidence_head_with_markov": true}})",
      kSizes));
  expect_stored(tree, "fc.weight", {48, 3 * 48});
  expect_stored(tree, "markov_head.markov_w1.weight", {90, 6});
  expect_stored(tree, "markov_head.markov_w2.weight", {90, 6});
  expect_stored(tree, "confidence_head.proj.weight", {1, 54});
  expect_stored(tree, "confidence_head.proj.bias", {1});
  EXPECT_EQ(own_tensors(tree), 3U + 2 * 11 + 4);
  const ModuleTree legacy = described(fmt::format(
      R"({{"architectures": ["DSparkDraftModel"], {}, "dflash_config": {{"markov_rank": 6,
      "target_layer_ids": [1, 2, 5], "enable_confidence_head": true, "confidence_head_with_markov": true}}}})",
      kSizes));
  EXPECT_EQ(count(legacy).total, count(tree).total);
  expect_refused(R"({"architectures": ["DSparkDraftModel"], "model_type": "deepseek_v4"})", "qwen3");
  expect_refused(
      fmt::format(
          R"({{"architectures": ["Qwen3DSparkModel"], {}, "markov_rank": 6, "markov_head_type": "lstm"}})",
          kSizes),
      "markov_head_type");
}

// RedHatAI/gemma-4-31B-it-speculator.eagle3's config, whose layer stands in a section.
TEST(MoreFamilies, SpeculatorsNestTheLayersOfADraft) {
  const auto text = [](const char* type) {
    return fmt::format(R"({{"architectures": ["Eagle3DraftModel"], "draft_vocab_size": 32000,
      "eagle_aux_hidden_state_layer_ids": [2, 30, 57], "speculators_model_type": "eagle3", "target_hidden_size": null,
      "transformer_layer_config": {{"head_dim": 256, "hidden_size": 5376, "intermediate_size": 21504, "model_type": "{}",
      "num_attention_heads": 32, "num_hidden_layers": 1, "num_key_value_heads": 16, "vocab_size": 262144}}}})",
                       type);
  };
  const ModuleTree tree = described(text("llama"));
  expect_stored(tree, "fc.weight", {5376, 3 * 5376});
  expect_stored(tree, "layers.0.self_attn.v_proj.weight", {4096, 2 * 5376});
  expect_stored(tree, "layers.0.self_attn.o_proj.weight", {5376, 8192});
  expect_stored(tree, "lm_head.weight", {32000, 5376});
  EXPECT_FALSE(TensorLookup(tree).find("layers.0.self_attn.q_norm.weight"));
  EXPECT_TRUE(TensorLookup(described(text("qwen3"))).find("layers.0.self_attn.q_norm.weight"));
  expect_refused(text("gemma4"), "neither llama nor qwen3");
}

// vLLM's deepseek_eagle3.py: latents are made of twice the width in the first layer alone, what comes behind them is not.
TEST(MoreFamilies, Eagle3OverLatentAttention) {
  const auto tree_of_layers = [](int layers) {
    return described(
        fmt::format(R"({{"architectures": ["Eagle3DeepseekV2ForCausalLM"], "model_type": "deepseek_v3",
      "hidden_size": 40, "intermediate_size": 50, "num_hidden_layers": {}, "num_attention_heads": 4, "q_lora_rank": 40,
      "kv_lora_rank": 16, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 10, "vocab_size": 90,
      "draft_vocab_size": 30, "target_hidden_size": 56, "eagle_config": {{"eagle_aux_hidden_state_layer_ids": [1, 5]}}}})",
                    layers));
  };
  const ModuleTree one = tree_of_layers(1), two = tree_of_layers(2);
  expect_stored(one, "fc.weight", {40, 2 * 56});
  expect_stored(one, "midlayer.self_attn.q_a_proj.weight", {40, 80});
  expect_stored(one, "midlayer.self_attn.q_b_proj.weight", {40, 40});
  expect_stored(one, "midlayer.self_attn.kv_a_proj_with_mqa.weight", {20, 80});
  expect_stored(one, "midlayer.self_attn.kv_b_proj.weight", {64, 16});
  expect_stored(one, "midlayer.self_attn.o_proj.weight", {40, 40});
  expect_stored(two, "layers.0.self_attn.kv_a_proj_with_mqa.weight", {20, 80});
  expect_stored(two, "layers.1.self_attn.kv_a_proj_with_mqa.weight", {20, 40});
  expect_stored(two, "layers.0.hidden_norm.weight", {40});
  EXPECT_FALSE(TensorLookup(two).find("layers.1.hidden_norm.weight"));
}

// Without hidden states of several layers nothing joins them.
TEST(MoreFamilies, Eagle3MayTakeTheLastHiddenStateAsItIs) {
  const ModuleTree tree =
      described(R"({"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 40,
      "intermediate_size": 50, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 90,
      "eagle_config": {"use_aux_hidden_state": false}})");
  EXPECT_FALSE(TensorLookup(tree).find("fc.weight"));
  expect_stored(tree, "midlayer.self_attn.q_proj.weight", {40, 80});
}

// transformers' default configs of 5.24, which have 2,872,140,800 parameters beside a scale a layer, and 2,555,985,152.
TEST(MoreFamilies, AssistantsGuessForAnother) {
  const ModuleTree unified = described(R"({"architectures": ["Gemma4UnifiedAssistantForCausalLM"],
      "model_type": "gemma4_unified_assistant", "backbone_hidden_size": 3840, "text_config": {"model_type":
      "gemma4_unified_text", "num_kv_shared_layers": 30}})");
  EXPECT_EQ(count(unified).total, 2'872'140'800U + 30);
  expect_stored(unified, "pre_projection.weight", {2304, 7680});
  expect_stored(unified, "post_projection.weight", {3840, 2304});
  expect_stored(unified, "model.layers.5.self_attn.q_proj.weight", {4096, 2304});
  EXPECT_FALSE(TensorLookup(unified).find("model.layers.0.self_attn.k_proj.weight"));
  for (const AttentionGeometry& g : unified.attention) EXPECT_FALSE(g.cached);
  const auto small = [](const char* more) {
    return fmt::format(R"({{"architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant",
      "use_ordered_embeddings": true, "num_centroids": 7, "text_config": {{"model_type": "gemma4_text", "vocab_size": 98,
      "num_hidden_layers": 2{}}}}})",
                       more);
  };
  const ModuleTree ordered = described(small(""));
  expect_stored(ordered, "masked_embedding.centroids.weight", {7, 2304});
  expect_stored(ordered, "masked_embedding.token_ordering", {98});
  expect_refused(small(R"(, "num_kv_shared_layers": 1)"), "num_kv_shared_layers is not of all layers");
  const ModuleTree muse = described(R"({"model_type": "muse_glimmer_assistant"})");
  EXPECT_EQ(count(muse).total, 2'555'985'152U);
  expect_stored(muse, "encoder.fc.weight", {6656, 5 * 6656});
  EXPECT_EQ(muse.attention.front().window, 2048U);
}

TEST(MoreFamilies, EagleNormsNothingBeforeItsFirstLayer) {
  const ModuleTree tree = described(R"({"architectures": ["LlamaForCausalLMEagle"], "model_type": "llama",
      "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 1, "num_attention_heads": 32,
      "num_key_value_heads": 8, "vocab_size": 128256, "bias": false})");
  expect_stored(tree, "fc.weight", {4096, 8192});
  expect_stored(tree, "layers.0.mlp.down_proj.weight", {4096, 14336});
  EXPECT_FALSE(TensorLookup(tree).find("fc.bias"));
  EXPECT_FALSE(TensorLookup(tree).find("layers.0.input_layernorm.weight"));
  EXPECT_EQ(own_tensors(tree), 9U);
}

constexpr const char* kQwen3Text = R"("model_type": "qwen3", "hidden_size": 40, "intermediate_size": 50,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 10, "vocab_size": 90,
    "tie_word_embeddings": false)";

TEST(MoreFamilies, Step3VlSeesAsStep37Does) {
  const ModuleTree tree = described(fmt::format(
      R"({{"architectures": ["StepVLForConditionalGeneration"], "text_config": {{{}}}, "projector_bias": false,
      "vision_config": {{"width": 1536, "layers": 47, "image_size": 728, "patch_size": 14, "use_cls_token": false}}}})",
      kQwen3Text));
  expect_stored(tree, "model.layers.1.self_attn.q_norm.weight", {10});
  expect_stored(tree, "lm_head.weight", {90, 40});
  expect_stored(tree, "vision_model.transformer.resblocks.46.ls_1.gamma", {1536});
  expect_stored(tree, "vision_model.vit_downsampler2.weight", {6144, 3072, 3, 3});
  expect_stored(tree, "vit_large_projector.weight", {40, 6144});
}

TEST(MoreFamilies, IsaacHasTwoSpellings) {
  const ModuleTree tree = described(fmt::format(
      R"({{"architectures": ["IsaacForConditionalGeneration"], "model_type": "isaac", {}, "vision_config":
      {{"hidden_size": 24, "intermediate_size": 30, "num_hidden_layers": 3, "num_attention_heads": 2, "patch_size": 5,
      "num_patches": 16, "pixel_shuffle_scale_factor": 2}}}})",
      std::string(kQwen3Text).substr(std::string(kQwen3Text).find(',') + 1)));
  expect_stored(tree, "model.vision_embedding.0.embeddings.patch_embedding.weight", {24, 75});
  expect_stored(tree, "model.vision_embedding.0.embeddings.position_embedding.weight", {16, 24});
  expect_stored(tree, "model.vision_embedding.1.weight", {384, 96});
  expect_stored(tree, "model.vision_embedding.3.weight", {40, 384});
  for (const char* name :
       {"model.layers.1.mlp.up_proj.weight", "model.text_model.layers.1.mlp.up_proj.weight"})
    expect_stored(tree, name, {50, 40});
}

TEST(MoreFamilies, MossAudioHearsThroughWhispersBlocks) {
  const ModuleTree tree = described(fmt::format(
      R"({{"architectures": ["MossAudioModel"], "model_type": "moss_audio", "language_config": {{{}}},
      "adapter_hidden_size": 33, "audio_config": {{"d_model": 24, "output_dim": 20, "encoder_layers": 4,
      "encoder_ffn_dim": 31, "downsample_hidden_size": 6, "num_mel_bins": 20,
      "deepstack_encoder_layer_indexes": [1, 2]}}}})",
      kQwen3Text));
  expect_stored(tree, "language_model.layers.0.self_attn.o_proj.weight", {40, 40});
  expect_stored(tree, "language_model.embed_tokens.weight", {90, 40});
  expect_stored(tree, "lm_head.weight", {90, 40});
  expect_stored(tree, "audio_encoder.conv2.weight", {6, 6, 3, 3});
  expect_stored(tree, "audio_encoder.stem_proj.weight", {24, 18});
  expect_stored(tree, "audio_encoder.out_proj.weight", {20, 24});
  expect_stored(tree, "audio_adapter.gate_proj.weight", {33, 20});
  expect_stored(tree, "deepstack_audio_merger_list.1.down_proj.weight", {40, 33});
  EXPECT_FALSE(TensorLookup(tree).find("audio_encoder.layers.0.self_attn.k_proj.bias"));
  EXPECT_FALSE(TensorLookup(tree).find("deepstack_audio_merger_list.2.down_proj.weight"));
}

// Two tables, of which one is looked up alone and the other is the head, too.
TEST(MoreFamilies, T5GemmaComputesWithOneOfItsTables) {
  constexpr const char* kSide = R"({"vocab_size": 100, "hidden_size": 16, "intermediate_size": 20,
      "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 6})";
  const ModuleTree tree = described(
      fmt::format(R"({{"architectures": ["T5GemmaForConditionalGeneration"], "model_type": "t5gemma",
      "encoder": {0}, "decoder": {0}, "tie_word_embeddings": true}})",
                  kSide));
  const Totals totals = count(tree);
  EXPECT_EQ(totals.total - totals.active_without_embedding, 1600U);
  const std::uint64_t attention = 16 * (2 * 12 + 2 * 6), mlp = 3 * 16 * 20;
  EXPECT_EQ(totals.matmul_active, 1600 + 3 * attention + 2 * mlp);
  expect_refused(R"({"architectures": ["T5GemmaForConditionalGeneration"], "model_type": "t5gemma"})",
                 "encoder");
}

}  // namespace
}  // namespace assay
