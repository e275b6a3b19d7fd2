// Models whose own code builds the same tensors from small configs (oracle_test.cpp), held to what the hub counts of their
// weights or that code makes of the published config; and those of which only a loader is known, by names and shapes.
#include <gtest/gtest.h>

#include "tests/support/described.h"

namespace assay {
namespace {

using test::described, test::expect_refused, test::expect_stored;

const std::string kJanusPro7b =
    R"({"architectures": ["MultiModalityCausalLM"], "model_type": "multi_modality",
    "aligner_config": {"cls": "MlpProjector", "params": {"depth": 2, "input_dim": 1024, "n_embed": 4096,
    "projector_type": "mlp_gelu"}}, "gen_aligner_config": {"cls": "MlpProjector", "params": {"depth": 2,
    "input_dim": 8, "n_embed": 4096, "projector_type": "mlp_gelu"}}, "gen_head_config": {"cls": "vision_head",
    "params": {"image_token_embed": 4096, "image_token_size": 16384, "n_embed": 4096}}, "gen_vision_config":
    {"cls": "VQ-16", "params": {"image_token_size": 16384, "n_embed": 8}}, "language_config":
    {"model_type": "llama", "num_hidden_layers": 30, "vocab_size": 102400}, "vision_config":
    {"cls": "CLIPVisionTower", "params": {"image_size": 384, "model_name": "siglip_large_patch16_384",
    "select_feature": "same", "select_layer": -1}}})";
const std::string kBagel7b = R"({"architectures": ["BagelForConditionalGeneration"], "model_type": "bagel",
    "latent_patch_size": 2, "max_latent_size": 64, "vit_max_num_patch_per_side": 70, "llm_config":
    {"model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "qk_norm": true},
    "vit_config": {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
    "num_hidden_layers": 27, "num_attention_heads": 16, "image_size": 980, "patch_size": 14},
    "vae_config": {"z_channels": 16, "downsample": 8}})";
const std::string kFlorence2Large = R"({"architectures": ["Florence2ForConditionalGeneration"],
    "model_type": "florence2", "text_config": {"vocab_size": 51289, "d_model": 1024,
    "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_attention_heads": 16, "max_position_embeddings": 1024},
    "vision_config": {"model_type": "davit", "patch_size": [7, 3, 3, 3], "patch_prenorm": [false, true, true,
    true], "dim_embed": [256, 512, 1024, 2048], "depths": [1, 1, 9, 1], "projection_dim": 1024,
    "visual_temporal_embedding": {"type": "COSINE", "max_temporal_embeddings": 100},
    "image_pos_embed": {"type": "learned_abs_2d", "max_pos_embeddings": 50}}})";
const std::string kHymba =
    R"({"architectures": ["HymbaForCausalLM"], "model_type": "hymba", "vocab_size": 32001,
    "hidden_size": 1600, "intermediate_size": 5504, "num_hidden_layers": 32, "num_attention_heads": 25,
    "num_key_value_heads": 5, "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_dt_rank": 100, "mamba_expand": 2,
    "num_memory_tokens": 128, "sliding_window": 1024, "global_attn_idx": [0, 15, 31],
    "tie_word_embeddings": true, "kv_reuse_every_i_layer": -1, "kv_reuse_group": [[1, 2], [3, 4], [5, 6], [7, 8],
    [9, 10], [11, 12], [13, 14], [16, 17, 18], [19, 20], [21, 22], [23, 24], [25, 26], [27, 28], [29, 30]]})";

