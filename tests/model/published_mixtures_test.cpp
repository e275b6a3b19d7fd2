// Totals that other people published for mixtures of which transformers has no class, and for PLaMo 3.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::expect_stored;
using test::tree_of;

struct Tensors {
  std::size_t experts = 0, others = 0, prediction = 0, tower = 0;
  std::size_t all() const { return experts + others + prediction; }
};
// As a checkpoint stores them.
Tensors tensors_of(const ModuleTree& tree) {
  Tensors found;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence& where) {
    if (spec.storage != Storage::own) return;
    std::size_t& count = where.tower                        ? found.tower
                         : spec.part == Part::routed_expert ? found.experts
                         : where.mtp                        ? found.prediction
                                                            : found.others;
    count += where.copies;
  });
  return found;
}

// Embedding and head, which cards often leave out.
std::uint64_t tables_of(const ModuleTree& tree) {
  return tree.vocabulary * tree.hidden_size * (tree.tied_embeddings ? 1 : 2);
}

// sarvamai/sarvam-30b on the hub: 32,152,650,368 parameters in 7,122 tensors; 2.4B activated but for embedding and head (its
// card).
TEST(PublishedMixtures, OfSarvam30b) {
  const ModuleTree tree = tree_of("SarvamMoEForCausalLM", R"("model_type": "sarvam_moe", "vocab_size": 262144,
      "hidden_size": 4096, "intermediate_size": 8192, "num_hidden_layers": 19, "num_attention_heads": 64,
      "num_key_value_heads": 4, "head_dim": 64, "num_experts": 128, "num_experts_per_tok": 6, "num_shared_experts": 1,
      "moe_intermediate_size": 1024, "moe_shared_expert_intermediate_size": 1024, "first_k_dense_replace": 1)");
  const Totals totals = count(tree);
  EXPECT_EQ(totals.total, 32'152'650'368);
  EXPECT_NEAR(static_cast<double>(totals.active - tables_of(tree)), 2.4e9, 0.05e9);
  EXPECT_EQ(tensors_of(tree).all(), 7'122);
  expect_stored(tree, "model.layers.18.attention.query_key_value.weight", {72 * 64, 4096});
  expect_stored(tree, "model.layers.18.mlp.gate.expert_bias", {128});
}

// sarvamai/sarvam-105b: 106B, 10.3B activated (its card), embedding and head aside; sizes as Megatron Bridge's test has them.
TEST(PublishedMixtures, OfSarvam105b) {
  const ModuleTree tree = tree_of("SarvamMLAForCausalLM", R"("model_type": "sarvam_mla", "vocab_size": 262144,
      "hidden_size": 4096, "intermediate_size": 16384, "moe_intermediate_size": 2048, "num_hidden_layers": 32,
      "num_attention_heads": 64, "num_experts": 128, "num_experts_per_tok": 8, "num_shared_experts": 1,
      "first_k_dense_replace": 1, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128)");
  const Totals totals = count(tree);
  EXPECT_EQ(totals.total, 106'031'767'424);
  EXPECT_NEAR(static_cast<double>(totals.active - tables_of(tree)), 10.3e9, 0.05e9);
  expect_stored(tree, "model.layers.31.self_attn.q_proj.weight", {64 * 192, 4096});
  expect_stored(tree, "model.layers.31.mlp.gate.e_score_correction_bias", {128});
}

// inclusionAI/Ling-2.6-flash: 104B, 7.4B activated (its card); a quantization of it lists 24,576 tensors of experts and 439
// others, those of prediction among them.
TEST(PublishedMixtures, OfLing26Flash) {
  const ModuleTree tree =
      tree_of("BailingMoeV2_5ForCausalLM", R"("model_type": "bailing_hybrid", "vocab_size": 157184,
      "hidden_size": 4096, "intermediate_size": 9216, "num_hidden_layers": 32, "num_attention_heads": 32, "head_dim": 128,
      "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
      "num_experts": 256, "num_experts_per_tok": 8, "num_shared_experts": 1, "moe_intermediate_size": 1024,
      "moe_shared_expert_intermediate_size": 1024, "moe_router_enable_expert_bias": true, "first_k_dense_replace": 1,
      "layer_group_size": 8, "group_norm_size": 4, "num_nextn_predict_layers": 1, "use_qk_norm": true)");
  const Totals totals = count(tree);
  EXPECT_EQ(totals.total, 104'186'915'584);
  EXPECT_EQ(totals.active, 7'449'488'128);
  const Tensors tensors = tensors_of(tree);
  EXPECT_EQ(tensors.experts, 24'576);
  EXPECT_EQ(tensors.others + tensors.prediction, 439);
  ASSERT_EQ(tree.recurrent.size(), 1);
  EXPECT_EQ(tree.recurrent[0].layers.size(), 28);
  EXPECT_EQ(tree.recurrent[0].state_values, 524'288);
  expect_stored(tree, "model.layers.30.attention.query_key_value.weight", {3 * 4096, 4096});
  expect_stored(tree, "model.layers.31.attention.q_a_proj.weight", {1536, 4096});
  expect_stored(tree, "model.layers.32.attention.dense.weight", {4096, 4096});
}

// inclusionAI's Ling 2.5 and Ring 2.5: 1T, 63B activated (their cards).
TEST(PublishedMixtures, OfRing25) {
  const Totals totals = count(tree_of("BailingMoeV2_5ForCausalLM", R"("model_type": "bailing_hybrid",
      "vocab_size": 157184, "hidden_size": 8192, "intermediate_size": 18432, "num_hidden_layers": 80,
      "num_attention_heads": 64, "head_dim": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "num_experts": 256,
      "num_experts_per_tok": 8, "num_shared_experts": 1, "moe_intermediate_size": 2048,
      "moe_shared_expert_intermediate_size": 2048, "first_k_dense_replace": 4, "layer_group_size": 8,
      "num_nextn_predict_layers": 0)"));
  EXPECT_NEAR(static_cast<double>(totals.total), 1.012e12, 0.001e12);
  EXPECT_NEAR(static_cast<double>(totals.active), 63e9, 1e9);
}

// bharatgenai/Param2-17B-A2.4B-Thinking: 17B in 34 GB, 2.4B activated (its card), which lies between ours without and with the
// embedding.
TEST(PublishedMixtures, OfParam2) {
  const ModuleTree tree = tree_of("Param2MoEForCausalLM", R"("model_type": "param2moe", "vocab_size": 128008,
      "hidden_size": 2048, "intermediate_size": 9216, "num_hidden_layers": 21, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 64, "num_experts": 64, "num_experts_per_tok": 6, "num_shared_experts": 2,
      "moe_intermediate_size": 2048, "moe_shared_expert_intermediate_size": 4096, "first_k_dense_replace": 1,
      "tie_word_embeddings": true)");
  const Totals totals = count(tree);
  EXPECT_NEAR(static_cast<double>(totals.total), 17.15e9, 0.05e9);
  EXPECT_LT(totals.active - tables_of(tree), 2'400'000'000);
  EXPECT_GT(totals.active, 2'400'000'000);
  expect_stored(tree, "model.layers.20.mlp.shared_experts.gate_proj.weight", {4096, 2048});
}

// deepseek-ai/DeepSeek-V4.1-Flash: sums of the shapes that vLLM 0.33 allocates, by hand. Its report says 552B without the
// tables of n-grams, and 16B activated; its index has an embedding of n-grams in layers 1 and 14 alone, entries made in
// four layers and indexers in eight.
TEST(PublishedMixtures, OfDeepseekV41Flash) {
  const ModuleTree tree = tree_of("DeepseekV41ForCausalLM", R"("model_type": "deepseek_v41", "text_config":
      {"model_type": "deepseek_v41_text", "vocab_size": 129280, "hidden_size": 5120, "moe_intermediate_size": 2304,
      "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512,
      "qk_rope_head_dim": 64, "q_lora_rank": 1280, "o_lora_rank": 1024, "o_groups": 8, "tie_word_embeddings": false,
      "n_routed_experts": 384, "n_shared_experts": 1, "num_experts_per_tok": 6, "sliding_window": 128,
      "compress_ratios": [0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
      1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0], "kv_source_layer_ids": [2, 8, 14, 20], "index_source_layer_ids":
      [2, 8, 14, 20, 24, 28, 32, 36], "index_n_heads": 32, "index_head_dim": 128, "index_topk": 512, "hc_mult": 4,
      "engram_layer_ids": [1, 14], "engram_num_embeddings": [384006168, 384016682], "engram_max_ngram_size": 4,
      "engram_n_heads": 8, "engram_head_dim": 256, "num_nextn_predict_layers": 3, "dspark_target_layer_ids":
      [37, 38, 39], "dspark_markov_rank": 256, "dspark_n_routed_experts": 128, "dspark_num_experts_per_tok": 3},
      "vision_config": {"model_type": "deepseek_v41_vision", "num_hidden_layers": 32, "hidden_size": 1024,
      "num_attention_heads": 16, "intermediate_size": 2816, "patch_size": 14, "downsample_ratio": 3})");
  const Totals totals = count(tree);
  const std::uint64_t tables = (384'006'168ULL + 384'016'682) * 256,
                      grams = 2 * (25600ULL * 6144 + 2 * 4 * 5120);
  EXPECT_EQ(totals.total, 551'566'180'464U + tables + grams);
  EXPECT_EQ(totals.active_without_embedding, 16'477'847'664U - 129280U * 5120 + grams);
  EXPECT_EQ(totals.mtp_own, 14'225'362'530U);
  EXPECT_EQ(totals.mtp_active, 954'322'530U);
  EXPECT_EQ(totals.towers, 485'268'480U);
  expect_stored(tree, "layers.14.engram.embed.weight", {384'016'682, 256});
  expect_stored(tree, "layers.20.attn.compressor.wkv.weight", {512, 5120});
  expect_stored(tree, "layers.24.attn.indexer.wq_b.weight", {4096, 1280});
  expect_stored(tree, "layers.39.ffn.gate.bias_vl", {384});
  expect_stored(tree, "mtp.0.main_proj.weight", {5120, 15360});
  expect_stored(tree, "mtp.2.markov_head.head.weight", {129280, 256});
  expect_stored(tree, "vision.blocks.3.attn.wo.bias", {1024});
  const TensorLookup names(tree);
  for (const char* none : {"layers.20.attn.compressor.wgate.weight", "layers.3.attn.compressor.wkv.weight",
                           "layers.24.attn.indexer.wk.weight", "mtp.1.main_proj.weight", "hc_head_fn"})
    EXPECT_FALSE(names.find(none)) << none;
}

// deepseek-ai/DeepSeek-V4-Flash-0731: the same model, and three layers that draft; num_nextn_predict_layers still says 1. Their
// sum is that of the shapes that vLLM 0.33 allocates, by hand.
TEST(PublishedMixtures, OfDeepseekV4FlashThatDrafts) {
  const std::string sizes = R"("hidden_size": 4096, "vocab_size": 129280, "num_hidden_layers": 43,
      "num_attention_heads": 64, "head_dim": 512, "q_lora_rank": 1024, "o_lora_rank": 1024, "o_groups": 8, "hc_mult": 4,
      "n_routed_experts": 256, "num_experts_per_tok": 6, "moe_intermediate_size": 2048, "index_n_heads": 64,
      "num_hash_layers": 3, "num_nextn_predict_layers": 1, "compress_ratios": [0, 0, 4, 128, 4, 128, 4, 128, 4, 128, 4,
      128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4,
      128, 4, 128, 4, 0)";
  const Totals before = count(tree_of("DeepseekV4ForCausalLM", sizes + "]"));
  EXPECT_EQ(before.total, 284'332'240'471U);
  EXPECT_EQ(before.mtp_own, 6'610'048'891U);
  const ModuleTree tree =
      tree_of("DeepseekV4ForCausalLM", sizes + R"(, 0, 0], "dspark_target_layer_ids": [40, 41, 42],
      "dspark_markov_rank": 256)");
  EXPECT_EQ(count(tree).total, before.total);
  EXPECT_EQ(count(tree).mtp_own, 19'845'850'983U);
  EXPECT_EQ(count(tree).mtp_active, 971'482'983U);
  expect_stored(tree, "mtp.0.main_proj.weight", {4096, 12288});
  expect_stored(tree, "mtp.2.markov_head.markov_w2.weight", {129280, 256});
  expect_stored(tree, "mtp.2.confidence_head.proj.weight", {1, 4352});
  expect_stored(tree, "mtp.2.hc_head_fn", {4, 16384});
  EXPECT_FALSE(TensorLookup(tree).find("mtp.0.e_proj.weight"));
}

// NaiveAI-Labs/Naive-N0.5-Flash: sums of the shapes in the code that it brings (modeling_naive_n05_flash.py), by hand;
// its card says 309B and 15.5B.
TEST(PublishedMixtures, OfNaiveN05Flash) {
  const ModuleTree tree = tree_of("NaiveN05FlashForCausalLM", R"("model_type": "naive_n05_flash",
      "add_full_attention_sink_bias": false, "add_swa_attention_sink_bias": true, "head_dim": 192,
      "hidden_size": 4096, "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1,
      0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0], "intermediate_size": 16384,
      "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": null, "num_attention_heads": 64,
      "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4, "sliding_window": 128,
      "sliding_window_size": 128, "swa_num_key_value_heads": 8, "swa_v_head_dim": 128, "v_head_dim": 128,
      "vocab_size": 152576, "enable_dsa": true, "index_top_k": 1024, "index_head_dim": 128, "index_n_heads": 16)");
  EXPECT_EQ(count(tree).total, 308'859'589'056U);
  EXPECT_EQ(count(tree).active, 15'526'744'512U);
  EXPECT_EQ(count(tree).mtp_own, 0U);
  expect_stored(tree, "model.layers.5.self_attn.indexer.wq.weight", {2048, 4096});
  expect_stored(tree, "model.layers.5.self_attn.indexer.k_norm.bias", {128});
  expect_stored(tree, "model.layers.5.self_attn.indexer.weights_proj.weight", {16, 4096});
  expect_stored(tree, "model.layers.1.self_attn.attention_sink_bias", {64});
  ASSERT_EQ(tree.attention.size(), 2U);
  EXPECT_EQ(tree.attention[0].indexer_top_k, 1024U);
  EXPECT_EQ(tree.attention[0].window, 0U);
  EXPECT_EQ(tree.attention[1].window, 128U);
}

// IFM/K2-Horizon-3.7B and 7B as the hub counts them; the GGUF of MoVA-36B-A4B has 74.9 GB of BF16, and its
// name leaves embedding and head out.
TEST(PublishedMixtures, OfK2Horizon) {
  constexpr const char* kDense = R"("model_type": "k2_horizon", "vocab_size": 250624, "hidden_size": {},
      "intermediate_size": {}, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "num_experts": 0, "num_experts_per_tok": 0, "moe_intermediate_size": 0, "mova_num_experts": 0,
      "attention_gate_func": null, "query_key_norm": false, "layernorm_num_groups": 2, "mlp_only_layers": [0, 1, 2])";
  EXPECT_EQ(count(tree_of("K2HorizonForCausalLM", fmt::format(kDense, 2560, 10240))).total, 5'058'255'360);
  EXPECT_EQ(count(tree_of("K2HorizonForCausalLM", fmt::format(kDense, 4096, 12288))).total, 8'999'178'240);
  const ModuleTree mova = tree_of("K2HorizonForCausalLM", R"("model_type": "k2_horizon", "vocab_size": 250624,
      "hidden_size": 2560, "intermediate_size": 6144, "num_hidden_layers": 48, "num_attention_heads": 32,
      "num_key_value_heads": 8, "head_dim": 128, "decoder_sparse_step": 1, "mlp_only_layers": [0, 1, 2],
      "moe_gate_bias": true, "moe_intermediate_size": 768, "mova_num_experts": 64, "mova_num_experts_per_tok": 4,
      "num_experts": 100, "num_experts_per_tok": 8, "num_shared_experts": 1, "attention_gate_func": "softplus",
      "query_key_norm": false)");
  const Totals totals = count(mova);
  EXPECT_EQ(totals.total, 37'444'792'020);
  EXPECT_EQ((totals.total - tables_of(mova)) / 1'000'000'000, 36);
  EXPECT_EQ((totals.active - tables_of(mova)) / 1'000'000'000, 4);
  expect_stored(mova, "model.layers.47.self_attn.v_experts.63.weight", {1024, 2560});
  expect_stored(mova, "model.layers.47.self_attn.v_router.bias", {64});
  expect_stored(mova, "model.layers.47.self_attn.gate_proj.weight", {4096, 2560});
  expect_stored(mova, "model.layers.2.self_attn.v_proj.weight", {1024, 2560});
}

// pfnet/plamo-3-nict-8b-base, of which the hub counts 8,091,348,992.
TEST(PublishedMixtures, OfPlamo3) {
  const ModuleTree tree = tree_of("Plamo3ForCausalLM", R"("model_type": "plamo3", "vocab_size": 107520,
      "intermediate_size": 16384)");
  EXPECT_EQ(count(tree).total, 8'091'348'992);
  ASSERT_EQ(tree.attention.size(), 2);  // 28 of 32 layers with a window, as llama.cpp's caches have them
  EXPECT_EQ(tree.attention[0].layers.size() + tree.attention[1].layers.size(), 32);
  EXPECT_EQ(std::max(tree.attention[0].layers.size(), tree.attention[1].layers.size()), 28);
  expect_stored(tree, "model.layers.layers.31.mixer.qkv_proj.weight", {5120, 4096});
}

// openPangu-Ultra-MoE-718B: 718B, 39B activated (its README), which hold where the embedding is left out.
TEST(PublishedMixtures, OfPanguUltra) {
  const ModuleTree tree =
      tree_of("PanguUltraMoEForCausalLM", R"("model_type": "pangu_ultra_moe", "sandwich_norm": true)");
  const Totals totals = count(tree);
  EXPECT_EQ(totals.total - 153'600ULL * 7'680, 717'914'119'680);
  EXPECT_NEAR(static_cast<double>(totals.active_without_embedding), 39e9, 0.5e9);
  EXPECT_GT(totals.mtp_own, 12'000'000'000);
  expect_stored(tree, "model.layers.61.pre_mlp_layernorm.weight", {7680});
  const Totals same =
      count(tree_of("PanguUltraMoEForCausalLM", R"("sandwich_norm": true, "num_dense_layers": 3,
      "attention_q_lora_dim": 1536, "attention_kv_lora_dim": 512, "attention_qk_dim": 128, "attention_qk_rope_dim": 64,
      "attention_v_dim": 128, "num_routed_experts": 256, "num_shared_experts": 1, "num_mtp_layers": 1)"));
  EXPECT_EQ(same.total, totals.total);
}

// openPangu-R-72B: 74B, 15B activated (its makers, aitntnews.com of December 2025).
TEST(PublishedMixtures, OfPanguR) {
  const ModuleTree tree = tree_of("PanguProMoEV2ForCausalLM", R"("vocab_size": 153600, "hidden_size": 4608,
      "intermediate_size": 10240, "num_hidden_layers": 50, "num_attention_heads": 64, "num_key_value_heads": 4,
      "qk_nope_dim": 128, "qk_rope_dim": 64, "v_channels": 128, "param_sink_number": 128, "param_sink_with_value": true,
      "first_k_dense_replace": 4, "n_routed_experts": 80, "n_shared_experts": 2, "num_experts_per_tok": 8,
      "moe_intermediate_size": 1280, "sandwich_norm": true, "router_enable_expert_bias": true,
      "num_nextn_predict_layers": 1, "tie_word_embeddings": false)");
  const Totals totals = count(tree);
  EXPECT_NEAR(static_cast<double>(totals.total), 74e9, 0.5e9);
  EXPECT_NEAR(static_cast<double>(totals.active), 15e9, 0.5e9);
  expect_stored(tree, "model.layers.49.self_attn.param_sink_key", {128, 4, 192});
  expect_stored(tree, "model.layers.49.mlp.e_score_correction_bias", {80});
  EXPECT_THROW(tree_of("PanguProMoEV2ForCausalLM", R"("vocab_size": 153600)"), Error);
}

// inclusionAI/Ling-3.0-flash-VL: the text of Ling 3 flash, which llama.cpp's file of the tower has in 334 tensors, one of ours
// in halves.
TEST(PublishedMixtures, OfLing3Vl) {
  const ModuleTree tree =
      tree_of("BailingMoeV3VLForConditionalGeneration", R"("model_type": "bailing_moe_v3_vl",
      "vision_config": {"disable_merger_proj": true, "deepstack_visual_indexes": [8, 16, 24]}, "text_config": {
      "model_type": "bailing_hybrid", "vocab_size": 157184, "hidden_size": 2560, "num_hidden_layers": 42,
      "num_attention_heads": 32, "head_dim": 128, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
      "v_head_dim": 128, "short_conv_kernel_size": 4, "no_kda_lora": true,
      "gated_attention_proj_granularity_type": "head_wise", "num_experts_per_tok": 8, "num_shared_experts": 1,
      "intermediate_size": 6144, "first_k_dense_replace": 2, "layer_group_size": 6, "q_lora_rank": null,
      "num_experts": 512, "moe_intermediate_size": 768, "moe_shared_expert_intermediate_size": 768})");
  EXPECT_EQ(count(tree).total, 124'414'211'552);
  EXPECT_EQ(tensors_of(tree).tower, 333);
  expect_stored(tree, "linear_proj.0.weight", {2560, 4608});
  expect_stored(tree, "model.visual.merger.norm.bias", {1152});
  expect_stored(tree, "visual.blocks.26.attn.qkv.weight", {3456, 1152});
  EXPECT_FALSE(TensorLookup(tree).find("model.visual.merger.linear_fc1.weight").has_value());
}

// stepfun-ai/Step-Audio-TTS-3B and EditX: "3B", of which no exact number is published; sizes as engines' configs of them have
// them: 2·74752·3072 + 3072 + 32·(2·3072 + 2·3072² + 2·3072·256 + 3·3072·8192).
TEST(PublishedMixtures, OfStep1) {
  const ModuleTree tree = tree_of("Step1ForCausalLM", R"("model_type": "step1", "vocab_size": 74752,
      "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 48,
      "num_attention_groups": 4, "tie_word_embeddings": false, "rms_norm_eps": 1e-5, "max_seq_len": 32768)");
  EXPECT_EQ(count(tree).total, 3'529'706'496);
  expect_stored(tree, "model.layers.31.self_attn.k_proj.weight", {256, 3072});
}

}  // namespace
}  // namespace assay
