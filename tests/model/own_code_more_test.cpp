// More models of code of their own: those whose code was read and does not build here, by names and shapes; those of which a
// total is published, by it.
#include <gtest/gtest.h>

#include "tests/support/described.h"

namespace assay {
namespace {

using test::described, test::expect_refused, test::expect_stored;

const std::string kDeepseekVl7b =
    R"({"architectures": ["MultiModalityCausalLM"], "model_type": "multi_modality",
    "aligner_config": {"cls": "MlpProjector", "params": {"depth": 2, "input_dim": 1024, "n_embed": 4096,
    "projector_type": "low_high_hybrid_split_mlp_gelu"}}, "language_config": {"model_type": "llama",
    "num_hidden_layers": 30, "vocab_size": 102400}, "vision_config": {"cls": "HybridVisionTower", "params":
    {"concat_type": "tuple", "high_res_cfg": {"image_size": 1024, "model_name": "sam_b_downsample",
    "output_dim": 1024, "select_layer": -1}, "low_res_cfg": {"image_size": 384,
    "model_name": "siglip_large_patch16_384", "output_dim": 1024, "select_layer": -1}}}})";
const std::string kLogics =
    R"({"architectures": ["LogicsForConditionalGeneration"], "model_type": "logics", "hidden_size": 4096,
    "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": false, "mm_hidden_size": 4224,
    "mm_projector_type": "mlp2x_gelu", "mm_vision_tower": "convnext-1024,siglip2-384", "siglip_config":
    {"hidden_size": 1152, "image_size": 384, "intermediate_size": 4304, "model_type": "siglip_vision_model",
    "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}})";
const std::string kXgenMm =
    R"({"architectures": ["XGenMMModelForConditionalGeneration"], "model_type": "xgenmm", "text_config":
    {"model_type": "phi3", "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32}, "vision_encoder_config":
    {"model_name": "google/siglip-so400m-patch14-384"}, "vision_tokenizer_config": {"num_vis_tokens": 128}})";
// Two of its layers.
const std::string kMimo25 =
    R"({"architectures": ["MiMoV2ForCausalLM"], "model_type": "mimo_v2", "num_hidden_layers": 2,
    "hidden_size": 4096, "attention_projection_layout": "fused_qkv", "num_attention_heads": 64,
    "num_key_value_heads": 4, "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8, "head_dim": 192,
    "v_head_dim": 128, "swa_head_dim": 192, "swa_v_head_dim": 128, "hybrid_layer_pattern": [0, 1],
    "moe_layer_freq": [0, 1], "intermediate_size": 16384, "moe_intermediate_size": 2048,
    "n_routed_experts": 256, "num_experts_per_tok": 8, "vocab_size": 152576, "sliding_window": 128,
    "vision_config": {"depth": 28, "fullatt_block_indexes": [0, 9, 18, 27], "hidden_size": 1280, "in_chans": 3,
    "intermediate_size": 4608, "num_heads": 32, "num_key_value_heads": 8, "out_hidden_size": 4096,
    "patch_size": 16, "use_sink": true}, "audio_config": {"audio_channels": 20, "group_size": 4,
    "input_local_attn_heads": 16, "input_local_dim": 1024, "input_local_head_dim": 64,
    "input_local_intermediate_size": 4096, "input_local_layers": 6, "out_hidden_size": 4096,
    "projection_layers": 2, "speech_vocab_size": "1280"}})";

