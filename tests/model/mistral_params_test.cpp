// Mistral's own description of a model: params.json in the words of config.json, and the tree that it makes.
#include "core/formats/mistral_params.h"

#include <gtest/gtest.h>

#include "core/model/module_tree.h"
#include "tests/support/support.h"

namespace assay {
namespace {

// With the keys of Mistral-Large-3-675B-Instruct-2512, put down from what is told of it and not from the file itself.
constexpr const char* kLarge3 =
    R"({"dim": 7168, "n_layers": 61, "head_dim": 128, "hidden_dim": 16384, "n_heads": 128,
  "n_kv_heads": 128, "rope_theta": 10000.0, "norm_eps": 1e-06, "vocab_size": 131072, "tied_embeddings": false,
  "max_position_embeddings": 294912, "max_seq_len": 294912, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
  "qk_nope_head_dim": 128, "kv_lora_rank": 512, "v_head_dim": 128,
  "llama_4_scaling": {"original_max_position_embeddings": 8192, "beta": 0.1},
  "yarn": {"original_max_position_embeddings": 8192, "factor": 36, "apply_scale": false, "beta": 32, "alpha": 1},
  "moe": {"expert_parallel": 1, "route_every_n": 1, "first_k_dense_replace": 3, "num_experts": 128,
    "num_experts_per_tok": 4, "num_expert_groups": 1, "num_expert_groups_per_tok": 1, "routed_scale": 1.0,
    "expert_hidden_dim": 4096, "num_shared_experts": 1},
  "vision_encoder": {"hidden_size": 1664, "num_channels": 3, "image_size": 1540, "patch_size": 14,
    "intermediate_size": 8192, "num_hidden_layers": 48, "num_attention_heads": 16, "spatial_merge_size": 2,
    "mm_projector_id": "patch_merge", "add_pre_mm_projector_layer_norm": true, "adapter_bias": false}})";

ModelConfig written_as(test::TempDir& place, const std::string& text) {
  test::write_file(place.path() / "params.json", text);
  return ModelConfig::read(model_description_in(place.path()));
}

