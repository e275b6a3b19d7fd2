// Models that see or hear by code of their own, Whisper and encoders of text, held to what the hub counts of their weights and
// to how many tensors somebody listed; names and shapes of those that transformers has are oracle_test.cpp's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/formats/json.h"
#include "core/model/module_tree.h"
#include "core/system/error.h"
#include "tests/support/described.h"

namespace assay {
namespace {

using test::described;

std::size_t own_tensors(const ModuleTree& tree) {
  std::size_t tensors = 0;
  for_each_tensor(tree, [&](const std::string&, const TensorSpec& spec, const TensorIndices&) {
    tensors += spec.storage == Storage::own ? 1 : 0;
  });
  return tensors;
}

bool has(const ModuleTree& tree, std::string_view name) {
  bool found = false;
  for_each_tensor(tree, [&](const std::string& own, const TensorSpec&, const TensorIndices&) {
    found = found || own == name;
  });
  return found;
}

struct Whole {
  const char* config;
  std::uint64_t all;    // with towers
  std::size_t tensors;  // 0: nobody told
};

constexpr const char* kDeepseekOcrConfig = R"({"architectures": ["DeepseekOCRForCausalLM"],
    "model_type": "deepseek_vl_v2", "language_config": {"architectures": ["DeepseekV2ForCausalLM"],
    "first_k_dense_replace": 1, "hidden_size": 1280, "intermediate_size": 6848, "kv_lora_rank": null,
    "moe_intermediate_size": 896, "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 10,
    "num_experts_per_tok": 6, "num_hidden_layers": 12, "num_key_value_heads": 10, "q_lora_rank": null,
    "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "topk_method": "greedy", "use_mla": false,
    "vocab_size": 129280}, "projector_config": {"input_dim": 2048, "n_embed": 1280, "projector_type": "linear"},
    "vision_config": {"image_size": 1024, "width": {"clip-l-14-224": {"heads": 16, "image_size": 224, "layers": 24,
    "patch_size": 14, "width": 1024}, "sam_vit_b": {"downsample_channels": [512, 1024],
    "global_attn_indexes": [2, 5, 8, 11], "heads": 12, "layers": 12, "width": 768}}}})";
constexpr const char* kPhi4Mm = R"({"architectures": ["Phi4MMForCausalLM"], "model_type": "phi4mm",
    "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 24,
    "num_key_value_heads": 8, "vocab_size": 200064, "tie_word_embeddings": true, "speech_lora": {"r": 320},
    "vision_lora": {"r": 256}, "img_processor": null, "embd_layer": {}, "audio_processor": {"config":
    {"attention_dim": 1024, "attention_heads": 16, "num_blocks": 24, "linear_units": 1536, "kernel_size": 3,
    "nemo_conv_settings": {"conv_channels": 1024}, "input_size": 80, "depthwise_multiplier": 1,
    "ext_pw_out_channel": 1024, "depthwise_seperable_out_channel": 1024, "time_reduction": 8,
    "relative_attention_bias_args": {"t5_bias_max_distance": 500}}}})";

std::string whisper(int width, int layers, int written, int bins, int vocabulary) {
  return fmt::format(
      R"({{"architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "d_model": {0},
      "encoder_layers": {1}, "decoder_layers": {2}, "encoder_ffn_dim": {3}, "decoder_ffn_dim": {3},
      "encoder_attention_heads": {4}, "decoder_attention_heads": {4}, "num_mel_bins": {5}, "vocab_size": {6}}})",
      width, layers, written, 4 * width, width / 64, bins, vocabulary);
}