// metadata.total_size of alibaba/Logics-Thinking's index: 18,938,237,760 bytes of bfloat16.
TEST(OwnCodeMore, LogicsThinkingIsAsLargeAsItsIndexSays) {
  const ModuleTree tree = described(kLogics);
  EXPECT_EQ(count(tree).all(), 18'938'237'760U / 2);
  const std::string towers = "model.vision_tower.vision_towers.";
  expect_stored(tree, towers + "0.vision_tower.stages.2.blocks.29.weight", {1536});
  expect_stored(tree, towers + "0.vision_tower.stages.3.downsample.1.weight", {3072, 1536, 2, 2});
  expect_stored(tree, towers + "1.vision_tower.vision_model.encoder.layers.25.mlp.fc1.weight", {4304, 1152});
  EXPECT_FALSE(TensorLookup(tree)
                   .find(towers + "1.vision_tower.vision_model.encoder.layers.26.mlp.fc1.weight")
                   .has_value());
}

// What the code makes of the published config on the meta device: the fixture's, of other sizes.
TEST(OwnCodeMore, DeepseekVl7b) {
  const ModuleTree tree = described(kDeepseekVl7b);
  EXPECT_EQ(count(tree).total, 6'910'365'696U);
  EXPECT_NEAR(static_cast<double>(count(tree).all()), 7.34e9, 0.01e9);
  expect_stored(tree, "vision_model.vision_tower_high.vision_tower.blocks.2.attn.rel_pos_h", {127, 64});
  expect_stored(tree, "vision_model.vision_tower_high.vision_tower.blocks.3.attn.rel_pos_h", {27, 64});
}

// modeling_xgenmm.py; the hub counts 4.36B.
TEST(OwnCodeMore, XgenMm) {
  const ModuleTree tree = described(kXgenMm);
  EXPECT_NEAR(static_cast<double>(count(tree).all()), 4.36e9, 0.005e9);
  expect_stored(tree, "vlm.lang_model.model.layers.31.mlp.gate_up_proj.weight", {16384, 3072});
  expect_stored(tree, "vlm.lang_model.model.embed_tokens.additional_embedding.weight", {3, 3072});
  expect_stored(tree, "vlm.lang_model.lm_head.bias", {32064});
  expect_stored(tree, "vlm.vision_encoder.head.probe", {1, 1, 1152});
  expect_stored(tree, "vlm.vision_tokenizer.layers.5.0.to_kv.weight", {3072, 1152});
}

// modeling_mimo_v2.py, SGLang 0.5.23's mimo_audio.py; the card of V2.5: a ViT of 729M parameters, an encoder of sound of 261M,
// 329M in a layer for prediction.
TEST(OwnCodeMore, Mimo25SeesAndHears) {
  const ModuleTree tree = described(kMimo25);
  EXPECT_EQ(count(tree).towers, 728'594'432U + 261'127'168U);
  EXPECT_EQ(count(tree).mtp_own, 3 * 329'273'408U);
  expect_stored(tree, "visual.blocks.1.attn.sinks", {32});
  EXPECT_FALSE(TensorLookup(tree).find("visual.blocks.9.attn.sinks").has_value());
  EXPECT_FALSE(TensorLookup(tree).find("visual.merger.mlp.0.bias").has_value());
  expect_stored(tree, "visual.blocks.0.attn.qkv.weight", {3072, 1280});
  expect_stored(tree, "speech_embeddings.19.weight", {1280, 1024});
  expect_stored(tree, "audio_encoder.projection.mlp.0.weight", {16384, 4096});
  expect_stored(tree, "audio_encoder.input_local_transformer.norm.weight", {1024});
  expect_stored(tree, "model.layers.0.self_attn.qkv_proj.weight", {64 * 192 + 4 * 192 + 4 * 128, 4096});
  expect_stored(tree, "model.layers.1.self_attn.qkv_proj.weight", {64 * 192 + 8 * 192 + 8 * 128, 4096});
}

// vLLM 0.33's openpangu_vl.py.
TEST(OwnCodeMore, PanguVl) {
  const ModuleTree tree = described(R"({"architectures": ["OpenPanguVLForConditionalGeneration"],
      "model_type": "openpangu_vl", "vocab_size": 97, "hidden_size": 48, "intermediate_size": 112,
      "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2, "vision_config": {"depth": 3,
      "hidden_size": 40, "intermediate_size": 90, "num_heads": 4, "patch_size": 14, "temporal_patch_size": 2,
      "in_channels": 3, "spatial_merge_size": 2, "out_hidden_size": 56, "hidden_act": "silu",
      "mm_unit_vision_select_layer": [-1, -2, -3]}})");
  expect_stored(tree, "model.visual.merger.2.mlp.2.weight", {56, 160});
  expect_stored(tree, "model.visual.vision_projection.fc1.weight", {48, 56});
  expect_stored(tree, "model.visual.final_layernorm.weight", {40});
  expect_stored(tree, "model.visual.blocks.2.mlp.gate_proj.bias", {90});
  expect_stored(tree, "model.language_model.layers.1.self_attn.o_proj.bias", {48});
  expect_stored(tree, "lm_head.weight", {97, 48});
}