// The card: 673B in the language model, of which a token meets 39B.
TEST(MistralParams, DescribeLarge3) {
  test::TempDir place;
  const ModelConfig config = written_as(place, kLarge3);
  EXPECT_EQ(config.architecture(), "MistralLarge3ForCausalLM");
  const ModuleTree tree = describe(config);
  const Totals totals = count(tree);
  // 2·131072·7168 + 7168 + 61·(7168·(1536 + 576 + 16384 + 2) + 1536·24576 + 512·32768 + 1536 + 512)
  //   + 3·3·7168·16384 + 58·(128·7168 + 129·3·7168·4096)
  EXPECT_EQ(totals.total, 673'421'089'792u);
  EXPECT_NEAR(static_cast<double>(totals.active), 39e9, 1e9);
  EXPECT_NEAR(static_cast<double>(totals.towers), 2.5e9, 0.1e9);  // the card's encoder of images
  const TensorLookup lookup(tree);
  using Shape = std::vector<std::uint64_t>;
  const std::vector<std::pair<std::string, Shape>> named = {
      {"tok_embeddings.weight", {131072, 7168}},
      {"layers.0.feed_forward.w2.weight", {7168, 16384}},
      {"layers.60.attention.wkv_a_with_mqa.weight", {576, 7168}},
      {"layers.60.attention.wkv_b.weight", {32768, 512}},
      {"layers.60.attention.q_a_norm.weight", {1536}},
      {"layers.60.gate.weight", {128, 7168}},
      {"layers.60.shared_experts.w1.weight", {4096, 7168}},
      {"layers.60.experts.127.w3.weight", {4096, 7168}},
      {"layers.60.ffn_norm.weight", {7168}},
      {"output.weight", {131072, 7168}}};
  for (const auto& [name, shape] : named) {
    const auto found = lookup.find(name);
    ASSERT_TRUE(found.has_value()) << name;
    EXPECT_EQ(found->spec->shape, shape) << name;
  }
  EXPECT_FALSE(lookup.find("layers.3.feed_forward.w2.weight").has_value());
}

TEST(MistralParams, SayHowPositionsAreStretched) {
  test::TempDir place;
  const ModuleTree tree = describe(written_as(place, kLarge3));
  const auto* read = std::get_if<Hyperparameters>(&tree.read_hyperparameters);
  ASSERT_NE(read, nullptr);
  const RopeRule& rope = read->ropes.at(0);
  EXPECT_EQ(rope.type, RopeRule::Type::yarn);
  EXPECT_EQ(rope.attention_factor, 1);  // apply_scale is false
  EXPECT_EQ(rope.mscale_all_dim, 0);
  ASSERT_TRUE(read->temperature.has_value());
  EXPECT_EQ(read->temperature->floor, 8192);
}

// Every key under the name that transformers' class has for it, and nothing else.
TEST(MistralParams, EveryKeyIsTakenOver) {
  const auto params =
      ParsedJson::parse(R"({"dim": 1, "hidden_dim": 2, "n_layers": 3, "n_heads": 4, "n_kv_heads": 5,
    "vocab_size": 6, "norm_eps": 7.5, "tied_embeddings": true, "max_position_embeddings": 8, "q_lora_rank": 9,
    "kv_lora_rank": 10, "qk_nope_head_dim": 11, "qk_rope_head_dim": 12, "v_head_dim": 13, "activation": "silu",
    "dtype": "bfloat16", "rope_theta": 14.5, "max_seq_len": 99,
    "llama_4_scaling": {"original_max_position_embeddings": 15, "beta": 0.16},
    "yarn": {"original_max_position_embeddings": 17, "factor": 18, "apply_scale": true, "beta": 19, "alpha": 20},
    "moe": {"num_experts": 21, "num_experts_per_tok": 22, "expert_hidden_dim": 23, "num_shared_experts": 24,
      "first_k_dense_replace": 25, "route_every_n": 26, "num_expert_groups": 27, "num_expert_groups_per_tok": 28,
      "routed_scale": 2.9},
    "quantization": {"qformat_weight": "fp8_e4m3"}, "vision_encoder": {"hidden_size": 30}})");
  const auto expected =
      ParsedJson::parse(R"({"architectures": ["MistralLarge3ForCausalLM"], "norm_topk_prob": true,
    "hidden_size": 1, "intermediate_size": 2, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 5, "vocab_size": 6, "rms_norm_eps": 7.5, "tie_word_embeddings": true,
    "max_position_embeddings": 8, "q_lora_rank": 9, "kv_lora_rank": 10, "qk_nope_head_dim": 11,
    "qk_rope_head_dim": 12, "v_head_dim": 13, "hidden_act": "silu", "dtype": "bfloat16",
    "n_routed_experts": 21, "num_experts_per_tok": 22, "moe_intermediate_size": 23, "n_shared_experts": 24,
    "first_k_dense_replace": 25, "moe_layer_freq": 26, "n_group": 27, "topk_group": 28, "routed_scaling_factor": 2.9,
    "rope_parameters": {"rope_type": "yarn", "rope_theta": 14.5, "original_max_position_embeddings": 17, "factor": 18,
      "beta_fast": 19, "beta_slow": 20, "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.16,
      "llama_4_scaling_floor": 15},
    "quantization_config": {"quant_method": "fp8"}, "vision_config": {"hidden_size": 30}})");
  const auto config = config_of_mistral_params(params);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(*config, expected);
}

// Mistral-7B-Instruct-v0.3, put down from what is told of it; the hub's total is of the same weights under other names.
constexpr const char* kParamsOf7B =
    R"({"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32,
  "n_kv_heads": 8, "rope_theta": 1000000.0, "norm_eps": 1e-05, "vocab_size": 32768})";
constexpr const char* kMixtralParams =
    R"({"dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32,
  "n_kv_heads": 8, "rope_theta": 1000000.0, "norm_eps": 1e-05, "vocab_size": 32000,
  "moe": {"num_experts_per_tok": 2, "num_experts": 8}})";