TEST(SeeingTotals, AreThoseOfTheHub) {
  const Whole published[] = {
      // deepseek-ai/DeepSeek-OCR
      {kDeepseekOcrConfig, 3'336'106'240, 2710},
      // microsoft/Phi-3.5-vision-instruct
      {R"({"architectures": ["Phi3VForCausalLM"], "model_type": "phi3_v", "hidden_size": 3072,
          "intermediate_size": 8192, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32064,
          "img_processor": {"image_dim_out": 1024, "name": "clip_vision_model"}})",
       4'146'621'440, 0},
      // microsoft/Phi-4-multimodal-instruct
      {kPhi4Mm, 5'574'460'384, 0},
      // openvla/openvla-7b
      {R"({"architectures": ["OpenVLAForActionPrediction"], "model_type": "openvla", "text_config":
          {"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
          "num_attention_heads": 32, "vocab_size": 32064}})",
       7'541'237'184, 982},
      // BAAI/bge-reranker-v2-m3
      {R"({"architectures": ["XLMRobertaForSequenceClassification"], "model_type": "xlm-roberta",
          "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "num_attention_heads": 16,
          "vocab_size": 250002, "max_position_embeddings": 8194, "type_vocab_size": 1, "id2label": {"0": "x"}})",
       567'755'777, 0},
      // BAAI/bge-base-en-v1.5: 109,482,752, of which 512 number the places
      {R"({"architectures": ["BertModel"], "model_type": "bert", "vocab_size": 30522})", 109'482'240, 0},
      // google/flan-t5-base
      {R"({"architectures": ["T5ForConditionalGeneration"], "model_type": "t5", "d_model": 768, "d_ff": 2048,
          "num_layers": 12, "num_decoder_layers": 12, "num_heads": 12, "feed_forward_proj": "gated-gelu",
          "tie_word_embeddings": false})",
       247'577'856, 0},
  };
  for (const Whole& whole : published) {
    const ModuleTree tree = described(whole.config);
    EXPECT_EQ(count(tree).all(), whole.all) << whole.config;
    if (whole.tensors != 0) {
      EXPECT_EQ(own_tensors(tree), whole.tensors) << whole.config;
    }
  }
}

TEST(SeeingTotals, OfWhisper) {
  EXPECT_EQ(count(described(whisper(384, 4, 4, 80, 51865))).all(), 37'760'640U);         // tiny
  EXPECT_EQ(count(described(whisper(1280, 32, 32, 128, 51866))).all(), 1'543'490'560U);  // large-v3
  EXPECT_EQ(count(described(whisper(1280, 32, 4, 128, 51866))).all(), 808'878'080U);     // large-v3-turbo
}

// What cards tell rounded.
TEST(SeeingTotals, AreNearWhatCardsSay) {
  // moonshotai/Kimi-Audio-7B: 9.77B without the Whisper in its folder
  const ModuleTree kimi = described(R"({"architectures": ["MoonshotKimiaForCausalLM"], "vocab_size": 168448,
      "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
      "num_key_value_heads": 4, "kimia_mimo_layers": 6, "kimia_adaptor_input_dim": 5120})");
  EXPECT_EQ(count(kimi).all(), 9'766'334'464U);
  EXPECT_EQ(kimi.not_counted.size(), 1U);
  // mispeech/midashenglm-7b: 8.3B
  const ModuleTree dasheng = described(R"({"architectures": ["MiDashengLMModel"], "text_config":
      {"model_type": "qwen2_5_omni_text"}, "audio_encoder_config": {"embed_dim": 1280, "depth": 32,
      "target_length": 1008, "patch_size": [64, 4], "patch_stride": [64, 4]}})");
  EXPECT_EQ(count(dasheng).all(), 8'281'739'904U);
  // allenai/Molmo-7B-D-0924: 8.02B
  const ModuleTree molmo = described(R"({"architectures": ["MolmoForCausalLM"], "vocab_size": 152064,
      "hidden_size": 3584, "intermediate_size": 37888, "num_hidden_layers": 28, "num_attention_heads": 28,
      "num_key_value_heads": 4, "qkv_bias": true, "weight_tying": false})");
  EXPECT_EQ(count(molmo).all(), 8'021'025'280U);
  // stepfun-ai/step3: a language model of 316B, 38B activated
  const ModuleTree step = described(R"({"architectures": ["Step3VLForConditionalGeneration"], "text_config":
      {"model_type": "step3_text", "moe_layers_enum": "4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59"},
      "vision_config": {"intermediate_size": 15360}})");
  EXPECT_EQ(count(step).total, 316'294'538'240U);
  EXPECT_EQ(count(step).active_without_embedding, 37'917'982'720U);
  EXPECT_EQ(step.attention.front().kv_heads, 1U);
}

// DeepSeek-VL2: 3.37B, 16.1B and 27.5B (model card); the smallest has no latent attention, the largest a bias for choosing.
TEST(SeeingTotals, OfDeepseekVl2) {
  const auto sized = [](const std::string& text, int width) {
    return described(fmt::format(
        R"({{"architectures": ["DeepseekVLV2ForCausalLM"], "model_type": "deepseek_vl_v2", "language_config":
        {{"model_type": "deepseek_v2", "first_k_dense_replace": 1, "n_shared_experts": 2, "num_experts_per_tok": 6,
        "q_lora_rank": null, {}}}, "projector_config": {{"n_embed": {}}}, "vision_config": {{"layers": 27,
        "mlp_ratio": 3.7362, "patch_size": 14, "width": 1152}}}})",
        text, width));
  };
  const ModuleTree tiny = sized(R"("use_mla": false, "hidden_size": 1280, "intermediate_size": 6848,
      "moe_intermediate_size": 896, "n_routed_experts": 64, "num_attention_heads": 10, "num_hidden_layers": 12,
      "num_key_value_heads": 10, "vocab_size": 129280)",
                                1280);
  EXPECT_EQ(count(tiny).all(), 3'370'501'440U);
  EXPECT_EQ(tiny.family, "deepseek_v1");
  const ModuleTree small = sized(R"("hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
      "moe_intermediate_size": 1408, "n_routed_experts": 64, "num_attention_heads": 16, "num_hidden_layers": 27,
      "vocab_size": 102400)",
                                 2048);
  EXPECT_EQ(count(small).all(), 16'148'349'504U);
  const ModuleTree large = sized(R"("hidden_size": 2560, "intermediate_size": 12288, "kv_lora_rank": 512,
      "moe_intermediate_size": 1536, "n_routed_experts": 72, "num_attention_heads": 32, "num_hidden_layers": 30,
      "topk_method": "noaux_tc", "vocab_size": 129280)",
                                 2560);
  EXPECT_EQ(count(large).all(), 27'480'134'248U);
}