// vLLM 0.33's vllm/models/step5.
TEST(OwnCodeMore, Step5) {
  const std::string config = R"({"architectures": ["Step5ForCausalLM"], "model_type": "step5",
      "num_hidden_layers": 4, "hidden_size": 512, "intermediate_size": 900, "num_attention_heads": 8,
      "num_attention_groups": 2, "head_dim": 64, "vocab_size": 1000, "moe_num_experts": 16, "moe_top_k": 4,
      "moe_intermediate_size": 100, "use_head_wise_attn_gate": true, "sliding_window": 512, "layer_types":
      ["full_attention", "sliding_attention", "sliding_attention", "full_attention", "full_attention"],
      "num_nextn_predict_layers": 1, "moe_layers_enum": "1,2,3,4", "attention_other_setting":
      {"attention_type": "sliding_attention", "num_attention_heads": 12, "num_attention_groups": 2,
      "head_dim": 64}, "sparse_config": {"enabled": true, "sparse_indexer_num_heads": 8}})";
  const ModuleTree tree = described(config);
  expect_stored(tree, "model.layers.0.self_attn.sparse_indexer_q.weight", {8 * 256, 512});
  expect_stored(tree, "model.layers.0.self_attn.sparse_indexer_z.weight", {256, 512});
  expect_stored(tree, "model.layers.3.self_attn.sparse_indexer_k_norm.bias", {256});
  expect_stored(tree, "model.layers.3.self_attn.ssmax_s", {8});
  EXPECT_FALSE(TensorLookup(tree).find("model.layers.1.self_attn.ssmax_s").has_value());
  expect_stored(tree, "model.layers.1.self_attn.q_proj.weight", {12 * 64, 512});
  expect_stored(tree, "model.layers.1.self_attn.g_proj.weight", {12, 512});
  expect_stored(tree, "model.layers.0.mlp.up_proj.weight", {900, 512});
  expect_stored(tree, "model.layers.2.moe.up_proj.weight", {16, 100, 512});
  expect_stored(tree, "model.layers.2.share_expert.up_proj.weight", {400, 512});
  expect_stored(tree, "model.layers.4.moe.gate_proj.weight", {16, 100, 512});
  expect_stored(tree, "model.layers.4.self_attn.ssmax_s", {8});
  expect_stored(tree, "model.layers.4.transformer.shared_head.output.weight", {1000, 512});
  expect_refused(R"({"architectures": ["Step5ForCausalLM"]})", "sparse_config");
}

// vLLM 0.33's nemotron_parse3_5.py.
TEST(OwnCodeMore, NemotronParse35) {
  const ModuleTree tree = described(R"({"architectures": ["RadioMBartPrefixForCausalLM"], "decoder":
      {"vocab_size": 97, "d_model": 48, "decoder_layers": 2, "decoder_ffn_dim": 72,
      "decoder_attention_heads": 6, "self_attention_kv_heads": 2, "add_cross_attention": false,
      "causal_vision_prefix": true, "tie_word_embeddings": true}, "encoder": {"patch_size": 16, "args":
      {"model": "vit_so400m_patch16_224", "teachers": [{"name": "a"}, {"name": "b"}],
      "cls_token_per_teacher": true, "register_multiple": 8}}, "num_extra_heads": 1,
      "vision_spatial_dim": 1152, "vision_summary_dim": 2304})");
  expect_stored(tree, "decoder.layers.1.self_attn.k_proj.weight", {16, 48});
  EXPECT_FALSE(TensorLookup(tree).find("decoder.layers.1.encoder_attn.k_proj.weight").has_value());
  expect_stored(tree, "encoder.model_encoder.radio_model.model.blocks.26.mlp.fc1.weight", {4304, 1152});
  expect_stored(tree, "encoder.conv1.weight", {48, 1152, 1});
  expect_stored(tree, "encoder.sum_proj.weight", {48, 2304});
  expect_stored(tree, "decoder.extra_proj.0.weight", {48, 48});
  expect_refused(R"({"architectures": ["RadioMBartPrefixForCausalLM"], "decoder": {}})",
                 "add_cross_attention");
}