// With the sizes of Voxtral-Mini-3B-2507 transformers' class has 4,676,271,104, with Whisper's 1500 × 1280 sines, which
// Mistral's own files do not hold.
constexpr const char* kVoxtralParams =
    R"({"dim": 3072, "n_layers": 30, "head_dim": 128, "hidden_dim": 8192, "n_heads": 32,
  "n_kv_heads": 8, "rope_theta": 100000000.0, "norm_eps": 1e-05, "vocab_size": 131072, "tied_embeddings": false,
  "multimodal": {"whisper_model_args": {"encoder_args": {"audio_encoding_args": {"sampling_rate": 16000,
    "num_mel_bins": 128, "hop_length": 160, "window_size": 400}, "dim": 1280, "n_layers": 32, "head_dim": 64,
    "hidden_dim": 5120, "n_heads": 20, "vocab_size": 51866, "max_source_positions": 1500},
    "downsample_args": {"downsample_factor": 4}}}})";

// Voxtral-Mini-4B-Realtime-2602's sizes, of which transformers' class makes 4,429,679,360 parameters.
constexpr const char* kStreamingParams =
    R"({"dim": 3072, "n_layers": 26, "head_dim": 128, "hidden_dim": 9216, "n_heads": 32, "n_kv_heads": 8,
  "use_biases": false, "causal": true, "rope_theta": 1000000.0, "norm_eps": 1e-05, "vocab_size": 131072,
  "tied_embeddings": true, "sliding_window": 8192, "ada_rms_norm_t_cond": true, "ada_rms_norm_t_cond_dim": 32,
  "multimodal": {"whisper_model_args": {"encoder_args": {"audio_encoding_args": {"sampling_rate": 16000,
    "num_mel_bins": 128, "hop_length": 160, "window_size": 400}, "dim": 1280, "n_layers": 32, "head_dim": 64,
    "hidden_dim": 5120, "n_heads": 32, "n_kv_heads": 32, "causal": true, "sliding_window": 750, "pos_embed": "rope"},
    "downsample_args": {"downsample_factor": 4}}}})";