// Their configs, as published, name a class for the language model alone.
TEST(SeeingTotals, AClassOfTheLanguageModelIsNotThatOfTheWhole) {
  const ModuleTree tiny = described(R"({"model_type": "deepseek_vl_v2", "language_config":
      {"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "first_k_dense_replace": 1,
      "n_shared_experts": 2, "num_experts_per_tok": 6, "q_lora_rank": null, "kv_lora_rank": null, "use_mla": false,
      "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "v_head_dim": 0, "hidden_size": 1280, "intermediate_size": 6848,
      "moe_intermediate_size": 896, "n_routed_experts": 64, "num_attention_heads": 10, "num_hidden_layers": 12,
      "num_key_value_heads": 10, "vocab_size": 129280}, "projector_config": {"n_embed": 1280},
      "vision_config": {"layers": 27, "mlp_ratio": 3.7362, "patch_size": 14, "width": 1152}})");
  EXPECT_EQ(count(tiny).all(), 3'370'501'440U);
  EXPECT_EQ(tiny.not_counted.size(), 0U);
}

// deepseek-ai/DeepSeek-OCR-2: its config says 1024 channels of SAM's last convolution, its code 896. 2,707 tensors in the
// index, whose language model transformers 5.24 counts alike.
TEST(SeeingTotals, OfDeepseekOcr2) {
  const ModuleTree tree =
      described(R"({"architectures": ["DeepseekOCR2ForCausalLM"], "model_type": "deepseek_vl_v2",
      "language_config": {"architectures": ["DeepseekV2ForCausalLM"], "first_k_dense_replace": 1, "hidden_size": 1280,
      "intermediate_size": 6848, "kv_lora_rank": null, "moe_intermediate_size": 896, "n_group": 1,
      "n_routed_experts": 64, "n_shared_experts": 2, "num_attention_heads": 10, "num_experts_per_tok": 6,
      "num_hidden_layers": 12, "num_key_value_heads": 10, "q_lora_rank": null, "qk_nope_head_dim": 0,
      "qk_rope_head_dim": 0, "topk_method": "greedy", "use_mla": false, "v_head_dim": 0, "vocab_size": 129280},
      "projector_config": {"input_dim": 896, "n_embed": 1280, "projector_type": "linear"}, "vision_config":
      {"image_size": 1024, "model_name": "deepencoderv2", "width": {"qwen2-0-5b": {"dim": 896}, "sam_vit_b":
      {"downsample_channels": [512, 1024], "global_attn_indexes": [2, 5, 8, 11], "heads": 12, "layers": 12,
      "width": 768}}}})");
  EXPECT_EQ(own_tensors(tree), 2707U);
  EXPECT_EQ(count(tree).total, 2'934'734'080U);
  std::vector<std::uint64_t> last;
  for_each_spec(tree, [&](const TensorSpec& spec, const Occurrence&) {
    if (spec.name == "model.sam_model.net_3.weight") last = spec.shape;
  });
  EXPECT_EQ(last, (std::vector<std::uint64_t>{896, 512, 3, 3}));
}