// modeling_openmoe.py and convert_openmoe_ckpt.py of ColossalAI, and what MLPExperts makes of hidden_act swiglu.
TEST(OwnCodeMore, OpenMoe) {
  const ModuleTree tree = described(R"({"architectures": ["OpenMoeForCausalLM"], "intermediate_size": 112,
      "hidden_size": 48, "num_hidden_layers": 4, "head_dim": 10, "num_attention_heads": 6, "vocab_size": 97,
      "hidden_act": "swiglu", "num_experts": 5, "topk": 2, "gated": true, "moe_layer_interval": 2})");
  expect_stored(tree, "model.layers.0.mlp.gate_proj.weight", {224, 48});
  expect_stored(tree, "model.layers.0.mlp.up_proj.weight", {112, 48});
  expect_stored(tree, "model.layers.1.mlp.gate_weight", {5, 48});
  expect_stored(tree, "model.layers.1.mlp.experts.wi_gate", {5, 48, 224});
  expect_stored(tree, "model.layers.3.mlp.experts.wo", {5, 112, 48});
  expect_stored(tree, "model.layers.3.extra_mlp.down_proj.weight", {48, 112});
  expect_stored(tree, "model.layers.3.pre_extra_mlp_layernorm.weight", {48});
  const Totals totals = count(tree);
  EXPECT_EQ(totals.total - totals.active, 2U * 3U * 4U * 48U * 112U);  // of five experts two
}

// modeling_bailingmm.py; SANMEncoder of funasr.
TEST(OwnCodeMore, Ming) {
  const ModuleTree tree = described(R"({"architectures": ["BailingMMNativeForConditionalGeneration"],
      "model_type": "bailingmm", "mlp_depth": 2, "llm_config": {"model_type": "bailing_moe", "vocab_size": 97,
      "hidden_size": 48, "intermediate_size": 112, "num_hidden_layers": 2, "num_attention_heads": 6,
      "num_key_value_heads": 2, "num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 30,
      "num_shared_experts": 2, "multi_gate": true}, "vision_config": {"model_type": "qwen2_5_vit", "depth": 2,
      "hidden_size": 40, "intermediate_size": 90, "num_heads": 4, "out_hidden_size": 160, "patch_size": 14},
      "audio_config": {"audio_encoder_output_size": 64, "ds_kernel_size": 3, "audio_encoder_config_sanm":
      {"input_size": 70, "output_size": 64, "linear_units": 100, "num_blocks": 4, "kernel_size": 11,
      "input_layer": "pe", "selfattention_layer_type": "sanm", "normalize_before": true}}})");
  expect_stored(tree, "model.model.layers.1.mlp.image_gate.weight", {5, 48});
  expect_stored(tree, "model.model.layers.1.mlp.shared_experts.up_proj.weight", {60, 48});
  expect_stored(tree, "model.lm_head.weight", {97, 48});
  expect_stored(tree, "vision.merger.mlp.2.weight", {160, 160});
  expect_stored(tree, "linear_proj.2.weight", {48, 48});
  expect_stored(tree, "audio.encoders0.0.self_attn.linear_q_k_v.weight", {192, 70});
  expect_stored(tree, "audio.encoders.2.self_attn.fsmn_block.weight", {64, 1, 11});
  EXPECT_FALSE(TensorLookup(tree).find("audio.encoders.3.norm1.weight").has_value());
  expect_stored(tree, "linear_proj_audio.0.weight", {48, 64, 3});
  expect_stored(tree, "linear_proj_audio.3.weight", {48, 48});
}

const std::string kSmallQwen2 =
    R"({"model_type": "qwen2", "vocab_size": 97, "hidden_size": 48, "intermediate_size": 112,
    "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2})";
const std::string kSmallSiglip =
    R"({"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 90, "num_hidden_layers": 2,
    "num_attention_heads": 16, "image_size": 28, "patch_size": 14})";