TEST(MistralParams, SoundMayComeAsItIsSpoken) {
  test::TempDir place;
  const ModuleTree tree = describe(written_as(place, kStreamingParams));
  EXPECT_EQ(count(tree).total + count(tree).towers, 4'429'679'360u);
  const TensorLookup stored(tree);
  const std::string sound = "mm_streams_embeddings.embedding_module.";
  EXPECT_TRUE(stored.find(sound + "tok_embeddings.weight"));
  EXPECT_TRUE(stored.find(sound + "whisper_encoder.conv_layers.1.conv.bias"));
  EXPECT_TRUE(stored.find(sound + "whisper_encoder.transformer.layers.31.feed_forward.w3.weight"));
  EXPECT_TRUE(stored.find(sound + "whisper_encoder.transformer.layers.0.feed_forward.w2.bias"));
  EXPECT_FALSE(stored.find(sound + "whisper_encoder.transformer.layers.0.attention.wk.bias"));
  EXPECT_FALSE(stored.find(sound + "whisper_encoder.transformer.norm.bias"));
  EXPECT_TRUE(stored.find(sound + "audio_language_projection.2.weight"));
  EXPECT_TRUE(stored.find("layers.25.ada_rms_norm_t_cond.2.weight"));
  EXPECT_TRUE(tree.tied_embeddings);
}

TEST(MistralParams, DescribeWhatTheHubHasUnderOtherNames) {
  test::TempDir place;
  EXPECT_EQ(count(describe(written_as(place, kParamsOf7B))).total, 7'248'023'552u);
  const Totals mixtral = count(describe(written_as(place, kMixtralParams)));
  EXPECT_EQ(mixtral.total, 46'702'792'704u);
  EXPECT_EQ(mixtral.active, 12'879'925'248u);
  const ModuleTree voxtral = describe(written_as(place, kVoxtralParams));
  EXPECT_EQ(count(voxtral).total + count(voxtral).towers, 4'676'271'104u - 1500 * 1280);
  EXPECT_TRUE(TensorLookup(voxtral).find("mm_whisper_embeddings.tok_embeddings.weight").has_value());
  EXPECT_TRUE(TensorLookup(voxtral)
                  .find("mm_whisper_embeddings.whisper_encoder.transformer.layers.31.attention.wv.bias")
                  .has_value());
}

// A window, or windows that the layers take turns with.
TEST(MistralParams, WindowsAreOfAllLayersOrInTurn) {
  const auto with = [](const std::string& windows) {
    std::string text = kParamsOf7B;
    text.insert(1, "\"sliding_window\": " + windows + ", ");
    return ParsedJson::parse(text);
  };
  const auto all = config_of_mistral_params(with("4096")),
             turns = config_of_mistral_params(with("[null, 512]"));
  ASSERT_TRUE(all && turns);
  EXPECT_EQ((*all)["sliding_window"], 4096);
  EXPECT_FALSE(all->contains("layer_types"));
  EXPECT_EQ((*turns)["sliding_window"], 512);
  ASSERT_EQ((*turns)["layer_types"].size(), 32u);
  EXPECT_EQ((*turns)["layer_types"][30], "full_attention");
  EXPECT_EQ((*turns)["layer_types"][31], "sliding_attention");
  test::TempDir place;
  for (const char* odd : {"[1, 2]", "[null, 5, 5]", "\"wide\""}) {
    const ModelConfig config = written_as(place, with(odd).dump());
    EXPECT_THROW(describe(config), Error) << odd;
  }
}

// The weights are theirs whose names they have.
TEST(MistralParams, AreOfConsolidatedWeights) {
  test::TempDir place;
  test::write_file(place.path() / "params.json", kParamsOf7B);
  test::write_file(place.path() / "config.json", "{}");
  const auto of = [&](const std::vector<std::string>& names) {
    return description_of_weights(place.path(), names).filename();
  };
  EXPECT_EQ(of({"consolidated.safetensors"}), "params.json");
  EXPECT_EQ(of({"consolidated-00001-of-00002.safetensors", "consolidated-00002-of-00002.safetensors"}),
            "params.json");
  EXPECT_EQ(of({"model.safetensors"}), "config.json");
  EXPECT_EQ(of({"consolidated.safetensors", "model.safetensors"}), "config.json");
  EXPECT_EQ(of({}), "config.json");
  test::write_file(place.path() / "params.json", "{}");
  EXPECT_EQ(of({"consolidated.safetensors"}), "config.json");
}

TEST(MistralParams, WhatIsToBeComputedIsSaid) {
  test::TempDir place;
  std::string text = kParamsOf7B;
  text.erase(text.find("\"rope_theta\""), 25);
  const ModuleTree tree = describe(written_as(place, text));
  EXPECT_FALSE(std::holds_alternative<Hyperparameters>(tree.read_hyperparameters));
  const ModuleTree whole = describe(written_as(place, kParamsOf7B));
  const auto* read = std::get_if<Hyperparameters>(&whole.read_hyperparameters);
  ASSERT_NE(read, nullptr);
  EXPECT_TRUE(read->interleaved_pairs);
  EXPECT_EQ(read->ropes.at(0).theta, 1e6);
}

TEST(MistralParams, OfOtherModelsAreLeftAside) {
  test::TempDir place;
  for (const char* text :
       {R"({"dim": 4096, "n_layers": 32, "n_heads": 32, "vocab_size": -1})",
        R"({"dim": 4096, "n_layers": 32, "n_heads": 32, "moe": {"num_experts": 8}})",
        R"({"dim": 4096, "n_layers": 64, "vocab_size": 32768, "n_groups": 8, "model_type": "mamba"})", "[]",
        "{"}) {
    test::write_file(place.path() / "params.json", text);
    EXPECT_EQ(model_description_in(place.path()), fs::path()) << text;
  }
  test::write_file(place.path() / "params.json", kLarge3);
  test::write_file(place.path() / "config.json", "{}");
  EXPECT_EQ(model_description_in(place.path()).filename(), "config.json");
}

}  // namespace
}  // namespace assay