// nvidia/Hymba-1.5B-Base
TEST(OwnCodeTotals, OfHymbaIsThatOfTheHub) {
  EXPECT_EQ(count(described(kHymba)).all(), 1'522'797'824U);
}

// What the code makes of the published configs on the meta device.
TEST(OwnCodeTotals, AreThoseOfTheCode) {
  EXPECT_EQ(count(described(kJanusPro7b)).all(), 7'420'368'523U);
  EXPECT_EQ(count(described(kFlorence2Large)).all(), 770'173'952U);
  // moondream2, whose config says nothing
  const std::string silent =
      R"({"architectures": ["HfMoondream"], "model_type": "moondream1", "config": {}})";
  EXPECT_EQ(count(described(silent)).all(), 1'927'237'104U);
  EXPECT_EQ(count(described(kBagel7b)).all(), 14'607'260'128U + 83'819'683U);  // and its VAE
}

TEST(OwnCodeTotals, OneTokenOfBagelMeetsTheHalfThatReads) {
  const ModuleTree tree = described(kBagel7b);
  EXPECT_EQ(count(tree).total, count(tree).active);
  EXPECT_EQ(count(tree).total, 7'615'623'680U);  // Qwen2.5-7B with norms of queries and keys
}

TEST(OwnCodeTotals, HymbaCachesWhatItsLayersDoNotShare) {
  const ModuleTree tree = described(kHymba);
  std::size_t cached = 0, windowed = 0;
  for (const AttentionGeometry& geometry : tree.attention) {
    if (geometry.cached) cached += geometry.layers.size();
    if (geometry.window == 1024) windowed += geometry.layers.size();
    EXPECT_EQ(geometry.qk_head_dim, 64U);
    EXPECT_EQ(geometry.v_head_dim, 128U);
  }
  EXPECT_EQ(cached, 17U);
  EXPECT_EQ(windowed, 29U);
}

// vLLM 0.33's moondream3.py. What tells places is not described; its card: 9B, 2B of them for a token.
TEST(OwnCodeLoaders, Moondream3) {
  const ModuleTree tree =
      described(R"({"architectures": ["HfMoondream"], "model_type": "moondream3", "config": {}})");
  EXPECT_EQ(tree.not_counted.size(), 1U);
  EXPECT_NEAR(static_cast<double>(count(tree).all()), 9.27e9, 0.03e9);
  expect_stored(tree, "model.text.wte", {51200, 2048});
  expect_stored(tree, "model.text.blocks.3.mlp.fc1.weight", {8192, 2048});
  expect_stored(tree, "model.text.blocks.4.mlp.fc1.weight", {64, 2048, 2048});
  expect_stored(tree, "model.text.blocks.4.mlp.fc2.weight", {64, 2048, 1024});
  expect_stored(tree, "model.text.blocks.23.mlp.router.bias", {64});
  expect_stored(tree, "model.text.blocks.0.attn.tau.wq", {32, 6144});
  expect_stored(tree, "model.text.blocks.0.attn.tau.alpha", {32});
  expect_stored(tree, "model.vision.pos_emb", {1, 729, 1152});
  EXPECT_EQ(tree.experts, 64U);
  EXPECT_EQ(tree.experts_per_token, 8U);
}

// Names and shapes of the code beside the weights.
TEST(OwnCodeLoaders, NemotronParse) {
  const ModuleTree tree = described(R"({"architectures": ["NemotronParseForConditionalGeneration"],
      "model_type": "nemotron_parse", "tie_word_embeddings": false, "decoder": {"d_model": 1024,
      "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "decoder_layers": 10, "vocab_size": 52352,
      "tie_word_embeddings": false}, "encoder": {"patch_size": 16, "args": {"model": "vit_huge_patch16_224",
      "cls_token_per_teacher": true, "cpe_max_size": 2048, "register_multiple": 8, "teachers":
      [{"name": "clip"}, {"name": "siglip"}, {"name": "dino_v2"}, {"name": "sam", "use_summary": false}]}}})");
  expect_stored(tree, "encoder.model_encoder.radio_model.model.blocks.31.attn.qkv.weight", {3840, 1280});
  expect_stored(tree, "encoder.model_encoder.radio_model.model.patch_generator.cls_token.token", {8, 1280});
  expect_stored(tree, "encoder.conv2.weight", {1024, 1024, 1, 4});
  expect_stored(tree, "encoder.sum_proj.weight", {1024, 3840});
  expect_stored(tree, "decoder.layers.9.encoder_attn.k_proj.bias", {1024});
  expect_stored(tree, "decoder.layernorm_embedding.weight", {1024});
  expect_stored(tree, "lm_head.weight", {52352, 1024});
  EXPECT_FALSE(TensorLookup(tree).find("decoder.embed_positions.weight").has_value());
}

// SGLang 0.5.23's iquest_q1.py.
TEST(OwnCodeLoaders, IquestQ1) {
  const ModuleTree tree =
      described(R"({"architectures": ["IQuestQ1ForCausalLM"], "model_type": "iquest_q1"})");
  expect_stored(tree, "model.layers.0.mlp.gate_proj.weight", {12288, 3072});
  expect_stored(tree, "model.layers.0.ffn_out_norm.weight", {3072});
  expect_stored(tree, "model.layers.87.mlp.experts.fc", {256, 3072, 3072});
  expect_stored(tree, "model.layers.87.mlp.experts.proj", {256, 3072, 1536});
  expect_stored(tree, "model.layers.1.mlp.router.weight", {256, 3072});
  expect_stored(tree, "model.layers.1.self_attn.sink_k", {8, 128});
  EXPECT_FALSE(TensorLookup(tree).find("model.layers.1.ffn_out_norm.weight").has_value());
  std::size_t windowed = 0;
  for (const AttentionGeometry& geometry : tree.attention)
    if (geometry.window == 4096) windowed += geometry.layers.size();
  EXPECT_EQ(windowed, 63U);
}

// vLLM 0.33's alice_ai.py.
TEST(OwnCodeLoaders, AliceAi) {
  const std::string config = R"({"architectures": ["AliceAIForCausalLM"], "vocab_size": 97, "hidden_size": 48,
      "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10,
      "linear_num_key_heads": 5, "linear_num_value_heads": 5, "linear_key_head_dim": 12,
      "linear_value_head_dim": 12, "linear_conv_kernel_dim": 4, "num_experts": 7, "num_experts_per_tok": 2,
      "moe_intermediate_size": 30, "shared_expert_intermediate_size": 34, "block_attn_res_block_size": 2,
      "layer_types": ["linear_attention", "linear_attention", "full_attention"]})";
  const ModuleTree tree = described(config);
  expect_stored(tree, "model.layers.0.linear_attn.f_b_proj.weight", {60, 12});
  expect_stored(tree, "model.layers.0.linear_attn.a_log_bias", {1, 1, 5, 1});
  expect_stored(tree, "model.layers.2.self_attn.q_proj.weight", {120, 48});
  expect_stored(tree, "model.layers.2.mlp.gate.e_score_correction_bias", {7});
  expect_stored(tree, "model.layers.2.mlp.shared_expert.up_proj.weight", {34, 48});
  expect_stored(tree, "model.layers.2.mlp.shared_expert_gate.weight", {1, 48});
  expect_stored(tree, "model.layers.1.attn_res_proj.weight", {1, 48});
  expect_stored(tree, "model.attnres_final.res_norm_weight", {48});
  EXPECT_FALSE(TensorLookup(tree).find("model.layers.0.attn_res_proj.weight").has_value());
  expect_stored(tree, "model.layers.0.mlp_res_norm_weight", {48});
}

TEST(OwnCodeTotals, WhatIsNotDescribedIsRefused) {
  expect_refused(R"({"architectures": ["MultiModalityCausalLM"], "language_config": {"model_type": "llama"},
      "vision_und_enc_config": {}})",
                 "JanusFlow");
  expect_refused(R"({"architectures": ["MultiModalityCausalLM"], "language_config": {"model_type": "llama"},
      "aligner_config": {"params": {}}, "vision_config": {"cls": "HybridVisionTower", "params": {}}})",
                 "high_res_cfg");
  expect_refused(R"({"architectures": ["HymbaForCausalLM"]})", "vocab_size");
  expect_refused(R"({"architectures": ["AliceAIForCausalLM"]})", "vocab_size");
  expect_refused(R"({"architectures": ["NemotronParseForConditionalGeneration"]})", "decoder");
  expect_refused(R"({"architectures": ["FireRedASR2ForConditionalGeneration"], "vocab_size": 9})",
                 "audio_encoder_conf");
  expect_refused(R"({"architectures": ["IQuestQ1ForCausalLM"], "num_hidden_layers": 5})",
                 "num_hidden_layers");
  expect_refused(R"({"architectures": ["YuanForCausalLM"], "vocab_size": 9, "hidden_size": 8,
      "num_attention_heads": 2, "moe_config": {}})",
                 "moe_num_experts");
}

}  // namespace
}  // namespace assay