// nvidia/LocateAnything-3B: 770 tensors of 7,661,331,936 bytes in its index, the tied head once more.
TEST(SeeingTotals, OfLocateAnything) {
  const ModuleTree tree = described(R"({"architectures": ["LocateAnythingForConditionalGeneration"],
      "model_type": "locateanything", "mlp_connector_layers": 2, "text_config": {"architectures":
      ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 2048, "intermediate_size": 11008,
      "num_attention_heads": 16, "num_hidden_layers": 36, "num_key_value_heads": 2, "tie_word_embeddings": true,
      "vocab_size": 152681}, "vision_config": {"hidden_size": 1152, "init_pos_emb_height": 64,
      "init_pos_emb_width": 64, "intermediate_size": 4304, "merge_kernel_size": [2, 2], "model_type": "moonvit",
      "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}})");
  EXPECT_EQ(own_tensors(tree) + 1, 770U);
  EXPECT_EQ(2 * (count(tree).all() + 152'681U * 2048), 7'661'331'936U);
  for (const char* name : {"vision_model.encoder.blocks.0.mlp.fc0.weight", "mlp1.3.bias",
                           "language_model.model.layers.0.self_attn.q_proj.bias"})
    EXPECT_TRUE(has(tree, name)) << name;
}

// Of LLaVA-1.5's own config (liuhaotian/llava-v1.5-7b): LLaMA's tensors and two matrices; and with a mark of new lines.
TEST(SeeingTotals, OfLlavaAsItsOwnCodeSavesIt) {
  const std::string sizes = R"("hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
      "num_attention_heads": 32, "vocab_size": 32000, "mm_hidden_size": 1024, "mm_projector_type": "mlp2x_gelu",
      "mm_vision_tower": "openai/clip-vit-large-patch14-336")";
  const ModuleTree first =
      described(R"({"architectures": ["LlavaLlamaForCausalLM"], "model_type": "llava", )" + sizes + "}");
  EXPECT_EQ(count(first).total, 6'738'415'616U);  // Llama-2-7B
  EXPECT_EQ(count(first).towers, 1024U * 4096 + 4096 + 4096 * 4096 + 4096);
  EXPECT_TRUE(has(first, "model.mm_projector.2.bias"));
  EXPECT_EQ(first.not_counted.size(), 1U);
  const ModuleTree later = described(R"({"architectures": ["LlavaLlamaForCausalLM"], "mm_patch_merge_type":
      "spatial_unpad", )" + sizes + "}");
  EXPECT_EQ(count(later).towers, count(first).towers + 4096);
  EXPECT_EQ(described(R"({"architectures": ["LlavaQwenForCausalLM"], )" + sizes + "}").family, "qwen2");
  EXPECT_THROW(
      described(R"({"architectures": ["LlavaLlamaForCausalLM"], "mm_projector_type": "mlp0x_gelu"})"), Error);
  EXPECT_THROW(described(R"({"architectures": ["LlavaLlamaForCausalLM"], "mm_projector_type": "resampler"})"),
               Error);
}

TEST(SeeingTotals, AdaptersStandBesideTheMatricesTheyAdapt) {
  const ModuleTree tree = described(kPhi4Mm);
  for (const char* name :
       {"model.layers.31.self_attn.qkv_proj.base_layer.weight",
        "model.layers.31.self_attn.qkv_proj.lora_A.speech.weight",
        "model.layers.0.mlp.down_proj.lora_B.vision.weight", "model.layers.0.input_layernorm.weight",
        "model.embed_tokens_extend.audio_embed.encoder.encoders.0.self_attn.linear_q.weight",
        "model.embed_tokens_extend.audio_embed.audio_projection.vision.2.bias",
        "model.embed_tokens_extend.image_embed.img_projection.0.weight"})
    EXPECT_TRUE(has(tree, name)) << name;
  EXPECT_FALSE(has(tree, "model.layers.31.self_attn.qkv_proj.weight"));
  EXPECT_EQ(count(tree).total, 3'836'021'760U);  // Phi-4-mini's
}

// What is attended to of a sound or a text that was read does not grow; encoders alone cache nothing.
TEST(SeeingTotals, OnlyWhatIsWrittenIsCached) {
  const ModuleTree hears = described(whisper(384, 4, 3, 80, 51865));
  ASSERT_EQ(hears.attention.size(), 1U);
  EXPECT_EQ(hears.attention[0].layers.size(), 3U);
  const ModuleTree reads = described(R"({"architectures": ["T5ForConditionalGeneration"], "num_layers": 5,
      "num_decoder_layers": 2})");
  ASSERT_EQ(reads.attention.size(), 1U);
  EXPECT_EQ(reads.attention[0].layers.size(), 2U);
  EXPECT_TRUE(described(R"({"architectures": ["BertModel"]})").attention.empty());
}

TEST(SeeingTotals, RefuseWhatIsNotDescribed) {
  const char* const refused[] = {
      R"({"architectures": ["DeepseekOCRForCausalLM"], "language_config": {"model_type": "llama"}})",
      R"({"architectures": ["DeepseekOCRForCausalLM"], "language_config": {"model_type": "llama"},
          "vision_config": {}})",
      R"({"architectures": ["OpenVLAForActionPrediction"], "text_config": {"model_type": "llama"},
          "use_fused_vision_backbone": false})",
      R"({"architectures": ["OpenVLAForActionPrediction"], "text_config": {"model_type": "llama"},
          "timm_model_ids": ["vit_large_patch14_clip_336.openai"]})",
      R"({"architectures": ["OmniASRForConditionalGeneration"], "text_config": {"model_type": "llama"},
          "audio_config": {"conv_dim": [0], "conv_kernel": [2]}})",
      R"({"architectures": ["Florence2ForConditionalGeneration"], "text_config": {"model_type": "bart"},
          "vision_config": {"dim_embed": [128]}})",
      R"({"architectures": ["MiDashengLMModel"], "text_config": {"model_type": "qwen2_5_omni_text"},
          "audio_encoder_config": {"n_mels": 8}})",
      R"({"architectures": ["UltravoxModel"], "text_config": {"model_type": "llama"}, "audio_config": {},
          "num_projector_layers": 2})",
      R"({"architectures": ["Phi3VForCausalLM"]})",
      R"({"architectures": ["Phi4MMForCausalLM"], "embd_layer": {}})",
      R"({"architectures": ["MolmoForCausalLM"], "hidden_size": 8})",
      R"({"architectures": ["BertModel"], "position_embedding_type": "relative_key"})",
      R"({"architectures": ["FunAsrNanoForConditionalGeneration"], "text_config": {"model_type": "qwen3"},
          "audio_config": {"num_hidden_layers": 3, "num_timestamp_prediction_layers": 3}, "adaptor_config": {}})",
      R"({"architectures": ["VibeVoiceAsrForConditionalGeneration"], "text_config": {"model_type": "qwen2"},
          "acoustic_tokenizer_encoder_config": {"depths": [1]}, "semantic_tokenizer_encoder_config": {}})",
      R"({"architectures": ["GraniteSpeechForConditionalGeneration"], "text_config": {"model_type": "granite"},
          "encoder_config": {}, "projector_config": {}, "window_size": 2})"};
  for (const char* config : refused) EXPECT_THROW(described(config), Error) << config;
}