// SGLang 0.5.23's nvila.py, nvila_lite.py, points_v15_chat.py.
TEST(OwnCodeMore, NvilaAndPoints) {
  const auto nvila = [](const std::string& architecture) {
    return described(R"({"architectures": [")" + architecture + R"("], "text_config": )" + kSmallQwen2 +
                     R"(, "vision_config": )" + kSmallSiglip + "}");
  };
  const ModuleTree whole = nvila("NVILAForConditionalGeneration");
  expect_stored(whole, "llm.model.layers.1.mlp.up_proj.weight", {112, 48});
  expect_stored(whole, "vision_tower.vision_model.encoder.layers.1.mlp.fc1.weight", {90, 1152});
  expect_stored(whole, "mm_projector.layers.2.weight", {48, 13824});
  const ModuleTree lite = nvila("NVILALiteForConditionalGeneration");
  expect_stored(lite, "mm_projector.layers.2.weight", {3456, 10368});
  expect_stored(lite, "mm_projector.layers.7.weight", {48, 48});
  const ModuleTree points = described(
      R"({"architectures": ["POINTSV15ChatModel"], "llm_config": )" + kSmallQwen2 +
      R"(, "vision_config": {"depth": 2, "embed_dim": 1280, "hidden_size": 3584, "num_heads": 16}})");
  expect_stored(points, "vision_encoder.blocks.1.attn.qkv.weight", {3840, 1280});
  expect_stored(points, "vision_projector.mlp.2.weight", {48, 5120});
  expect_stored(points, "llm.lm_head.weight", {97, 48});
}

// SGLang 0.5.23's moss_vl.py.
TEST(OwnCodeMore, MossVl) {
  const ModuleTree tree = described(R"({"architectures": ["MossVLForConditionalGeneration"], "text_config":
      {"vocab_size": 97, "hidden_size": 48, "intermediate_size": 112, "num_hidden_layers": 4,
      "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10, "attention_bias": false,
      "cross_attention_layers": [1, 3]}, "vision_config": {"depth": 2, "hidden_size": 40, "intermediate_size": 90,
      "num_heads": 4, "patch_size": 14, "temporal_patch_size": 1, "in_channels": 3, "spatial_merge_size": 2,
      "num_position_embeddings": 25, "out_hidden_size": 48, "deepstack_visual_indexes": [0, 1]}})");
  expect_stored(tree, "model.language_model.layers.1.cross_attn.k_proj.weight", {20, 48});
  expect_stored(tree, "model.language_model.layers.3.cross_attn_mlp_gate", {1});
  expect_stored(tree, "model.language_model.layers.2.self_attn.q_norm.weight", {10});
  EXPECT_FALSE(TensorLookup(tree).find("model.language_model.layers.1.self_attn.q_proj.weight").has_value());
  expect_stored(tree, "model.visual.merger.norms.2.bias", {40});
  expect_stored(tree, "model.visual.merger.linear_fc2.weight", {48, 3 * 4 * 40});
  expect_stored(tree, "model.separator_token", {48});
  expect_stored(tree, "lm_head.weight", {97, 48});
  std::size_t cached = 0;
  for (const AttentionGeometry& g : tree.attention)
    if (g.cached) cached += g.layers.size();
  EXPECT_EQ(cached, 2U);
  expect_refused(R"({"architectures": ["MossVLForConditionalGeneration"]})", "vocab_size");
}

// README of jingyaogong/minimind: 104M, 145M and 26M; of IEIT-Yuan/Yuan2.0-M32: 40B.
TEST(OwnCodeMore, RoundedTotals) {
  const auto millions = [](const std::string& config) {
    return static_cast<double>(count(described(config)).all()) / 1e6;
  };
  EXPECT_NEAR(
      millions(R"({"architectures": ["MiniMindLM"], "dim": 768, "hidden_dim": 2048, "n_layers": 16})"), 104,
      0.5);
  EXPECT_NEAR(millions(R"({"architectures": ["MiniMindForCausalLM"], "hidden_size": 640, "use_moe": true,
      "n_routed_experts": 4, "n_shared_experts": 1})"),
              145, 0.5);
  EXPECT_NEAR(millions(R"({"architectures": ["MiniMindForCausalLM"], "n_routed_experts": 4})"), 26, 0.5);
  EXPECT_NEAR(millions(R"({"architectures": ["YuanForCausalLM"], "vocab_size": 135040, "hidden_size": 2048,
      "attention_projection_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
      "tie_word_embeddings": false, "moe_config": {"moe_num_experts": 32, "moe_top_k": 2,
      "gated_linear_unit": true, "ffn_hidden_size": 8192}})"),
              40'000, 500);
}

}  // namespace
}  // namespace assay