// Qwen3-ASR by its own code, within thinker_config, and as transformers saves it.
TEST(SeeingTotals, Qwen3AsrHasTwoSetsOfNames) {
  const std::string parts = R"("audio_config": {"d_model": 16, "encoder_layers": 2, "encoder_ffn_dim": 8,
      "output_dim": 12}, "text_config": {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2,
      "num_key_value_heads": 1, "head_dim": 4, "intermediate_size": 8, "vocab_size": 50, "model_type": )";
  const std::string named = R"({"architectures": ["Qwen3ASRForConditionalGeneration"], )";
  const ModuleTree own = described(named + R"("thinker_config": {)" + parts + R"("qwen3_asr_text"}}})");
  const ModuleTree other = described(named + parts + R"("qwen3"}, "tie_word_embeddings": false})");
  EXPECT_EQ(count(own).all(), count(other).all());
  EXPECT_TRUE(has(own, "thinker.audio_tower.proj2.weight"));
  EXPECT_TRUE(has(own, "thinker.model.layers.1.self_attn.q_norm.weight"));
  EXPECT_TRUE(has(own, "thinker.lm_head.weight"));
  EXPECT_TRUE(has(other, "model.multi_modal_projector.linear_2.weight"));
  EXPECT_TRUE(has(other, "model.language_model.layers.1.self_attn.q_norm.weight"));
}

}  // namespace
}  // namespace assay
